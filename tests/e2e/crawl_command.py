"""The command line as a child process, and what it leaves behind, read without the help of the program that left it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from gossamer.model.record import REDIRECTED, Kind, State

PLANTED = Path(__file__).with_name("planted.py")
PATIENCE = 60.0
QUICK = ("-s", "delay=0", "-s", "retries=2", "-s", "retry_delay=0.05")


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def summary(self) -> dict[str, Any]:
        """The object on the last line of stdout."""
        found: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return found

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass
class Command:
    """One `gossamer …` command with a state and an output of its own; start it as often as you like."""

    folder: Path
    words: Sequence[str]
    options: Sequence[str] = QUICK
    wrapper: Sequence[str] = ()
    """A program that starts ours, such as a shell that sets limits."""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def output(self) -> Path:
        return self.folder / "items.jsonl"

    @property
    def database(self) -> Path:
        return self.state / "frontier.db"

    def start(
        self,
        *more: str,
        crash: str = "",
        crash_in: str = "",
        plant: str = "",
        stdin: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[str]:
        """The command in a session of its own. With faults it goes through their launcher, else through the product's door."""
        faults = {"FAULT_CRASH_AT": crash, "FAULT_CRASH_IN": crash_in}
        if plant:
            faults["FAULT_PLANT"] = f"{PLANTED}:{plant}"
        faults = {name: value for name, value in faults.items() if value}
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GOSSAMER_")}
        return subprocess.Popen(
            [
                *self.wrapper, sys.executable, "-m", "gossamer.testing.faults" if faults else "gossamer.services.cli",
                *self.words, "--state", str(self.state), "--output", str(self.output), "--json", *self.options, *more,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=stdin,
            text=True,
            cwd=self.folder,
            env={**plain, **self.environment, **faults},
            start_new_session=True,
        )  # fmt: skip

    def run(self, *more: str, patience: float = PATIENCE, **faults: str) -> Ended:
        """Start it and wait for its end."""
        return finish(self.start(*more, **faults), patience)

    # What is left behind

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.database, isolation_level=None)) as db:
            yield db

    def records(self) -> dict[str, tuple[State, str]]:
        """Every record's URL with how it ended; the last one where a URL has several."""
        with self.reading() as db:
            rows = db.execute("SELECT url, state, code FROM record ORDER BY id").fetchall()
        return {url: (State(state), code or "") for url, state, code in rows}

    def items(self) -> list[dict[str, Any]]:
        """The lines of the output; none if there is no file."""
        if not self.output.exists():
            return []
        return [json.loads(line) for line in self.output.read_text(encoding="utf-8").splitlines()]

    def leased(self) -> Counter[str]:
        """URLs of the pages that are leased now, which is what a killed process had in its hands."""
        if not self.database.exists():
            return Counter()
        with self.reading() as db:
            if not one(db, "SELECT count(*) FROM sqlite_master WHERE name = 'lease'"):
                return Counter()  # it was killed before it had made its tables
            found = db.execute(
                "SELECT r.url FROM lease l JOIN record r ON r.id = l.record WHERE l.kind = ?",
                (int(Kind.PAGE),),
            )
            return Counter(url for (url,) in found)

    def left_over(self) -> list[str]:
        """What does not add up in a state whose crawl has ended: the sums of the store against its own rows."""
        with self.reading() as db:
            return [
                f"counters: {name} is {one(db, first)}, but should be {one(db, second)}"
                for name, first, second in SUMS
                if one(db, first) != one(db, second)
            ]


def finish(process: subprocess.Popen[str], patience: float = PATIENCE) -> Ended:
    """Wait for the end; whoever takes too long is ended with all of its children."""
    try:
        out, err = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        raise AssertionError(f"the command did not end within {patience} s; it said:\n{out}\n{err}") from None
    return Ended(process.returncode, out, err)


def one(db: sqlite3.Connection, sql: str) -> int:
    return int(db.execute(sql).fetchone()[0] or 0)


def counted(name: str) -> str:
    return f"SELECT sum(value) FROM counter WHERE name = '{name}'"


def rows(state: State, also: str = "") -> str:
    return f"SELECT count(*) FROM record WHERE state = {int(state)} {also}"


# Each is (what, how the store counts it, what the rows say).
SUMS = [
    ("discovered", "SELECT sum(discovered) FROM task", "SELECT count(*) FROM record"),
    ("known keys", "SELECT count(*) FROM known", "SELECT count(*) FROM record"),
    ("terminal", "SELECT sum(terminal) FROM task", "SELECT count(*) FROM record WHERE state >= 2"),
    ("pages", "SELECT sum(pages) FROM task", rows(State.DONE, f"AND code IS NOT '{REDIRECTED}'")),
    ("pages of lanes", "SELECT sum(pages) FROM lane", "SELECT sum(pages) FROM task"),
    ("items written", "SELECT sum(items) FROM task", "SELECT sum(items) FROM task WHERE (SELECT count(*) FROM item) = 0"),
    *[(state.name, counted(state.name.lower()), rows(state)) for state in (State.DONE, State.FAILED, State.SKIPPED)],
    *[
        (f"what is left in {what}", f"SELECT {sum_} FROM {what}", "SELECT 0")
        for what, sum_ in {
            "queue": "count(*)", "delayed": "count(*)", "lease": "count(*)",
            "host": "sum(open + robots_open)", "lane": "sum(pending + open)", "task": "sum(leased + leased_pages)",
        }.items()
    ],
]  # fmt: skip

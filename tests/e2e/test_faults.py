"""What goes wrong around a crawl: a clear message, a stable exit code, no traceback, and nothing lost after the repair."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crawl_command import Command, Ended, finish
from known_truth import complaints, crawl_of, run_of

from gossamer.testing.web import Child, KnownWeb, Mix, serve_child

IS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[KnownWeb, Child]]:
    """One web of plain pages for all; each test clears its log."""
    web = KnownWeb(12, pages=200, hosts=2, mix=Mix.plain(latency=0.02))
    with serve_child(web) as origin:
        yield web, origin


def is_clear(ended: Ended, code: int, *words: str) -> bool:
    """The exit code that was promised, the words that explain it and no traceback."""
    assert ended.code == code, f"exit {ended.code}:\n{ended.err}"
    assert "Traceback" not in ended.err, ended.err
    for word in words:
        assert word in ended.err, f"{word!r} is not said:\n{ended.err}"
    return True


def goes_on(crawl: Command, web: KnownWeb, origin: Child, *lost: Counter[str]) -> bool:
    """The same command again completes the crawl as if nothing had been."""
    ended = crawl.run()
    assert ended.code == 0, ended.err
    # What was fetched and could not be settled may come once more.
    again = Counter(dict.fromkeys(web.expected(), 1))
    assert complaints(web, crawl, origin.log(), lost_leases=[again, *lost]) == []
    return True


# The disk


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[None]:
    """A disk of its own, so small that it fills up."""
    folder.mkdir(parents=True)
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("only root may mount a small disk")
    try:
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_full_disk_stops_the_crawl_and_loses_nothing(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """The state's disk fills up in the middle; with more room the same command completes."""
    web, origin = site
    origin.clear_log()
    crawl = crawl_of(web, tmp_path)
    with mounted(crawl.state, "1200k"):
        assert is_clear(crawl.run(), 4, "disk is full", "free some space", "nothing is lost")
        ended = crawl.run()  # where it finds no room even to begin, nothing was fetched
        assert is_clear(ended, ended.code, "disk is full")
        assert ended.code in {1, 4}
        subprocess.run(["mount", "-o", "remount,size=64m", crawl.state], check=True)
        assert goes_on(crawl, web, origin)


def test_a_state_that_may_not_grow_stops_the_crawl(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """The same by a limit on the size of files, which needs no rights."""
    web, origin = site
    origin.clear_log()
    crawl = crawl_of(web, tmp_path)
    crawl.wrapper = ["sh", "-c", 'ulimit -f 600; exec "$@"', "sh"]
    assert is_clear(crawl.run(), 4, "error:", str(crawl.database))
    crawl.wrapper = ()
    assert goes_on(crawl, web, origin)


def test_a_full_disk_of_the_output_loses_no_item(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """The crawl itself completes; the items wait in the state until they can be written."""
    web, origin = site
    origin.clear_log()
    crawl = crawl_of(web, tmp_path)
    crawl.folder = tmp_path / "small"
    state = tmp_path / "state-elsewhere"
    state.mkdir()
    with mounted(crawl.folder, "12k"):
        crawl.state.symlink_to(state)
        ended = crawl.run()
        assert is_clear(ended, 4, "The items could not all be written", "full", "the items are kept")
        subprocess.run(["mount", "-o", "remount,size=16m", crawl.folder], check=True)
        before = len(origin.log().visits)
        assert goes_on(crawl, web, origin)
        assert len(origin.log().visits) == before, "all had been fetched already"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Root writes past permissions, so for root it takes a mount."""
    if not IS_ROOT:
        folder.chmod(0o555)
        yield
        folder.chmod(0o755)
        return
    if subprocess.run(["mount", "--bind", folder, folder], check=False, capture_output=True).returncode:
        pytest.skip("this root may not mount")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


def test_a_read_only_state_is_told(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """Before anything is fetched; writable again, the crawl completes."""
    web, origin = site
    origin.clear_log()
    crawl = crawl_of(web, tmp_path)
    crawl.state.mkdir()
    with read_only(crawl.state):
        assert is_clear(crawl.run(), 1, "cannot be written", str(crawl.state), "--state")
    assert origin.log().visits == []
    assert goes_on(crawl, web, origin)


def test_an_output_that_cannot_be_written_is_told(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """A folder in its place, a file of somebody else, a read-only place: said before anything is fetched."""
    web, origin = site
    origin.clear_log()
    crawl = crawl_of(web, tmp_path)
    crawl.output.mkdir()
    assert is_clear(crawl.run(), 1, "it is a folder", str(crawl.output))
    crawl.output.rmdir()
    crawl.output.write_text("precious\n")
    assert is_clear(crawl.run(), 1, "exists already", "--fresh")
    assert crawl.output.read_text() == "precious\n"
    crawl.output.unlink()
    assert origin.log().visits == []
    assert goes_on(crawl, web, origin)


# The state


def test_a_broken_state_is_told_and_fresh_begins_anew(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """Noise instead of a database, and a database with a hole: never a traceback, and --fresh is the way out, with a copy."""
    web, origin = site
    origin.clear_log()
    crawl = crawl_of(web, tmp_path)
    crawl.state.mkdir()
    noise = os.urandom(8192)
    crawl.database.write_bytes(noise)
    assert is_clear(crawl.run(), 1, "damaged", "--fresh")
    for _ in range(2):  # the second one finds nothing damaged, and leaves the copy alone
        origin.clear_log()
        assert is_clear(crawl.run("--fresh"), 0)
        assert crawl.database.with_name("frontier.db.damaged").read_bytes() == noise
    assert complaints(web, crawl, origin.log()) == []
    with crawl.database.open("r+b") as file:
        file.truncate(crawl.database.stat().st_size // 3)
        file.seek(4096)
        file.write(os.urandom(60_000))
    assert is_clear(crawl.run(), 1, "damaged", "--fresh")
    assert is_clear(crawl.run("--fresh"), 0, "frontier.db.damaged-2")


def test_a_state_of_a_newer_version_is_left_alone(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """It says which format it found, and changes nothing."""
    web, _ = site
    crawl = crawl_of(web, tmp_path)
    assert crawl.run("--max-pages", "3").code == 0
    with crawl.reading() as db:
        db.execute("PRAGMA user_version = 99")
    assert is_clear(crawl.run(), 1, "newer Gossamer", "99", "upgrade")
    with crawl.reading() as db:
        assert db.execute("PRAGMA user_version").fetchone() == (99,)


def test_a_foreign_database_is_left_alone(site: tuple[KnownWeb, Child], tmp_path: Path) -> None:
    """Somebody's own SQLite file under our name keeps its tables."""
    web, _ = site
    crawl = crawl_of(web, tmp_path)
    crawl.state.mkdir()
    with sqlite3.connect(crawl.database) as db:
        db.execute("CREATE TABLE diary (day, text)")
    assert is_clear(crawl.run(), 1, "not one of Gossamer's")
    assert is_clear(crawl.run("--fresh"), 1, "not one of Gossamer's")
    with crawl.reading() as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("diary",)]


# The author


def test_a_wrong_setting_is_told_with_the_nearest_right_name(
    site: tuple[KnownWeb, Child], tmp_path: Path
) -> None:
    """On the command line, in the environment and in a file: exit 1, the place, and what was meant."""
    web, _ = site
    crawl = crawl_of(web, tmp_path)
    assert is_clear(crawl.run("-s", "per_hots=3"), 1, "per_hots", "per_host")
    assert is_clear(crawl.run("-s", "header_timeout=soon"), 1, "header_timeout", "soon")
    assert is_clear(crawl.run("--per-hots", "3"), 1, "--per-host")
    crawl.environment = {"GOSSAMER_RETRYS": "3"}
    assert is_clear(crawl.run(), 1, "GOSSAMER_RETRYS", "GOSSAMER_RETRIES")
    crawl.environment = {}
    (tmp_path / "gossamer.toml").write_text("concurency = 3\n")
    assert is_clear(crawl.run(), 1, "gossamer.toml", "concurrency")
    assert not crawl.state.exists()


def test_a_spider_that_is_no_python_is_told_with_its_line(
    site: tuple[KnownWeb, Child], tmp_path: Path
) -> None:
    """A syntax error: the file, the line and the text of it, exit 1, and no state is made."""
    web, _ = site
    crawl = run_of(web, tmp_path, "if page.url")
    line = 1 + Path(crawl.words[1]).read_text().splitlines().index("    if page.url")
    assert is_clear(crawl.run(), 1, f"author.py:{line}", "not valid Python", "if page.url")
    assert not crawl.state.exists()


def test_a_spider_that_raises_is_told_with_its_line_and_retried_after_the_repair(
    site: tuple[KnownWeb, Child], tmp_path: Path
) -> None:
    """Every page it raises on is FAILED(handler_error); `retry-failed` and the repaired spider complete the crawl."""
    web, origin = site
    origin.clear_log()
    crawl = run_of(web, tmp_path, "if page.depth >= 1: page.css('h1').txt")
    ended = crawl.run()
    assert is_clear(ended, 3, "author.py:8", "AttributeError", "handler_error")
    assert {code for _, code in crawl.records().values()} == {"", "handler_error"}
    run_of(web, tmp_path, "pass")  # the author corrects the file
    retry = Command(tmp_path, ["retry-failed", "author"], [])
    assert run_plain(retry).code == 0
    assert goes_on(crawl, web, origin)


def run_plain(command: Command) -> Ended:
    """A command that has no output."""
    words = [sys.executable, "-m", "gossamer.services.cli", *command.words, "--state", str(command.state)]
    done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=command.folder, timeout=30)
    return Ended(done.returncode, done.stdout, done.stderr)


# Ctrl-C


def started(crawl: Command, *more: str) -> subprocess.Popen[str]:
    """The command, once it is really crawling."""
    process = crawl.start(*more)
    until = time.monotonic() + 20
    while len(crawl.leased()) < 2:
        assert time.monotonic() < until
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


@pytest.mark.parametrize("workers", ["1", "2"])
def test_ctrl_c_drains(workers: str, tmp_path: Path) -> None:
    """Once: what is open is finished and settled, exit 130, nothing is fetched twice by the next run."""
    web = KnownWeb(14, pages=80, hosts=2, mix=Mix.plain(latency=0.4))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        process = started(crawl, "--workers", workers)
        process.send_signal(signal.SIGINT)
        ended = finish(process)
        assert is_clear(ended, 130, "the same command goes on")
        assert ended.summary["state"] == "INTERRUPTED"
        assert crawl.leased() == Counter()
        assert ended.summary["items"] == len(crawl.items()) > 0
        assert crawl.run("--workers", workers).code == 0
        assert complaints(web, crawl, origin.log()) == []


@pytest.mark.parametrize("workers", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_ctrl_c_twice_leaves_at_once(workers: str, tmp_path: Path) -> None:
    """Twice: gone in less than the open pages would take, exit 130, and the same command goes on."""
    web = KnownWeb(15, pages=40, hosts=2, mix=Mix.plain(slow=0.3, slow_seconds=1.5))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        process = started(crawl, "--workers", workers)
        time.sleep(0.3)
        lost = [crawl.leased(), crawl.leased()]
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        ended = finish(process)
        assert is_clear(ended, 130)
        assert time.monotonic() - began < 1.0
        assert crawl.run("--workers", workers).code == 0
        assert complaints(web, crawl, origin.log(), lost_leases=lost) == []


def test_a_state_in_use_is_shared_not_broken(tmp_path: Path) -> None:
    """The same command twice at once, also with --fresh: the second is told so, and the first is not disturbed."""
    web = KnownWeb(16, pages=100, hosts=2, mix=Mix.plain(latency=0.4))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        process = started(crawl)
        for more in ([], ["--fresh"]):
            assert is_clear(crawl.run(*more), 1, f"running in another process ({process.pid})")
        assert is_clear(finish(process), 0)
        assert complaints(web, crawl, origin.log()) == []

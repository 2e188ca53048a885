"""What is measured. A scenario is a function that takes a `Plan` and gives a record, which is JSON and is judged later."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import programs
from benchmarks.measuring import Measured, cores, cpu_seconds, measure, resident_mib
from benchmarks.programs import GOSSAMER
from benchmarks.serving import Pages, serve

Record = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """How large a run is."""

    folder: Path
    """On a real disk: state and results of the programs lie here while they run."""
    quick: bool = False
    only: tuple[str, ...] = programs.ALL
    rounds: int = 3
    pages: int | None = None
    """Every site has so many pages, whatever the scenario says: for trying the harness out."""
    timeout: float = 300.0

    def sized(self, full: int, quick: int) -> int:
        return self.pages or (quick if self.quick else full)

    @property
    def times(self) -> int:
        return 1 if self.quick else self.rounds

    @contextmanager
    def room(self) -> Iterator[Path]:
        """A folder for one run, deleted after."""
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="run-") as name:
            yield Path(name)


def small(plan: Plan) -> Record:
    """12.8 KB pages with 40 links each; the fast program crawls more of them."""
    few = Pages(plan.sized(5_000, 300))
    many = Pages(plan.sized(50_000, 1_500))
    return _compare(plan, {name: many if name == GOSSAMER else few for name in plan.only})


def large(plan: Plan) -> Record:
    """240 KB pages over TLS, compressed with gzip."""
    few = Pages(plan.sized(1_500, 100), 240_000, tls=True, gzip=True)
    many = Pages(plan.sized(6_000, 200), 240_000, tls=True, gzip=True)
    return _compare(plan, {name: many if name == GOSSAMER else few for name in plan.only})


def workers(plan: Plan) -> Record:
    """Gossamer with one worker process and with two, the site's server on the same cores."""
    pages = Pages(plan.sized(200_000, 1_500))  # two end so soon that their start would count
    variants = {"1 worker": ["--workers", "1"], "2 workers": ["--workers", "2"]}
    return _interleaved(plan, {name: (GOSSAMER, pages, more) for name, more in variants.items()}, pin=False)


def long(plan: Plan) -> Record:
    """One long crawl, watched from outside: lines of its growing output, resident memory."""
    pages = Pages(plan.sized(200_000, 3_000))
    server, client = _cores()
    watched = Watched()
    with plan.room() as room:
        run, words = _one(plan, room, (GOSSAMER, pages, []), server, client, watched.bind(room))
    found: Record = {"runs": [run.to_json()], "pages": pages.count, "command": words}
    if run.problem is None:
        found |= watched.tenths(pages.count)
    return {"programs": {GOSSAMER: found}, "cores": _pinning(server), "problem": run.problem}


def shared(plan: Plan) -> Record:
    """Gossamer with the frontier in a file and with one in Redis, one worker; all share the cores."""
    from gossamer.testing.servers import RedisServer

    pages = Pages(plan.sized(50_000, 1_500))
    found: dict[str, Record] = {name: {"pages": pages.count, "runs": []} for name in ("embedded", "redis")}
    store_cpu: list[float] = []
    for _ in range(plan.times):
        for name, of in found.items():
            with plan.room() as room:
                server = RedisServer(room / "redis").start() if name == "redis" else None
                more = ["--frontier", server.url] if server else []
                run, words = _one(plan, room, (GOSSAMER, pages, more), None, None)
                if server:
                    store_cpu.append(cpu_seconds(server.process.pid) / pages.count * 1e6)
                    server.kill()
            of["runs"].append(run.to_json())
            of["command"] = words
            _say(f"  {name}: {_brief(run, pages.count)}")
    problems = [
        f"{name}: {run['problem']}" for name, of in found.items() for run in of["runs"] if run["problem"]
    ]
    return {
        "programs": found, "cores": "server, store and program share all cores",
        "problem": "; ".join(dict.fromkeys(problems)) or None, "redis_us_per_page": round(statistics.median(store_cpu), 1),
    }  # fmt: skip


def redis_store(plan: Plan) -> Record:
    """The frontier on Redis alone: memory of 60-byte URLs, and its own CPU time."""
    urls, hosts = (20_000, 1_000) if plan.quick else (5_000_000, 50_000)
    return _module(
        plan, "benchmarks.redis_store", ["--urls", str(urls), "--hosts", str(hosts)], timeout=1_500
    )


def frontier(plan: Plan) -> Record:
    """The frontier alone, full records with host queues."""
    urls, hosts = (50_000, 1_000) if plan.quick else (10_000_000, 100_000)
    return _module(plan, "benchmarks.frontier", ["--urls", str(urls), "--hosts", str(hosts)], timeout=1_500)


def known(plan: Plan) -> Record:
    """Links that are enqueued already, as most links of a crawl are."""
    urls, hosts = (50_000, 1_000) if plan.quick else (10_000_000, 100_000)
    words = ["--urls", str(urls), "--hosts", str(hosts), "--seconds", "1" if plan.quick else "10"]
    return _module(plan, "benchmarks.known", words, timeout=1_500)


def startup(plan: Plan) -> Record:
    """`gossamer --help`, ten times after one for the caches."""
    command = [programs.gossamer_program(), "--help"]
    with plan.room() as room:
        runs = [measure(command, room, timeout=30) for _ in range(11)][1:]
    problem = next((run.problem for run in runs if run.problem), None)
    seconds = [run.seconds for run in runs]
    figures = {"median_s": round(statistics.median(seconds), 4), "worst_s": round(max(seconds), 4)}
    return {"figures": figures, "problem": problem, "command": "gossamer --help"}


SCENARIOS: dict[str, Callable[[Plan], Record]] = {
    function.__name__: function
    for function in (small, large, workers, long, shared, frontier, known, redis_store, startup)
}

Job = tuple[str, Pages, Sequence[str]]
"""Which program crawls which site with what further options."""


def _compare(plan: Plan, sites: dict[str, Pages]) -> Record:
    return _interleaved(plan, {name: (name, pages, []) for name, pages in sites.items()}, pin=True)


def _interleaved(plan: Plan, jobs: dict[str, Job], *, pin: bool) -> Record:
    """A B C, A B C, A B C: what disturbs the machine for a while disturbs all of them."""
    server, client = _cores() if pin else (None, None)
    found: dict[str, Record] = {name: {"pages": job[1].count, "runs": []} for name, job in jobs.items()}
    for turn in range(plan.times):
        for name, job in jobs.items():
            with plan.room() as room:
                run, words = _one(plan, room, job, server, client)
            found[name]["runs"].append(run.to_json())
            found[name]["command"] = words
            _say(f"  {turn + 1}/{plan.times} {name}: {_brief(run, job[1].count)}")
    problems = [
        f"{name}: {run['problem']}" for name, of in found.items() for run in of["runs"] if run["problem"]
    ]
    pinning = _pinning(server) if pin else "server and program share all cores"
    return {"programs": found, "cores": pinning, "problem": "; ".join(dict.fromkeys(problems)) or None}


def _one(
    plan: Plan,
    room: Path,
    job: Job,
    server: int | None,
    client: int | None,
    watch: Callable[[int], None] | None = None,
) -> tuple[Measured, str]:
    """One program against a site of its own; what it left is judged before the folder is deleted."""
    name, pages, more = job
    with serve(pages, room, server) as site:
        try:
            words = programs.command(name, site, room, *more)
        except programs.Missing as missing:
            return Measured(problem=str(missing)), ""
        before = site.cpu_seconds()
        run = measure(words, room, timeout=plan.timeout, core=client, watch=watch)
        run.server_cpu_seconds = site.cpu_seconds() - before
        run.problem = run.problem or programs.wrong(room / programs.ITEMS, site)
        return run, programs.shown(words, site, room)


class Watched:
    """How far a crawl was at each moment, and how much memory it had."""

    def __init__(self) -> None:
        self.samples: list[tuple[float, int, float]] = []
        self._lines = self._read = 0
        self._output = Path()

    def bind(self, room: Path) -> Callable[[int], None]:
        self._output = room / programs.ITEMS
        return self.look

    def look(self, pid: int) -> None:
        if self._output.exists():
            with self._output.open("rb") as file:
                file.seek(self._read)
                while chunk := file.read(1 << 20):
                    self._read += len(chunk)
                    self._lines += chunk.count(b"\n")
        if resident := resident_mib(pid):  # nothing, when it has just ended
            self.samples.append((time.perf_counter(), self._lines, resident))

    def tenths(self, pages: int) -> Record:
        """Rate and memory in each tenth of the crawl. The clock starts with the first item: start-up is no crawling."""
        begun = next((place for place, (_, lines, _) in enumerate(self.samples) if lines), None)
        if begun is None:
            return {"problem": "the crawl was over before it was looked at"}
        samples = self.samples[max(0, begun - 1) :]
        marks = [self._reached(samples, pages * tenth / 10) for tenth in range(11)]
        rates = [pages / 10 / max(end - start, 1e-9) for (start, _), (end, _) in pairwise(marks)]
        return {"rates": [round(rate) for rate in rates], "rss_mib": [round(rss) for _, rss in marks]}

    @staticmethod
    def _reached(samples: list[tuple[float, int, float]], lines: float) -> tuple[float, float]:
        """When there were so many lines, between two looks by proportion; and the memory then."""
        at, had, _ = samples[0]
        for moment, now, rss in samples:
            if now >= lines:
                share = (lines - had) / (now - had) if now > had else 1.0
                return at + (moment - at) * share, rss
            at, had = moment, now
        return samples[-1][0], samples[-1][2]


def _module(plan: Plan, module: str, words: list[str], *, timeout: float) -> Record:
    """A benchmark of its own, which ends with one JSON object on its standard output."""
    with plan.room() as room:
        run = measure([sys.executable, "-m", module, *words, "--dir", str(room)], room, timeout=timeout)
        said = (room / "stdout").read_text(errors="replace")
    shown = " ".join(["python -m", module, *words])
    record: Record = {"command": shown, "problem": run.problem, "run": run.to_json(), "figures": {}}
    if run.problem is None:
        start = 0 if said.startswith("{") else said.rfind("\n{") + 1
        try:
            record["figures"] = json.loads(said[start:])
        except ValueError:
            record["problem"] = f"its last words are no JSON: {said[-200:]!r}"
    return record


def _cores() -> tuple[int | None, int | None]:
    """One for the server and one for the program, where there are two."""
    usable = cores()
    return (usable[0], usable[-1]) if len(usable) > 1 else (None, None)


def _pinning(server: int | None) -> str:
    if server is None:
        return "not pinned: there is one core, or the system does not tell"
    return "server pinned to one core, program with all its threads and processes to another"


def _brief(run: Measured, pages: int) -> str:
    return f"VOID, {run.problem}" if run.problem else f"{pages / run.seconds:,.0f} pages/s"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)

"""SIGKILL at any moment, and the same command again: it goes on and ends complete, nothing lost, nothing twice."""

from __future__ import annotations

import importlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import pytest
from crawl_command import Command, finish
from known_truth import PRODUCT, complaints, crawl_of, refetched

from gossamer.testing.faults import AT_THE_END, POINTS
from gossamer.testing.web import KnownWeb, Mix, serve_child

PER_HOST = 2
KEEP = ("-s", "keep_bodies=true")
WHILE_IT_RUNS = [point for point in POINTS if point not in AT_THE_END]
ONCE = ("task.", "seeds.", "session.", "reap.")  # passed once in a process that lives for a moment
COMMIT = [
    "fetch.after", "handler.after", "blobs.named", "blobs.after", "settle.begun", "settle.after_links",
    "settle.before_commit", "settle.after_commit", "sink.half_written", "sink.after_write", "advance.after",
]  # fmt: skip


def moments(seed: int, points: list[str], times: int) -> Iterator[str]:
    """Each of these points, and so many moments in time, in a random order; at last one at the end, which comes once."""
    draw = random.Random(f"kills {seed}")
    planned = [f"{point}:{1 if point.startswith(ONCE) else draw.randint(1, 3)}" for point in points]
    planned += [f"clock:{draw.uniform(0.0, 0.4):.3f}" for _ in range(times)]
    draw.shuffle(planned)
    yield from planned
    yield AT_THE_END[seed % len(AT_THE_END)]


def kill_and_resume(crawl: Command, planned: Iterator[str]) -> list[Counter[str]]:
    """Run into one kill after the other, then to the end; the pages that were in hand at each."""
    lost = []
    for moment in planned:
        ended = crawl.run(crash=moment)
        assert ended.was_killed, f"{moment} was never reached: exit {ended.code}\n{ended.err}"
        lost.append(crawl.leased())
    last = crawl.run()
    assert last.code == 3, last.err
    return lost


def test_every_named_point_is_in_the_product() -> None:
    """A point whose function has another name now would never be reached, and its kill would show nothing."""
    for point in POINTS.values():
        module, _, path = point.place.partition(":")
        assert callable(reduce(getattr, path.split("."), importlib.import_module(module)))


def test_a_dozen_kills_between_the_steps_of_the_commit(tmp_path: Path) -> None:
    """Killed after each step of the commit and at a few random moments, the crawl loses and doubles nothing."""
    web = KnownWeb(21, pages=200, hosts=3, mix=Mix(latency=0.2, crawl_delay=0.03))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, *KEEP, per_host=PER_HOST)
        lost = kill_and_resume(crawl, moments(1, COMMIT, times=3))
        log = origin.log()
        assert complaints(web, crawl, log, per_host=PER_HOST, lost_leases=lost, bodies=True) == []
        assert sum(bool(pages) for pages in lost) >= 8, (
            "most kills must find pages in hand, or this shows nothing"
        )


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fifty_kills(seed: int, tmp_path: Path) -> None:
    """50 seeded moments, among them every named point: records, items, bodies and manners are those of an unharmed crawl."""
    web = KnownWeb(30 + seed, pages=500, hosts=3, mix=Mix(latency=0.25, crawl_delay=0.02))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, *KEEP, per_host=PER_HOST)
        lost = kill_and_resume(crawl, moments(seed, WHILE_IT_RUNS, times=49 - len(WHILE_IT_RUNS)))
        assert len(lost) == 50
        log = origin.log()
        assert complaints(web, crawl, log, per_host=PER_HOST, lost_leases=lost, bodies=True) == []
        assert sum(bool(pages) for pages in lost) >= 30, (
            "most kills must find pages in hand, or this shows nothing"
        )


def test_children_and_their_supervisor_are_killed(tmp_path: Path) -> None:
    """With --workers 2: a killed child is replaced; with a killed supervisor the children end, and the command goes on."""
    web = KnownWeb(41, pages=200, hosts=3, mix=Mix(latency=0.15))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, per_host=PER_HOST)

        process = crawl.start("--workers", "2", crash="settle.before_commit:5", crash_in="worker")
        time.sleep(1.2)
        os.kill(children_of(process.pid)[0], signal.SIGKILL)
        time.sleep(0.6)
        family = children_of(process.pid)
        process.kill()
        ended = finish(process)
        assert ended.was_killed
        assert "SIGKILL" in ended.err
        wait_for_the_end_of(family)

        assert crawl.run("--workers", "2").code == 3
        log = origin.log()
        # What was in the hands of each of the dead is not known, but that no more than the hosts' slots can have been.
        deaths = ended.err.count("another one takes its place") + len(family)
        once_more = Counter(dict.fromkeys(web.requests(PRODUCT), deaths))
        assert complaints(web, crawl, log, per_host=PER_HOST, lost_leases=[once_more]) == []
        assert refetched(web, log) <= deaths * PER_HOST * len(web.hosts)


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def wait_for_the_end_of(family: list[int], patience: float = 30.0) -> None:
    until = time.monotonic() + patience
    while alive := [pid for pid in family if is_alive(pid)]:
        assert time.monotonic() < until, f"{alive} outlived their supervisor"
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False

"""A child of one handler: its verdict comes back, its death is noticed, its hunger is bounded, and nothing of it stays."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from gossamer.crawling import isolation
from gossamer.crawling.isolation import ChildDied, ChildFault, Fetch, in_child
from gossamer.model.errors import UsageError
from gossamer.model.item import Item
from gossamer.model.record import Outcome, Verdict
from gossamer.ports.transport import Answer, FetchError

LIMIT = 5.0


async def no_fetch(request: bytes) -> Answer:
    raise AssertionError("nothing was to be fetched")


def answer(body: bytes) -> Answer:
    return Answer(200, [("X", "y")], body, 1.0, 0.1, 0.2, len(body), "1.1", "127.0.0.1")


def all_children() -> list[str]:
    """Processes that this one still has to bury."""
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


BEFORE: set[str] = set()  # servers that other suites of this run share


@pytest.fixture(autouse=True)
def remember_who_was_there() -> None:
    BEFORE.clear()
    BEFORE.update(all_children())


def children() -> list[str]:
    """Those that a test here has made."""
    return [child for child in all_children() if child not in BEFORE]


async def test_the_verdict_comes_back_whole() -> None:
    """Items, links and counts of the child are the outcome here, however large."""
    big = Outcome(
        7, Verdict.DONE, items=[Item(b"x" * 3_000_000, "key")], counts={"own:n": 2}, samples=[("a", "b")]
    )

    async def work(fetch: Fetch) -> Outcome:
        assert os.getpid() != parent
        return big

    parent = os.getpid()
    assert await in_child(work, no_fetch, LIMIT) == big
    assert children() == []


async def test_an_exchange_that_fails_is_the_handlers_to_see() -> None:
    """What the parent could not fetch, or must not, is raised in the child as it would be here, and ends nobody else."""

    async def fetch(request: bytes) -> Answer:
        if request == b"down":
            raise FetchError("timeout_header", "no answer")
        raise UsageError("robots.txt forbids this page", where="/secret", hint="leave it out")

    async def work(ask: Fetch) -> Outcome:
        with pytest.raises(FetchError) as down:
            await ask(b"down")
        with pytest.raises(UsageError, match="forbids"):
            await ask(b"forbidden")
        return Outcome(1, Verdict.DONE, code=down.value.code)

    assert (await in_child(work, fetch, LIMIT)).code == "timeout_header"


async def test_the_child_fetches_through_its_parent() -> None:
    """Politeness and sockets are here; the child only asks, as often as it likes."""
    asked: list[bytes] = []

    async def fetch(request: bytes) -> Answer:
        asked.append(request)
        return answer(request * 100_000)

    async def work(ask: Fetch) -> Outcome:
        bodies = [(await ask(b"one")).body, (await ask(b"two")).body]
        return Outcome(1, Verdict.DONE, counts={"bytes": sum(map(len, bodies))})

    assert (await in_child(work, fetch, LIMIT)).counts == {"bytes": 600_000}
    assert asked == [b"one", b"two"]


@pytest.mark.parametrize(
    "deed", [lambda: os._exit(0), lambda: os._exit(9), lambda: os.kill(os.getpid(), signal.SIGKILL)]
)
async def test_a_death_is_told_as_one(deed: object) -> None:
    """Whatever the exit code says: without a verdict it is a death, and no zombie is left."""

    async def work(fetch: Fetch) -> Outcome:
        deed()  # type: ignore[operator]
        raise AssertionError("still alive")

    with pytest.raises(ChildDied):
        await in_child(work, no_fetch, LIMIT)
    assert children() == []


async def test_a_loop_without_end_is_ended_at_the_limit() -> None:
    """The child is killed in time, and the loop of this process goes on meanwhile."""

    async def work(fetch: Fetch) -> Outcome:
        while True:
            pass

    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.01)
            ticks += 1

    ticking = asyncio.create_task(tick())
    began = time.monotonic()
    with pytest.raises(ChildDied):
        await in_child(work, no_fetch, 0.4)
    ticking.cancel()
    assert time.monotonic() - began < 2.0
    assert ticks >= 5
    assert children() == []


async def test_raising_is_a_fault_and_no_death() -> None:
    """An exception that reaches the child's end is told with its words; it does not count as a crash."""

    async def work(fetch: Fetch) -> Outcome:
        raise KeyError("no such thing")

    with pytest.raises(ChildFault, match=r"KeyError.*no such thing"):
        await in_child(work, no_fetch, LIMIT)


async def test_a_child_that_fills_memory_meets_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends or is told, and neither this process nor the machine feels it."""
    monkeypatch.setattr(isolation, "CHILD_MEMORY", 128 << 20)

    async def work(fetch: Fetch) -> Outcome:
        heap = []
        while True:
            heap.append(bytearray(16 << 20))

    with pytest.raises((ChildDied, ChildFault)):
        await in_child(work, no_fetch, LIMIT)


async def test_who_gives_up_waiting_leaves_no_child() -> None:
    """A visit that is cancelled (its task ended, the worker stops at once) takes its child with it."""
    pids: list[int] = []
    begun = asyncio.Event()

    async def fetch(request: bytes) -> Answer:
        pids.append(int(request))
        begun.set()
        return answer(b"")

    async def work(ask: Fetch) -> Outcome:
        await ask(b"%d" % os.getpid())
        time.sleep(60)  # noqa: ASYNC251  (it shall be stuck)
        raise AssertionError

    visit = asyncio.create_task(in_child(work, fetch, 60))
    async with asyncio.timeout(LIMIT):
        await begun.wait()
    visit.cancel()
    with pytest.raises(asyncio.CancelledError):
        await visit
    assert not Path(f"/proc/{pids[0]}").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's own promise, known on Linux")
async def test_a_child_does_not_outlive_a_killed_parent() -> None:
    """Killed with SIGKILL, the worker cannot clean up; the kernel ends its child."""
    program = """
import asyncio, os, time
from gossamer.crawling.isolation import in_child
async def fetch(request):
    print(int(request), flush=True)
    os.kill(os.getpid(), 9)
async def work(ask):
    await ask(b"%d" % os.getpid())
    time.sleep(60)
asyncio.run(in_child(work, fetch, 60))
"""
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await parent.communicate()
    assert parent.returncode == -signal.SIGKILL
    async with asyncio.timeout(LIMIT):
        while Path(f"/proc/{int(out)}").exists():  # noqa: ASYNC110  (nobody tells)
            await asyncio.sleep(0.02)

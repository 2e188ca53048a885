"""The group commit: batches by themselves, bodies first, nothing acknowledged that is not durable, nothing left in a drain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from gossamer.crawling import settler as settling
from gossamer.crawling.settler import AHEAD, MAX_BATCH, Settler
from gossamer.model.errors import StateError
from gossamer.model.record import Leases, Link, Outcome, Pushed, Verdict
from gossamer.model.task import TaskEnded


class Store:
    """A store that notes what is asked of it, and waits at a gate if it has one."""

    def __init__(self) -> None:
        self.said: list[tuple[Any, ...]] = []
        self.bodies: list[str | None] = []
        self.gate: asyncio.Event | None = None
        self.fault: Exception | None = None

    async def push(self, task: str, links: Sequence[Link]) -> Pushed:
        self.said.append(("push", task, len(links)))
        if self.fault:
            raise self.fault
        return Pushed(len(links), 0)

    async def settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        self.bodies += [outcome.body for outcome in outcomes]
        self.said.append(("settle", [outcome.number for outcome in outcomes], dict(want)))
        if self.gate:
            await self.gate.wait()
        if self.fault:
            raise self.fault
        self.said.append(("durable", [outcome.number for outcome in outcomes]))
        return Leases()

    async def put_many(self, contents: Sequence[bytes]) -> list[str]:
        self.said.append(("blobs", list(contents)))
        if self.fault:
            raise self.fault
        return [f"body-{content.decode()}" for content in contents]

    def settles(self) -> list[list[int]]:
        return [entry[1] for entry in self.said if entry[0] == "settle"]


class Desk:
    """A settler with its store, and what it told the worker."""

    def __init__(self, want: int = 0, *, blobs: bool = False) -> None:
        self.store = Store()
        self.want = want
        self.plenty = False
        self.told: list[list[int]] = []
        self.settler = Settler(
            self.store, "session", lambda: {"t": self.want}, self._settled, self.store if blobs else None,  # type: ignore[arg-type]
            has_plenty=lambda: self.plenty,
        )  # fmt: skip

    def _settled(self, outcomes: list[Outcome], leases: Leases) -> None:
        self.told.append([outcome.number for outcome in outcomes])

    def add(self, *numbers: int, links: int = 0, **more: Any) -> None:
        for number in numbers:
            outcome = Outcome(number, Verdict.DONE, links=[link(n) for n in range(links)])
            self.settler.add("t", outcome, **more)


def link(number: int) -> Link:
    return Link(number.to_bytes(16, "big"), f"http://h/{number}", "h:80")


async def until(condition: Any) -> None:
    async with asyncio.timeout(2):
        while not condition():  # noqa: ASYNC110  (a few turns of the loop)
            await asyncio.sleep(0)


async def test_the_next_batch_gathers_while_one_is_settled() -> None:
    """No queue per record: what ends during a commit goes together with the next one."""
    desk = Desk()
    gate = desk.store.gate = asyncio.Event()
    running = asyncio.create_task(desk.settler.run())
    desk.add(1)
    await until(lambda: desk.store.settles() == [[1]])
    desk.add(2)
    desk.add(3, 4)
    await asyncio.sleep(0)
    assert desk.told == [], "nothing is acknowledged before it is durable"
    gate.set()
    await until(lambda: len(desk.told) == 2)
    assert desk.told == [[1], [2, 3, 4]]
    running.cancel()


async def test_outcomes_wait_for_company_while_nobody_waits_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """With leases enough at hand a batch gathers until they run low; a settle costs the same with one page or fifty."""
    monkeypatch.setattr(settling, "COMPANY", 60.0)
    desk = Desk()
    desk.plenty = True
    running = asyncio.create_task(desk.settler.run())
    desk.add(1, 2)
    for _ in range(20):
        await asyncio.sleep(0)
    assert desk.store.settles() == []
    desk.plenty = False
    desk.add(3)
    await until(lambda: desk.told == [[1, 2, 3]])
    running.cancel()


async def test_company_is_waited_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing more comes, because all that is open hangs, what has come is settled soon."""
    monkeypatch.setattr(settling, "COMPANY", 0.01)
    desk = Desk()
    desk.plenty = True
    running = asyncio.create_task(desk.settler.run())
    desk.add(1)
    await until(lambda: desk.told == [[1]])
    running.cancel()


async def test_a_wake_up_ends_the_wait_for_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody pushed or resumed: the store is asked at once."""
    monkeypatch.setattr(settling, "COMPANY", 60.0)
    desk = Desk()
    desk.plenty = True
    running = asyncio.create_task(desk.settler.run())
    desk.add(1)
    for _ in range(5):
        await asyncio.sleep(0)
    desk.settler.wake()
    await until(lambda: desk.told == [[1]])
    running.cancel()


async def test_bodies_are_safe_before_their_pages_are_settled() -> None:
    """The blob store has answered before the settle is asked for; a body that cannot be stored settles nothing."""
    desk = Desk(blobs=True)
    desk.add(1, body=b"one")
    desk.add(2, body=b"two")
    await desk.settler.settle_once()
    assert [entry[0] for entry in desk.store.said] == ["blobs", "settle", "durable"]
    assert desk.store.said[0] == ("blobs", [b"one", b"two"])
    assert desk.store.bodies == ["body-one", "body-two"], "each record names its own"
    desk.store.said.clear()
    desk.store.fault = StateError("The disk is full")
    desk.add(3, body=b"three")
    with pytest.raises(StateError):
        await desk.settler.settle_once()
    assert desk.store.settles() == []
    assert desk.told == [[1, 2]]


async def test_a_fault_of_the_store_ends_the_loop_and_tells_nothing() -> None:
    """The worker hears of it by the exception alone; nothing counts as settled."""
    desk = Desk()
    desk.store.fault = StateError("The disk is full")
    desk.add(1)
    with pytest.raises(StateError):
        await desk.settler.run()
    assert desk.told == []
    assert desk.settler.settled == 0


async def test_a_full_worker_asks_too_or_it_would_not_hear_that_its_task_has_ended() -> None:
    """With nothing to settle the store is asked all the same, for leases or only for news; a worker that stops asks nobody."""
    desk = Desk(want=0)
    await desk.settler.settle_once()
    assert desk.store.said[0] == ("settle", [], {"t": 0})
    desk.store.said.clear()
    desk.settler._want = dict
    await desk.settler.settle_once()
    assert desk.store.said == []


async def test_a_batch_is_bounded() -> None:
    """What is beyond the bound goes with the next batch, without another wake."""
    desk = Desk()
    desk.add(*range(MAX_BATCH + 5))
    running = asyncio.create_task(desk.settler.run())
    await until(lambda: len(desk.told) == 2)
    assert [len(batch) for batch in desk.told] == [MAX_BATCH, 5]
    running.cancel()


async def test_very_many_links_are_pushed_ahead_in_chunks() -> None:
    """All but the last chunk are waited for before the page is settled; small pages push nothing."""
    desk = Desk()
    desk.add(1, links=2 * AHEAD + 7)
    desk.add(2, links=AHEAD)
    await desk.settler.settle_once()
    assert [entry[:1] + entry[2:] for entry in desk.store.said[:2]] == [("push", AHEAD), ("push", AHEAD)]
    assert desk.store.said[2][0] == "settle"
    assert len(desk.store.said) == 4


async def test_a_task_that_ended_meanwhile_is_left_to_the_settle() -> None:
    """The push is refused, the settle is sent all the same: its answer is the one that counts."""
    desk = Desk()

    async def refuse(task: str, links: Sequence[Link]) -> Pushed:
        raise TaskEnded("The task is CANCELLED")

    desk.store.push = refuse  # type: ignore[method-assign]
    desk.add(1, links=AHEAD + 1)
    await desk.settler.settle_once()
    assert desk.told == [[1]]


async def test_the_time_of_sending_travels_as_a_duration() -> None:
    """So that the host's next turn counts from there, whatever the clocks of two machines say."""
    desk = Desk()
    outcome, silent = Outcome(1, Verdict.DONE), Outcome(2, Verdict.DONE)
    desk.settler.add("t", outcome, time.monotonic() - 2.0)
    desk.settler.add("t", silent)
    await desk.settler.settle_once()
    assert outcome.sent_ago is not None
    assert 2.0 <= outcome.sent_ago < 3.0
    assert silent.sent_ago is None


async def test_a_flush_waits_for_the_batch_that_is_under_way() -> None:
    """A drain must not end while the loop's own settle is still with the store: the next thing is the session's end."""
    desk = Desk()
    gate = desk.store.gate = asyncio.Event()
    running = asyncio.create_task(desk.settler.run())
    desk.add(1)
    await until(lambda: desk.store.settles() == [[1]])
    assert desk.settler.waiting == 0
    flushing = asyncio.create_task(desk.settler.flush())
    await asyncio.sleep(0.01)
    assert not flushing.done()
    gate.set()
    async with asyncio.timeout(2):
        await flushing
    assert desk.told[0] == [1]
    running.cancel()


async def test_a_flush_settles_all_that_waits() -> None:
    """Batch after batch, until nothing is left."""
    desk = Desk()
    desk.add(*range(2 * MAX_BATCH + 1))
    await desk.settler.flush()
    assert sum(map(len, desk.told)) == 2 * MAX_BATCH + 1
    assert desk.settler.waiting == 0

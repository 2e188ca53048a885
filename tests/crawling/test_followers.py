"""A sink gets every item once, whatever dies, fails, or comes late."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence

import pytest

from gossamer.crawling import followers
from gossamer.crawling.followers import SinkFollower
from gossamer.model.errors import OutputError, StateError
from gossamer.model.record import LoggedItem
from gossamer.ports.frontier import CursorAhead, check_stand
from gossamer.testing.fake_clock import FakeClock


class Log:
    """An item log in memory that counts its calls."""

    def __init__(self) -> None:
        self.items: list[LoggedItem] = []
        self.cursors: dict[str, tuple[int, bytes]] = {}
        self.reads = 0
        self.fault: Exception | None = None

    def settle(self, count: int = 1, size: int = 0) -> None:
        for _ in range(count):
            number = len(self.items) + 1
            self.items.append(LoggedItem(number, b"%d" % number + b"x" * size))

    async def read(self, task: str, partition: int, after: int, limit: int) -> list[LoggedItem]:
        self.reads += 1
        if self.fault:
            raise self.fault
        return [item for item in self.items if item.number > after][:limit]

    async def cursor(self, task: str, partition: int, sink: str) -> tuple[int, bytes]:
        return self.cursors.setdefault(sink, (0, b""))

    async def advance(
        self,
        task: str,
        partition: int,
        sink: str,
        number: int,
        state: bytes = b"",
        *,
        after: int | None = None,
    ) -> None:
        check_stand(task, sink, self.cursors[sink][0], number, after)
        assert number >= self.cursors[sink][0]
        self.cursors[sink] = (number, state)


class Sink:
    """A target in memory whose state is its length, and that fails or waits on demand."""

    def __init__(self, held: list[int] | None = None) -> None:
        self.held: list[int] = [] if held is None else held
        self.sizes: list[int] = []
        self.faults: list[Exception] = []
        self.refuses: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.is_open = False
        self.writing = 0
        self.misused = False  # written to by two at once, or while closed

    async def open(self, number: int, state: bytes) -> bytes:
        if self.refuses:
            raise self.refuses
        self.is_open = True
        if state:
            del self.held[int(state) :]
        else:
            assert number == 0
            assert not self.held, "a target that nobody knows must not be cut"
        return b"%d" % len(self.held)

    async def write(self, items: Sequence[LoggedItem]) -> bytes:
        # Like a thread: whoever waits may be cancelled, the writing goes on.
        return await asyncio.shield(asyncio.create_task(self._write(items)))

    async def _write(self, items: Sequence[LoggedItem]) -> bytes:
        self.misused = self.misused or bool(self.writing) or not self.is_open
        self.writing += 1
        try:
            if self.gate:
                await self.gate.wait()
            if self.faults:
                raise self.faults.pop(0)
            self.held += [item.number for item in items]
            self.sizes.append(len(items))
            return b"%d" % len(self.held)
        finally:
            self.writing -= 1

    async def close(self) -> None:
        self.misused = self.misused or bool(self.writing)
        self.is_open = False


async def until(condition: Callable[[], bool], clock: FakeClock | None = None) -> None:
    """Let the loop run until the condition holds; with a clock, time passes too."""
    async with asyncio.timeout(5):
        while not condition():
            if clock:
                clock.advance(0.05)
            await asyncio.sleep(0)


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def follow(log: Log, clock: FakeClock) -> Callable[[Sink], SinkFollower]:
    return lambda sink: SinkFollower(log, sink, "task", "sink", sleep=clock.sleep)


async def test_items_reach_the_sink(log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]):
    """Notified items are written and the cursor moves with the sink's state; what was there before comes too."""
    sink = Sink()
    log.settle(3)
    async with follow(sink) as follower:
        await until(lambda: len(sink.held) == 3)
        log.settle(2)
        follower.notify(2)
        await until(lambda: len(sink.held) == 5, clock)
        await follower.drain()
        assert follower.lag == 0
        assert follower.written == 5
    assert sink.held == [1, 2, 3, 4, 5]
    assert log.cursors["sink"] == (5, b"5")


async def test_the_state_at_the_start_is_stored_before_the_first_write(
    log: Log, follow: Callable[[Sink], SinkFollower]
):
    """Killed between the first write and its cursor, the next run can go back to the beginning."""
    sink = Sink()
    async with follow(sink):
        assert log.cursors["sink"] == (0, b"0")


class Mortal:
    """Chance kills a life at any of its steps; nothing that it does afterwards has any effect."""

    def __init__(self, rand: random.Random) -> None:
        self.rand = rand
        self.dead = False

    def step(self) -> None:
        self.dead = self.dead or self.rand.random() < 0.15
        if self.dead:
            raise ConnectionError("dead")


@pytest.mark.parametrize("seed", range(25))
async def test_killed_anywhere_each_item_is_there_once(log: Log, seed: int):
    """Kills before and after the write, before and after the cursor moved: all items, in order, none twice."""
    rand = random.Random(seed)
    held: list[int] = []
    lives = 0
    while log.cursors.get("sink", (0, b""))[0] != 60:
        lives += 1
        log.settle(min(rand.randint(0, 9), 60 - len(log.items)))
        life = Mortal(rand)

        class MortalSink(Sink):
            async def write(self, items: Sequence[LoggedItem], life: Mortal = life) -> bytes:
                life.step()
                state = await super().write(items)
                life.step()
                return state

        class MortalLog(Log):
            async def advance(
                self,
                task: str,
                partition: int,
                sink: str,
                number: int,
                state: bytes = b"",
                *,
                after: int | None = None,
                life: Mortal = life,
            ) -> None:
                life.step()
                await super().advance(task, partition, sink, number, state, after=after)
                life.step()

        shared = MortalLog()
        shared.items, shared.cursors = log.items, log.cursors
        follower = SinkFollower(shared, MortalSink(held), "task", "sink", sleep=FakeClock().sleep)
        follower._limit = rand.randint(1, 4)
        with contextlib.suppress(ConnectionError):
            async with follower:
                if await follower._catch_up():
                    log.settle(min(rand.randint(0, 9), 60 - len(log.items)))
                    follower.notify()
                    await follower._catch_up()
    assert lives > 3
    assert held == list(range(1, 61))


async def test_a_failing_sink_is_tried_again_and_says_why(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """The error and the lag can be seen meanwhile; when the sink is well again everything arrives once."""
    sink = Sink()
    sink.faults = [OutputError("The disk is full") for _ in range(4)]
    async with follow(sink) as follower:
        log.settle(10)
        follower.notify(10)
        await until(lambda: len(sink.faults) == 3)
        await until(lambda: bool(follower.last_error))
        assert "disk is full" in follower.last_error
        assert follower.lag == 10
        await until(lambda: bool(sink.held), clock)
        await until(lambda: not follower.last_error)
        assert follower.lag == 0
    assert sink.held == list(range(1, 11))


async def test_attempts_become_rarer(log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]):
    """A sink that stays down is asked less and less often, down to twice a minute."""
    sink = Sink()
    sink.faults = [OutputError("down") for _ in range(1000)]
    async with follow(sink):
        log.settle()
        start = clock.now()
        while clock.now() < start + 120:
            clock.advance(0.1)
            for _ in range(8):
                await asyncio.sleep(0)
    attempts = 1000 - len(sink.faults)
    assert 8 <= attempts <= 13


async def test_any_exception_of_a_sink_is_survived(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """A sink with a bug does not end the follower, nor does a store that is away."""
    sink = Sink()
    sink.faults = [KeyError("bug"), ConnectionError("gone")]
    async with follow(sink) as follower:
        log.settle(2)
        follower.notify(2)
        await until(lambda: bool(sink.held), clock)
        log.fault = StateError("locked")
        log.settle()
        follower.notify()
        await until(lambda: "locked" in follower.last_error, clock)
        log.fault = None
        await until(lambda: len(sink.held) == 3, clock)
    assert sink.held == [1, 2, 3]


async def test_a_log_that_lost_its_end_stops_the_follower(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """No attempt helps there: draining raises it at once, also when the log has grown beyond the cursor meanwhile."""
    sink = Sink()
    async with follow(sink) as follower:
        log.fault = CursorAhead("The sink stands at item 9, and the log has had 3")
        follower.notify()
        await until(lambda: "has had 3" in follower.last_error, clock)
        log.fault = None
        log.settle(3)
        with pytest.raises(CursorAhead):
            await follower.drain()
    assert sink.held == []


async def test_drain_waits_out_a_short_trouble(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """A sink that fails a few times at the end does not cost the run its items."""
    sink = Sink()
    async with follow(sink) as follower:
        await until(lambda: log.reads == 1)
        sink.faults = [OutputError("hiccup")] * 2
        log.settle(3)
        draining = asyncio.create_task(follower.drain())
        await until(draining.done, clock)
        await draining
        assert sink.held == [1, 2, 3]


async def test_drain_gives_up_with_the_reason(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """A sink that stays down ends the run with an error that names it; the cursor stays where it was."""
    sink = Sink()
    sink.faults = [OutputError("The disk is full") for _ in range(1000)]
    async with follow(sink) as follower:
        log.settle(3)
        draining = asyncio.create_task(follower.drain())
        await until(draining.done, clock)
        with pytest.raises(OutputError, match="disk is full"):
            draining.result()
    assert log.cursors["sink"] == (0, b"0")


async def test_an_output_that_cannot_be_used_is_told_at_the_start(
    log: Log, follow: Callable[[Sink], SinkFollower]
):
    """Entering raises what `open` raises, before any page is fetched, and leaves the sink closed."""
    sink = Sink()
    sink.refuses = OutputError("not yours")
    with pytest.raises(OutputError, match="not yours"):
        async with follow(sink):
            pytest.fail("opened")
    assert not sink.is_open


async def test_leaving_finishes_the_batch_in_hand(log: Log, follow: Callable[[Sink], SinkFollower]):
    """The sink is not closed under a write: what it has begun is ended and its cursor stored."""
    sink = Sink()
    sink.gate = asyncio.Event()
    log.settle(4)
    follower = follow(sink)
    await follower.__aenter__()
    await until(lambda: sink.writing == 1)
    leaving = asyncio.create_task(follower.__aexit__(None, None, None))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not leaving.done()
    assert sink.is_open
    sink.gate.set()
    await leaving
    assert not sink.is_open
    assert not sink.misused
    assert log.cursors["sink"] == (4, b"4")


async def test_a_cancelled_drain_leaves_no_second_writer(log: Log, follow: Callable[[Sink], SinkFollower]):
    """A drain that runs out of time does not let the next batch begin beside the write that it left."""
    sink = Sink()
    async with follow(sink) as follower:
        await until(lambda: log.reads == 1)
        sink.gate = asyncio.Event()
        log.settle(2)
        draining = asyncio.create_task(follower.drain())
        await until(lambda: sink.writing == 1)
        draining.cancel()
        await asyncio.gather(draining, return_exceptions=True)
        again = asyncio.create_task(follower.drain())
        for _ in range(20):
            await asyncio.sleep(0)
        sink.gate.set()
        await again
    assert sink.held == [1, 2]
    assert not sink.misused


async def test_the_runner_and_a_drain_never_write_at_once(log: Log, follow: Callable[[Sink], SinkFollower]):
    """Two drains beside the follower's own loop write one batch after the other."""
    sink = Sink()
    sink.gate = asyncio.Event()
    log.settle(9)
    async with follow(sink) as follower:
        drains = [asyncio.create_task(follower.drain()) for _ in range(2)]
        for _ in range(20):
            await asyncio.sleep(0)
        sink.gate.set()
        await asyncio.gather(*drains)
    assert sink.held == list(range(1, 10))
    assert not sink.misused


async def test_a_stream_of_items_costs_a_few_writes_a_second(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """Ten seconds of 4,000 items a second, told one by one, make some forty writes, and about as many reads."""
    sink = Sink()
    async with follow(sink) as follower:
        for _ in range(10_000):
            log.settle(4)
            for _ in range(4):
                follower.notify()
            clock.advance(0.001)
            await asyncio.sleep(0)
        await follower.drain()
    assert len(sink.held) == 40_000
    assert len(sink.sizes) <= 45
    assert log.reads <= 100


async def test_silence_costs_nothing(log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]):
    """Without notice the log is not read again, however long it takes."""
    async with follow(Sink()):
        await until(lambda: log.reads == 1)
        for _ in range(100):
            clock.advance(60)
            await asyncio.sleep(0)
        assert log.reads == 1


async def test_items_of_other_processes_are_found_by_polling(
    log: Log, clock: FakeClock, follow: Callable[[Sink], SinkFollower]
):
    """With `poll_every` nobody needs to notify, and leaving does not wait for the next look."""
    sink = Sink()
    async with follow(sink) as follower:
        follower.poll_every(1.0)
        await until(lambda: log.reads >= 2, clock)
        log.settle(3)
        await until(lambda: len(sink.held) == 3, clock)


async def test_large_items_make_smaller_batches(log: Log, follow: Callable[[Sink], SinkFollower]):
    """A batch is bounded in bytes too, as soon as the size of the items is known."""
    sink = Sink()
    log.settle(200, size=followers.BATCH_BYTES // 10)
    follower = follow(sink)
    follower._limit = 1
    async with follower:
        await follower.drain()
    assert max(sink.sizes) <= 10
    assert len(sink.held) == 200


async def test_lag_is_what_is_not_yet_there(log: Log, follow: Callable[[Sink], SinkFollower]):
    """Notified items count until they are written; items of the same settle that were read already do not."""
    sink = Sink()
    async with follow(sink) as follower:
        await until(lambda: log.reads == 1)
        sink.gate = asyncio.Event()
        log.settle(7)
        follower.notify(7)
        assert follower.lag == 7
        sink.gate.set()
        await follower.drain()
        assert follower.lag == 0
        follower.notify(5)  # late news of what has been written
        await follower.drain()
        assert follower.lag == 0

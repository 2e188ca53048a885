"""A sink follows the item log: read a batch, write it durably, move the cursor, in this order.

Killed between the write and the cursor, it starts from the old cursor, and the sink cuts itself back to the state that was
stored with it. A sink that is slow or down holds up nobody: it is tried again and again, and its lag and last error can be
seen. The cost is one read of the log and one durable write a batch, a few times a second, however fast items come.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from gossamer.model.errors import OutputError
from gossamer.ports.frontier import CursorAhead, CursorMoved, ItemLog
from gossamer.ports.sinks import ItemSink

log = logging.getLogger("gossamer")

BATCH = 5_000  # items of one write
BATCH_BYTES = 8 * 1024 * 1024  # about so much at most, as far as the last batch tells
GATHER = 0.25  # seconds in which items of many settles become one write
FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # between attempts of a sink that fails
DRAIN_ATTEMPTS = 6  # in a row before `drain` gives up, some six seconds


Sleep = Callable[[float], Awaitable[None]]
"""`ports.clock.Clock.sleep`, or what stands for it."""


class SinkFollower:
    """Brings the items of one task to one sink, exactly as often as the sink can promise.

    Used as `async with`: entering opens the sink (and raises where the output cannot be used), leaving finishes the batch in
    hand and closes it. What is not written then stays in the log; call `drain` before to have it all.
    """

    def __init__(
        self,
        store: ItemLog,
        sink: ItemSink,
        task: str,
        name: str,
        partition: int = 0,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._log = store
        self._sink = sink
        self._cursor = (task, partition, name)
        self._sleep = sleep
        self._wake = asyncio.Event()
        self._leaving = asyncio.Event()
        self._turn = asyncio.Lock()
        self._every: float | None = None
        self._runner: asyncio.Task[None] | None = None
        self._steps: set[asyncio.Task[bool]] = set()
        self._number = 0
        self._noticed = 0
        self._limit = BATCH
        self._failures = 0
        self._ahead: CursorAhead | None = None
        self.written = 0
        self.last_error = ""
        """Why the sink fails now; empty while it is well."""

    @property
    def lag(self) -> int:
        """Items that are known to be settled and are not yet in the sink."""
        return self._noticed

    async def __aenter__(self) -> Self:
        self._number, state = await self._log.cursor(*self._cursor)
        try:
            base = await self._sink.open(self._number, state)
            if base != state:
                # Before the first write: a kill after it must find what to go back to.
                await self._log.advance(*self._cursor, self._number, base)
        except BaseException:
            await self._sink.close()
            raise
        self._wake.set()  # the log may hold what an earlier run left
        self._runner = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving.set()
        self._wake.set()
        runner, self._runner = self._runner, None
        if runner is not None:
            await asyncio.gather(runner, *self._steps, return_exceptions=True)
            await self._sink.close()

    def notify(self, items: int = 1) -> None:
        """So many items were settled."""
        self._noticed += items
        self._wake.set()

    def poll_every(self, seconds: float) -> None:
        """Look by itself too: others settle, who cannot notify this process."""
        self._every = seconds
        self._wake.set()

    async def drain(self) -> None:
        """Write all that is in the log now. Raises OutputError when the sink fails again and again; nothing is lost then.
        Raises CursorAhead where the log has lost what the sink holds."""
        for attempt in range(DRAIN_ATTEMPTS):
            if attempt:
                await self._sleep(_wait_after(attempt))
            if await self._catch_up():
                return
        raise OutputError(
            f"The items could not all be written: {self.last_error}",
            where=self._cursor[2],
            hint="start the same command again when that is repaired; the items are kept until then",
        )

    async def _follow(self) -> None:
        while True:
            await self._woken()
            if self._leaving.is_set():
                return
            well = await self._catch_up()
            await self._pause(GATHER if well else _wait_after(self._failures))

    async def _woken(self) -> None:
        if self._every is None or self._failures:
            await self._wake.wait()
        else:
            await self._pause(self._every, self._wake)
        self._wake.clear()

    async def _pause(self, seconds: float, until: asyncio.Event | None = None) -> None:
        """Sleep, but no longer than until the event, which is the end of this follower if none is given."""
        asleep = asyncio.ensure_future(self._sleep(seconds))
        event = asyncio.ensure_future((until or self._leaving).wait())
        try:
            await asyncio.wait((asleep, event), return_when=asyncio.FIRST_COMPLETED)
        finally:
            asleep.cancel()
            event.cancel()

    async def _catch_up(self) -> bool:
        """Write batch after batch until the log has no more; False when something failed that may be repaired."""
        if self._ahead is not None:  # also when the log has grown beyond the cursor since
            raise self._ahead
        try:
            while await self._step() and not self._leaving.is_set():
                pass
        except CursorAhead as error:
            # No later attempt helps: the log has lost its end, and what comes next would be taken for what is written.
            self._ahead, self.last_error = error, str(error)
            log.error("the sink %s stops: %s", self._cursor[2], error)
            raise
        except Exception as error:  # noqa: BLE001  (whatever ails a sink or the store must stop neither the crawl nor the others)
            self._failures += 1
            self.last_error = str(error) or type(error).__name__
            log.warning("the sink %s fails and will be tried again: %s", self._cursor[2], self.last_error)
            self._wake.set()
            return False
        self._failures, self.last_error = 0, ""
        return True

    async def _step(self) -> bool:
        """One batch; True if the log may hold more already. Goes on to its end even if who asked for it is cancelled, since a
        thread that writes cannot be stopped, and nobody else may write before it has ended."""
        step = asyncio.create_task(self._batch())
        self._steps.add(step)
        step.add_done_callback(self._steps.discard)
        return await asyncio.shield(step)

    async def _batch(self) -> bool:
        async with self._turn:
            try:
                return await self._follow_batch()
            except (CursorAhead, CursorMoved) as lost:
                await self._go_back(lost)
                return True

    async def _go_back(self, lost: CursorAhead | CursorMoved) -> None:
        """The store has lost its end, and the cursor's with it: bring the target to where the cursor stands now. What was
        written since comes again. Raises where the cursor stands where it did: then nothing explains it."""
        number, state = await self._log.cursor(*self._cursor)
        if number == self._number:
            raise lost
        log.warning(
            "the store has lost its end; the sink %s goes back from item %d to %d",
            self._cursor[2],
            self._number,
            number,
        )
        await self._sink.close()
        base = await self._sink.open(number, state)
        if base != state:
            await self._log.advance(*self._cursor, number, base)
        self._number = number

    async def _follow_batch(self) -> bool:
        noticed = self._noticed
        items = await self._log.read(*self._cursor[:2], self._number, self._limit)
        if not items:
            self._noticed -= noticed  # they were in an earlier batch
            return False
        self._noticed = max(noticed, len(items))
        state = await self._sink.write(items)
        number = items[-1].number
        await self._log.advance(*self._cursor, number, state, after=self._number)
        self._number = number
        self._noticed = max(0, self._noticed - len(items))
        self.written += len(items)
        full = len(items) >= self._limit
        mean = max(sum(len(item.data) for item in items) // len(items), 1)
        self._limit = min(max(BATCH_BYTES // mean, 1), BATCH)
        return full  # a batch that is not full had all there was: the next may gather


def _wait_after(failures: int) -> float:
    return min(FIRST_WAIT * 2.0 ** min(failures - 1, 16), LONGEST_WAIT)

"""A sink follows the item log: read a batch, write it durably, move the cursor, in this order.

Killed between the write and the cursor, it starts from the old cursor, and the sink cuts itself back to the state that was
stored with it. A sink that is slow or down holds up nobody; it is tried again, and its lag and last error can be seen.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from types import TracebackType
from typing import Self

from gossamer.model.errors import GossamerError
from gossamer.ports.frontier import ItemLog
from gossamer.ports.sinks import ItemSink

log = logging.getLogger("gossamer")

BATCH = 5_000
GATHER = 0.25  # seconds in which items of many settles become one write
FIRST_WAIT, LONGEST_WAIT = 0.2, 30.0  # between attempts of a sink that fails


class SinkFollower:
    """Brings the items of one task to one sink, exactly as often as the sink can promise."""

    def __init__(self, store: ItemLog, sink: ItemSink, task: str, name: str, partition: int = 0) -> None:
        self._log = store
        self._sink = sink
        self._task = task
        self._name = name
        self._partition = partition
        self._wake = asyncio.Event()
        self._number = 0
        self._noticed = 0  # items that settled since the last read, as far as this process knows
        self._every: float | None = None
        self._runner: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()
        self.written = 0
        self.last_error = ""

    @property
    def lag(self) -> int:
        """Items that are known to be settled and not yet in the sink."""
        return self._noticed

    async def __aenter__(self) -> Self:
        self._number, state = await self._log.cursor(self._task, self._partition, self._name)
        await self._sink.open(self._number, state)
        self._runner = asyncio.create_task(self._follow())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._runner is not None:
            self._runner.cancel()
            await asyncio.gather(self._runner, return_exceptions=True)
        await self._sink.close()

    def notify(self, items: int = 1) -> None:
        """Items were settled."""
        self._noticed += items
        self._wake.set()

    def poll_every(self, seconds: float) -> None:
        """Look by itself too: others settle, who cannot notify this process."""
        self._every = seconds
        self._wake.set()

    async def drain(self) -> None:
        """Write everything that is in the log now. Raises what the sink raises."""
        while await self._step():
            pass

    async def _follow(self) -> None:
        wait = FIRST_WAIT
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), self._every)
            self._wake.clear()
            try:
                while await self._step():
                    pass
                wait, self.last_error = FIRST_WAIT, ""
                await asyncio.sleep(GATHER)
            except (GossamerError, OSError) as error:
                self.last_error = str(error)
                log.warning("the sink %s fails, and is tried again in %.1f s: %s", self._name, wait, error)
                await asyncio.sleep(wait)
                wait = min(wait * 2, LONGEST_WAIT)
                self._wake.set()

    async def _step(self) -> bool:
        """One batch; False when there was nothing to write."""
        async with self._turn:
            before = self._noticed
            items = await self._log.read(self._task, self._partition, self._number, BATCH)
            if not items:
                self._noticed -= min(before, self._noticed)
                return False
            state = await self._sink.write(items)
            await self._log.advance(self._task, self._partition, self._name, items[-1][0], state)
            self._number = items[-1][0]
            self._noticed = max(0, self._noticed - len(items))
            self.written += len(items)
            return True

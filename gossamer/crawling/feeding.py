"""Seeds into the frontier, in chunks and never far ahead, so that an endless source costs neither memory nor disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from gossamer.crawling.outlinks import Refusals
from gossamer.crawling.runtime import Runtime
from gossamer.model.record import Link
from gossamer.model.request import Request
from gossamer.model.task import Command, TaskEnded
from gossamer.model.url import shown
from gossamer.ports.clock import Clock
from gossamer.ports.frontier import Frontier
from gossamer.spiders.seeds import Seed, read_seeds

log = logging.getLogger("gossamer")

CHUNK = 1_000
ENOUGH = 50_000  # pending records at which the source is not asked for more
LOOK_AGAIN = 0.2
STRETCH = 0.05  # seconds that a source may be read without a look at anything else
TOLD = 5  # refused seeds that are told one by one


class Feeder:
    """Pushes what a spider starts from. Pushed again after a crash, known seeds change nothing.

    `on_all_refused` is called when the source has ended and gave nothing but refused seeds; what it raises ends the run before
    the task may complete.
    """

    def __init__(
        self,
        frontier: Frontier,
        runtime: Runtime,
        clock: Clock,
        on_all_refused: Callable[[Refusals], None] = lambda _: None,
    ) -> None:
        self._frontier = frontier
        self._runtime = runtime
        self._clock = clock
        self.pushed = 0
        self.refused = 0
        # A seed that is refused becomes no record, so the store has nothing to count: its account is kept here.
        self.refusals = Refusals()
        self._on_all_refused = on_all_refused

    async def run(self) -> None:
        """Until the source ends; then the task may complete."""
        try:
            async with contextlib.aclosing(in_chunks(read_seeds(self._runtime.spider.start))) as chunks:
                async for seeds in chunks:
                    links: list[Link] = []
                    for seed in seeds:
                        links += self._links(seed if isinstance(seed, Request) else Request(seed))
                    await self._push(links)
            if self.refused and not self.pushed and not await self._has_records():
                self._on_all_refused(self.refusals)
            await self._frontier.control(self._runtime.name, Command.SEEDED)
        except TaskEnded:
            return  # a limit was reached, or it was cancelled: no more seeds are wanted

    def _links(self, request: Request) -> list[Link]:
        refusals = Refusals()
        links = self._runtime.outlinks.of_request(request, 0, refusals)
        for name, url in refusals.samples:
            cause = name.partition(":")[2]
            self.refusals.add(cause, shown(url))
            self.refused += 1
            if self.refused <= TOLD:
                log.warning("seed refused (%s): %s", cause, shown(url))
        return links

    async def _has_records(self) -> bool:
        """Of an earlier run, or of the author's `started` hook."""
        return (await self._frontier.counters(self._runtime.name))["discovered"] > 0

    async def _push(self, links: list[Link]) -> None:
        if not links:
            return
        answer = await self._frontier.push(self._runtime.name, links)
        self.pushed += len(links)
        if answer.new:
            while (await self._frontier.counters(self._runtime.name))["pending"] > ENOUGH:
                await self._clock.sleep(LOOK_AGAIN)


async def in_chunks(seeds: AsyncIterator[Seed]) -> AsyncGenerator[list[Seed], None]:
    """What is there, as soon as something is: one seed of a slow source, up to CHUNK of a quick one."""
    waiting: asyncio.Queue[Seed | None] = asyncio.Queue(CHUNK)

    async def read() -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        try:
            async for seed in seeds:
                await waiting.put(seed)
                if loop.time() - since > STRETCH:  # a source that never awaits would keep the loop to itself
                    await asyncio.sleep(0)
                    since = loop.time()
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # we are a task
                raise
            await waiting.put(None)
            raise
        except BaseException:
            await waiting.put(None)
            raise
        await waiting.put(None)

    reading = asyncio.create_task(read())
    try:
        more = True
        while more:
            chunk = [await waiting.get()]
            while not waiting.empty():
                chunk.append(waiting.get_nowait())
            more = chunk[-1] is not None
            if seeds_there := [seed for seed in chunk if seed is not None]:
                yield seeds_there
        await reading  # a source that failed says so here, after all that it gave is pushed
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

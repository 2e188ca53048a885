"""Seeds into the frontier, in chunks and never far ahead, so that an endless source costs neither memory nor disk."""

from __future__ import annotations

import logging

from gossamer.crawling.outlinks import Refusals
from gossamer.crawling.runtime import Runtime
from gossamer.model.record import Link
from gossamer.model.request import Request
from gossamer.model.task import Command, TaskEnded
from gossamer.ports.clock import Clock
from gossamer.ports.frontier import Frontier
from gossamer.spiders.seeds import read_seeds

log = logging.getLogger("gossamer")

CHUNK = 1_000
ENOUGH = 50_000  # pending records at which the source is not asked for more
LOOK_AGAIN = 0.2
TOLD = 5  # refused seeds that are told one by one


class Feeder:
    """Pushes what a spider starts from. Pushed again after a crash, known seeds change nothing."""

    def __init__(self, frontier: Frontier, runtime: Runtime, clock: Clock) -> None:
        self._frontier = frontier
        self._runtime = runtime
        self._clock = clock
        self.pushed = 0
        self.refused = 0

    async def run(self) -> None:
        """Until the source ends; then the task may complete."""
        chunk: list[Link] = []
        try:
            async for seed in read_seeds(self._runtime.spider.start):
                chunk += self._links(seed if isinstance(seed, Request) else Request(seed))
                if len(chunk) >= CHUNK or self.pushed == 0:
                    await self._push(chunk)
                    chunk = []
            await self._push(chunk)
            await self._frontier.control(self._runtime.name, Command.SEEDED)
        except TaskEnded:
            return  # a limit was reached, or it was cancelled: no more seeds are wanted

    def _links(self, request: Request) -> list[Link]:
        refusals = Refusals()
        links = self._runtime.outlinks.of_request(request, 0, refusals)
        for cause in refusals.counts:
            self.refused += 1
            if self.refused <= TOLD:
                log.warning("seed refused (%s): %s", cause.partition(":")[2], request.url)
        return links

    async def _push(self, links: list[Link]) -> None:
        if not links:
            return
        answer = await self._frontier.push(self._runtime.name, links)
        self.pushed += len(links)
        if answer.new:
            while (await self._frontier.counters(self._runtime.name))["pending"] > ENOUGH:
                await self._clock.sleep(LOOK_AGAIN)

"""A clock that stands still until the test moves it."""

from __future__ import annotations

import asyncio
import heapq
from itertools import count


class FakeClock:
    """`ports.clock.Clock` for tests: time passes by `advance` alone, and sleepers wake in order."""

    def __init__(self, now: float = 1_000.0, wall: float = 1_700_000_000.0) -> None:
        self._now = now
        self._wall = wall
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._wall

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        awake = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._order), awake))
        await awake

    def advance(self, seconds: float) -> None:
        """Let time pass. Sleepers that are due run when the test next awaits."""
        if seconds < 0:
            raise ValueError(
                f"time only moves forward, not by {seconds}; to move the wall clock back, use leap"
            )
        self._now += seconds
        self._wall += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            _, _, awake = heapq.heappop(self._sleepers)
            if not awake.done():
                awake.set_result(None)

    def leap(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator or a time server does; `now` does not notice."""
        self._wall += seconds

"""Time as a promise, so that tests move it and nobody sleeps for luck."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Two readings: one that never jumps, one that people read."""

    def now(self) -> float:
        """Seconds that only move forward, also while the machine sleeps."""

    def wall(self) -> float:
        """Seconds since 1970, as far as this machine knows."""

    async def sleep(self, seconds: float) -> None:
        """Return when `now` has advanced by so much."""

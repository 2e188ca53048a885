"""How long a crawl will still take, where that can be known.

A crawl discovers its own work, so most of the time nobody can know. Two cases can: a bound on the pages, and a
queue that shrinks. Anything else is answered with None rather than with a guess that jumps.
"""

from __future__ import annotations

from collections import deque

WINDOW = 20.0
"""Seconds that are looked back: long enough to be calm, short enough to follow a change."""
ENOUGH = 3.0
"""Seconds that must have been seen before anything is said."""
STEADY = 0.1
"""The queue must shrink by at least this share of the rate; less is noise."""


class TimeLeft:
    """Fed with what the crawl looks like now, answers with the seconds that are left."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque(maxlen=256)

    def seen(self, seconds: float, pages: int, waiting: int) -> None:
        self._seen.append((seconds, pages, waiting))
        while seconds - self._seen[0][0] > WINDOW:
            self._seen.popleft()

    def left(self, max_pages: int | None = None) -> float | None:
        """Seconds, or None where it cannot be known."""
        if not self._seen:
            return None
        (start, pages_then, waiting_then), (now, pages, waiting) = self._seen[0], self._seen[-1]
        if waiting == 0:
            return 0.0
        span = now - start
        if span < ENOUGH or pages <= pages_then:
            return None
        speed = (pages - pages_then) / span
        ends = []
        if max_pages is not None:
            ends.append(max(0, max_pages - pages) / speed)
        shrinking = (waiting_then - waiting) / span
        if shrinking >= STEADY * speed:
            ends.append(waiting / shrinking)
        return min(ends, default=None)

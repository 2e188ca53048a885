"""Who is stuck: a handler that never gives the loop back is seen from a thread, and its process is replaced.

The loop tells when it enters and leaves an author's code; the thread only looks at the clock. What "replaced" means is the
caller's: a worker under a supervisor just ends, a single one starts itself anew. The records it held become suspects.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LOOK_EVERY = 0.5


class Pulse:
    """Watches the hard time limit of handlers from beside the loop."""

    def __init__(self, limit: float, on_stuck: Callable[[str, float], None]) -> None:
        self._limit = limit
        self._on_stuck = on_stuck
        self._entered: float | None = None
        self._where = ""
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._watch, name="handler-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def enter(self, where: str) -> None:
        """The author's code begins, for this URL."""
        self._where = where
        self._entered = time.monotonic()

    def leave(self) -> None:
        self._entered = None

    def _watch(self) -> None:
        while not self._stop.wait(min(LOOK_EVERY, self._limit / 4)):
            entered = self._entered
            if entered is not None and time.monotonic() - entered > self._limit:
                self._on_stuck(self._where, time.monotonic() - entered)
                return

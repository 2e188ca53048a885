"""Who is stuck: author's code that never gives the loop back is seen from a thread, and its process is replaced.

Whatever shows that the loop turns is noted with the time: a timer on the loop, and each page whose handler begins or ends (of
many that are handled in one turn of the loop, each has the whole limit). The thread only looks at the clock. What "replaced"
means is the caller's: a worker under a supervisor just ends, a single one starts itself anew. The records it held become suspects.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

LOOK_EVERY = 0.5
PAUSED = (
    1.0  # seconds by which the thread itself may be late before the whole process was stopped, not its loop
)


class Pulse:
    """Watches the hard time limit of handlers, hooks and middlewares from beside the loop."""

    def __init__(self, limit: float, on_stuck: Callable[[str, float], None]) -> None:
        self._limit = limit
        self._on_stuck = on_stuck
        self._every = min(LOOK_EVERY, limit / 4)
        self._moved = 0.0
        self._where = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Watch the loop that runs now; without one, only what is entered and not left."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            self._loop = None
        else:
            self._beat()
        self._thread = threading.Thread(target=self._watch, name="handler-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._timer is not None:
            self._timer.cancel()
        if self._thread is not None:
            self._thread.join()

    def enter(self, where: str) -> None:
        """The author's code begins, for this URL."""
        self._where = where
        self._moved = time.monotonic()

    def leave(self) -> None:
        self._where = ""
        self._moved = time.monotonic()

    def _beat(self) -> None:
        self._moved = time.monotonic()
        assert self._loop is not None
        self._timer = self._loop.call_later(self._every, self._beat)

    def _watch(self) -> None:
        looked, worked = time.monotonic(), time.process_time()
        while not self._stop.wait(self._every):
            before, looked = looked, time.monotonic()
            before_work, worked = worked, time.process_time()
            late = looked - before - self._every
            # Late because the process was stopped, not because something kept the interpreter busy all the while.
            if late > PAUSED and worked - before_work < late / 2:
                self._moved = looked
            still = looked - self._moved
            if still > self._limit and (self._where or self._loop is not None):
                self._on_stuck(self._where or self._running(), still)
                return

    def _running(self) -> str:
        """What the loop was given to do: visits bear the name of their URL."""
        task = asyncio.current_task(self._loop) if self._loop is not None else None
        name = task.get_name() if task is not None else "Task-"
        return "a hook, a middleware or a start" if name.startswith("Task-") else name

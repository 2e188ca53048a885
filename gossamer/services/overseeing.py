"""Watching a task while it runs: figures for the view, its time limit, the author's hooks, and its end."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from gossamer.crawling.limits import reached
from gossamer.crawling.outlinks import Refusals
from gossamer.crawling.runtime import Runtime
from gossamer.model.errors import TaskFailed
from gossamer.model.record import Link
from gossamer.model.request import Request
from gossamer.model.task import ENDED, Command, IllegalChange, TaskState, TaskView
from gossamer.ports.clock import Clock
from gossamer.ports.frontier import Frontier
from gossamer.services.progress import Snapshot, View
from gossamer.spiders.effects import Effects
from gossamer.spiders.failing import HandlerFailed
from gossamer.spiders.follow import Follow

log = logging.getLogger("gossamer")

LOOK_EVERY = 0.4
RATE_OVER = 5.0  # seconds over which rates are told


class Overseer:
    """Looks at the task a few times a second until it ends."""

    def __init__(
        self,
        frontier: Frontier,
        runtime: Runtime,
        clock: Clock,
        view: View,
        *,
        workers: int = 1,
        lag: Callable[[], int] = lambda: 0,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self._frontier = frontier
        self._runtime = runtime
        self._clock = clock
        self._view = view
        self._workers = workers
        self._lag = lag
        self._wake = wake
        self._began = clock.now()
        self._history: deque[tuple[float, int, int]] = deque()
        self.note = ""
        self.counters: dict[str, int] = {}
        self.ended = asyncio.Event()

    @property
    def seconds(self) -> float:
        return self._clock.now() - self._began

    async def run(self) -> TaskView:
        """Until the task has ended; the task as it ended."""
        while True:
            task = await self.look()
            if task.state in ENDED:
                self.ended.set()
                return task
            await self._clock.sleep(LOOK_EVERY)

    async def look(self) -> TaskView:
        """Once: show the figures, obey the time limit."""
        name = self._runtime.name
        task = await self._task(name)
        self.counters = await self._frontier.counters(name)
        self._view.update(self._snapshot(task))
        if task.state in ENDED:
            return task
        order = reached(self._runtime.settings, task.opened_ago)
        if order is not None:
            return await self._order(*order)
        if self._is_idle(task):
            await self._idle()
        return task

    async def _task(self, name: str) -> TaskView:
        found = await self._frontier.tasks([name])
        if not found:
            raise TaskFailed(
                f"The store does not have the task {name!r} any more",
                hint="somebody forgot it, or the store came back empty; the same command begins it anew",
            )
        return found[0]

    async def _order(self, command: Command, reason: str) -> TaskView:
        try:
            return await self._frontier.control(self._runtime.name, command, reason=reason)
        except IllegalChange:  # it has just ended by itself
            return await self._task(self._runtime.name)

    def _is_idle(self, task: TaskView) -> bool:
        # A task that was opened to stay open ends by `gossamer close`; the author's hook closes only its own.
        running = task.state is TaskState.RUNNING and bool(self._runtime.spider.hooks.idle)
        return running and task.spec.keep_open and not task.seeding and task.pending == 0 and task.leased == 0

    async def _idle(self) -> None:
        """Nothing is left: the author's idle hook may ask for more; if it does not, the task is complete."""
        spider = self._runtime.spider
        try:
            effects = await spider.call("idle")
        except HandlerFailed as error:
            log.error("the idle hook failed: %s", error)
            await self._order(Command.FAIL, "idle_hook")
            return
        links = links_of(self._runtime, effects)
        if links and (await self._frontier.push(self._runtime.name, links)).new:
            self._wake()
            return
        await self._order(Command.FINISH, "")

    def _snapshot(self, task: TaskView) -> Snapshot:
        counters, now = self.counters, self.seconds
        self._history.append((now, counters["pages"], counters["bytes"]))
        while len(self._history) > 2 and now - self._history[0][0] > RATE_OVER:
            self._history.popleft()
        then, pages, size = self._history[0]
        span = max(now - then, 1e-3)
        return Snapshot(
            task=task.spec.name,
            state=task.state.value,
            seconds=now,
            pages=counters["pages"],
            items=counters["items"],
            failed=counters["failed"],
            skipped=counters["skipped"],
            retried=counters["retried"],
            pending=counters["pending"],
            leased=counters["leased"],
            bytes=counters["bytes"],
            errors={name.partition(":")[2]: n for name, n in counters.items() if name.startswith("failed:")},
            page_rate=(counters["pages"] - pages) / span if now > then else 0.0,
            byte_rate=(counters["bytes"] - size) / span if now > then else 0.0,
            workers=self._workers,
            sink_lag=self._lag(),
            max_pages=self._runtime.settings.max_pages,
            note=self.note,
        )


def links_of(runtime: Runtime, effects: Effects) -> list[Link]:
    """The links that a hook asked for, as seeds."""
    refusals = Refusals()
    links: list[Link] = []
    for wanted in effects.follows:
        requests: list[Request] = list(wanted) if isinstance(wanted, Follow) else [wanted]
        for request in requests:
            links += runtime.outlinks.of_request(request, 0, refusals)
    return links

"""`gossamer worker`: serve whatever tasks a shared frontier has and this machine has the code for.

The life of a task here: it is seen RUNNING → its labels are compared with ours → its spider is looked up among the projects,
by name and digest → a runtime of its own is made, with its settings and its transport → the worker shares its slots between
all that it serves → the task ends, and its runtime goes. A task whose code is not here is left alone, and that is said once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from gossamer.crawling.handling import Handling
from gossamer.crawling.pulse import Pulse
from gossamer.crawling.runtime import Runtime
from gossamer.crawling.worker import Worker
from gossamer.model.errors import GossamerError
from gossamer.model.settings import Settings
from gossamer.model.task import TaskSpec, TaskState, TaskView
from gossamer.ports.frontier import Frontier
from gossamer.ports.transport import Transport
from gossamer.services import projects
from gossamer.services.bodies import BLOBS
from gossamer.services.crew import Duty, Role, leave_in_time, stuck
from gossamer.services.heap import keep_heap
from gossamer.services.simple import simple_spider
from gossamer.services.strangers import Telling
from gossamer.services.submission import Kept, read_kept
from gossamer.services.wiring import SystemClock, open_cache, open_frontier, open_transport
from gossamer.spiders.spider import Spider

log = logging.getLogger("gossamer")

LOOK_EVERY = 1.0
HANDLER_HARD = Settings().handler_hard


class Serving:
    """One worker and the tasks that it was given."""

    def __init__(self, frontier: Frontier, worker: Worker, role: Role) -> None:
        self._frontier = frontier
        self._worker = worker
        self._role = role
        self._spiders: dict[str, tuple[Path, str]] = {}
        self._left_alone: dict[str, str] = {}  # task → why
        self._stacks: dict[str, list[AsyncExitStack]] = {}  # the last one is of the settings as they are
        self._specs: dict[str, TaskSpec] = {}
        for target in role.projects:
            self._spiders |= projects.Project(target).spiders()

    async def run(self) -> None:
        """Look for tasks until cancelled."""
        try:
            while True:
                await self.look()
                await asyncio.sleep(LOOK_EVERY)
        finally:
            for name in list(self._stacks):
                await self._close(name)

    async def look(self) -> None:
        """Take up what is new, take over what has changed, let go of what has ended."""
        running = {view.spec.name: view for view in await self._frontier.tasks() if self._is_ours(view)}
        for name in [name for name in self._stacks if name not in self._worker.runtimes]:
            await self._close(name)
        for name in [name for name in self._specs if name not in running and name not in self._stacks]:
            del self._specs[name]  # it was left alone, and has ended
        for name, view in running.items():
            # Where its settings have changed, what is open is finished under the old ones.
            if self._specs.get(name) != view.spec:
                await self._take_up(view)

    def _is_ours(self, view: TaskView) -> bool:
        named = not self._role.tasks or view.spec.name in self._role.tasks
        return named and view.state is TaskState.RUNNING and set(view.spec.needs) <= set(self._role.labels)

    async def _take_up(self, view: TaskView) -> None:
        name, stack = view.spec.name, AsyncExitStack()
        try:
            kept = read_kept(view.spec)
            spider = self._spider(kept)
            runtime = runtime_of(view.spec, spider, narrowed(kept, self._role), self._frontier.incarnation)
            transport: Transport = await stack.enter_async_context(
                Telling(open_transport(runtime.settings), runtime.settings.host_patience)
            )
        except (GossamerError, msgspec.DecodeError) as error:
            await stack.aclose()
            self._specs[name] = view.spec
            self._leave_alone(name, str(error))
            return
        self._left_alone.pop(name, None)
        self._stacks.setdefault(name, []).append(stack)
        self._specs[name] = view.spec
        self._worker.add(runtime, transport)
        log.info("works on %s", name)

    def _leave_alone(self, name: str, why: str) -> None:
        if self._left_alone.get(name) != why:
            self._left_alone[name] = why
            log.warning("leaves the task %s alone: %s", name, why)

    def _spider(self, kept: Kept) -> Spider:
        """Raises GossamerError where the task's code is not here, or is other code."""
        code = kept.code
        if code is None:
            raise GossamerError(
                "it was submitted by an older Gossamer, which does not say whose handlers it wants"
            )
        if not code.digest:
            return simple_spider(code.spider, code.urls, code.select, follow=code.follow)
        file, digest = self._spiders.get(code.spider, (None, ""))
        if file is None:
            raise GossamerError(f"no --project here has a spider {code.spider!r}")
        if digest != code.digest:
            raise GossamerError(
                f"the spider {code.spider!r} of {file} is other code ({digest[:8]}) than it was submitted with "
                f"({code.digest[:8]}); bring the same files here and start this worker anew"
            )
        spider = projects.load(file, code.spider)
        spider.fix_args(code.args)
        return spider

    async def _close(self, name: str) -> None:
        self._specs.pop(name, None)
        for stack in self._stacks.pop(name):
            with contextlib.suppress(GossamerError):
                await stack.aclose()


def runtime_of(spec: TaskSpec, spider: Spider, kept: Kept, incarnation: str) -> Runtime:
    return Runtime(
        spec, spider, kept.settings, incarnation=incarnation, hosts=kept.hosts, home=kept.home,
        cache=open_cache(kept.settings),
    )  # fmt: skip


def narrowed(kept: Kept, role: Role) -> Kept:
    """A worker's profile narrows what the frontier grants, and never widens it."""
    settings = kept.settings
    if role.delay > (settings.delay or 0.0):
        settings = msgspec.structs.replace(settings, delay=role.delay)
    if role.proxy is not None and settings.proxy is None:
        settings = msgspec.structs.replace(settings, proxy=role.proxy)
    return msgspec.structs.replace(kept, settings=settings)


async def serve(duty: Duty, role: Role) -> None:
    """One process of `gossamer worker`, until it is told to stop."""
    from gossamer.backends.files.blobs import FileBlobs

    keep_heap()
    log.setLevel(logging.INFO)
    name = f"{platform.node()}-{os.getpid()}"
    async with open_frontier(Path(duty.state), duty.frontier, duty.namespace) as frontier:
        pulse = Pulse(HANDLER_HARD, stuck)
        async with AsyncExitStack() as stack:
            transport = await stack.enter_async_context(open_transport(Settings()))
            blobs = await stack.enter_async_context(FileBlobs(Path(duty.state) / BLOBS))
            pulse.start()
            stack.callback(pulse.stop)
            worker = Worker(
                frontier, transport, {}, Handling(pulse), SystemClock(),
                concurrency=role.concurrency, name=name, blobs=blobs, lasting=True,
            )  # fmt: skip
            serving = Serving(frontier, worker, role)
            for number in (signal.SIGTERM, signal.SIGINT):
                asyncio.get_running_loop().add_signal_handler(number, leave_in_time, worker)
            looking = asyncio.create_task(serving.run())
            working = asyncio.create_task(worker.run())
            try:
                done, _ = await asyncio.wait((looking, working), return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                looking.cancel()
                worker.stop()
                await asyncio.gather(looking, working, return_exceptions=True)

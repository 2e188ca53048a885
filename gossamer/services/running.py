"""Running one task here: the frontier of a state folder, a worker or a crew of them, sinks, progress, and a clean end.

The order of things matters at both ends. Opened first is what others depend on; at the end the worker drains before the
sink reads the last items, and the sink is done before the frontier closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gossamer.crawling.feeding import Feeder
from gossamer.crawling.followers import SinkFollower
from gossamer.crawling.handling import Handling
from gossamer.crawling.pulse import Pulse
from gossamer.crawling.runtime import Runtime
from gossamer.crawling.worker import Worker
from gossamer.model.errors import UsageError
from gossamer.model.record import Outcome
from gossamer.model.task import ENDED, Command, TaskSpec, TaskView
from gossamer.ports.frontier import Frontier
from gossamer.services.crew import Crew, Duty, duty_of
from gossamer.services.heap import keep_heap
from gossamer.services.overseeing import Overseer, links_of
from gossamer.services.progress import View, ViewHandler, make_view
from gossamer.services.submission import Kept, name_with, read_kept, spec_of
from gossamer.services.summary import Ending, report
from gossamer.services.wiring import (
    SystemClock,
    discard_state,
    has_state,
    open_cache,
    open_frontier,
    open_sink,
    open_transport,
)

if TYPE_CHECKING:
    from gossamer.services.options import RunOptions
    from gossamer.spiders import Spider

T = TypeVar("T")
log = logging.getLogger("gossamer")

BLOBS = "blobs"


def crawl(options: RunOptions) -> int:
    """`gossamer crawl`: the exit code."""
    from gossamer.model.url import canonical, origin_of
    from gossamer.services.simple import simple_spider

    settings = options.resolve()
    urls = [canonical(url) for url in options.urls]
    name = name_with(
        origin_of(urls[0]).host.strip("[]"), urls, sorted(options.select.items()), settings.settings.follow
    )
    spider = simple_spider(name, urls, options.select, follow=settings.settings.follow)
    duty = duty_of(
        str(options.state), name, urls=tuple(urls), select=options.select, follow=settings.settings.follow
    )
    return conduct(spider, name, settings.settings, options, duty)


def run(options: RunOptions) -> int:
    """`gossamer run FILE`: the exit code."""
    from gossamer.services.loading import load_spider
    from gossamer.services.submission import hosts_of_seeds

    assert options.file is not None
    spider = load_spider(options.file)
    spider.use_args(options.args)
    loaded = options.resolve(
        spider.settings, spider=spider.name, seed_hosts=lambda known: hosts_of_seeds(spider, known)[0]
    )
    name = name_with(spider.name, sorted(options.args.items())) if options.args else spider.name
    duty = duty_of(str(options.state), name, file=options.file, args=options.args)
    return conduct(spider, name, loaded.settings, options, duty)


def spider_for(duty: Duty) -> Spider:
    """The spider of a crew's duty."""
    from gossamer.services.loading import load_spider
    from gossamer.services.simple import simple_spider

    if duty.file is None:
        return simple_spider(duty.task, duty.urls, duty.select, follow=duty.follow)
    spider = load_spider(duty.file)
    spider.use_args(duty.args)
    return spider


def conduct(spider: Spider, name: str, settings: Any, options: RunOptions, duty: Duty | None) -> int:
    """Run the task in this terminal; report how it ended."""
    spec = spec_of(name, spider, settings, options.output_for(name))
    view = make_view(quiet=options.quiet)
    quiet_log(view, settings.log_level)
    performance = Performance(
        spider, spec, options.state, options.output_for(name), view, fresh=options.fresh
    )
    performance.workers = options.workers
    performance.duty = duty
    performance.signals = True
    with view:
        ending = run_loop(performance.run())
    report(ending, as_json=options.json, quiet=options.quiet)
    return int(ending.exit_code)


def run_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run on uvloop where there is one."""
    try:
        import uvloop
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)


def quiet_log(view: View, level: str) -> None:
    """Log lines go through the view, so that they never tear the panel."""
    handler = ViewHandler(view)
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


class Performance:
    """One run of one task: from opening its frontier to its ending."""

    def __init__(
        self, spider: Spider, spec: TaskSpec, state: Path, output: Path, view: View, *, fresh: bool = False
    ) -> None:
        self.spider = spider
        self.spec = spec
        self.state = state
        self.output = output
        self.view = view
        self.fresh = fresh
        self.workers = 1
        self.duty: Duty | None = None
        self.signals = False
        self.clock = SystemClock()
        self.interrupted = False
        self._before = 0  # pages of earlier runs
        self._started = self.clock.now()
        self._overseer: Overseer | None = None
        self._stops: list[Callable[[], None]] = []
        self._kills: list[Callable[[], None]] = []

    async def run(self) -> Ending:
        if self.fresh:
            await self._begin_anew()
        async with open_frontier(self.state) as frontier:
            task = await frontier.open_task(self.spec)
            self._before = (await frontier.counters(self.spec.name))["pages"]
            finished = task.state in ENDED
            kept = read_kept(self.spec)
            check_output(task, kept)
            if not finished:
                await frontier.control(self.spec.name, Command.UPDATE, spec=self.spec)
            elif await self._is_written(frontier):
                return await self._ending(frontier, task, already=True)
            async with SinkFollower(
                frontier, open_sink(self.output), self.spec.name, self._sink_name
            ) as follower:
                if not finished:
                    task = await self._work(frontier, kept, follower)
                await follower.drain()
            return await self._ending(frontier, task, already=finished)

    def stop(self) -> None:
        """First Ctrl-C: finish what is open, then leave. A second one leaves at once; nothing is lost either way."""
        if self.interrupted:
            for kill in self._kills:
                kill()
            self.view.close()
            os._exit(130)
        self.interrupted = True
        if self._overseer is not None:
            self._overseer.note = (
                "Finishing the open pages; press Ctrl-C again to leave at once (nothing is lost)."
            )
        for stop in self._stops:
            stop()

    # The parts

    async def _begin_anew(self) -> None:
        if has_state(self.state):
            others: list[TaskView] = []
            with contextlib.suppress(Exception):  # a broken state is what --fresh is for
                async with open_frontier(self.state) as frontier:
                    others = [view for view in await frontier.tasks() if view.spec.name != self.spec.name]
                    if others:
                        await frontier.forget(self.spec.name)
            if not others:
                discard_state(self.state)
        with contextlib.suppress(FileNotFoundError, IsADirectoryError):
            self.output.unlink()

    @property
    def _sink_name(self) -> str:
        return f"jsonl:{read_kept(self.spec).output}"

    async def _is_written(self, frontier: Frontier) -> bool:
        """Whether the sink has everything: then the file need not be there any more."""
        number, _ = await frontier.cursor(self.spec.name, 0, self._sink_name)
        return not await frontier.read(self.spec.name, 0, number, 1)

    async def _work(self, frontier: Frontier, kept: Kept, follower: SinkFollower) -> TaskView:
        """Until the task ends or the run is interrupted."""
        if self.duty is not None and self.workers > 1:
            return await self._work_in_crew(frontier, kept, follower)
        async with worker_parts(
            frontier, self.spec, self.spider, kept, self.state, on_stuck=begin_again if self.signals else None
        ) as worker:
            worker.on_settled = lambda outcomes: self._notice(outcomes, follower)
            runtime = worker.runtimes[self.spec.name]
            self._overseer = Overseer(
                frontier, runtime, self.clock, self.view, lag=lambda: follower.lag, wake=worker.wake
            )
            self._stops.append(worker.stop)
            return await self._together(frontier, runtime, self._overseer, worker.run(), worker.wake)

    async def _work_in_crew(self, frontier: Frontier, kept: Kept, follower: SinkFollower) -> TaskView:
        assert self.duty is not None
        runtime = Runtime(
            self.spec, self.spider, kept.settings, incarnation=frontier.incarnation, hosts=kept.hosts
        )
        crew = Crew(self.duty, self.workers)
        self._overseer = Overseer(
            frontier, runtime, self.clock, self.view, workers=self.workers, lag=lambda: follower.lag
        )
        self._stops.append(crew.stop)
        self._kills.append(crew.kill)
        follower.poll_every(0.2)  # items are settled by the children, who cannot wake this follower
        return await self._together(frontier, runtime, self._overseer, crew.run(), lambda: None)

    async def _together(
        self,
        frontier: Frontier,
        runtime: Runtime,
        overseer: Overseer,
        working: Coroutine[Any, Any, None],
        wake: Callable[[], None],
    ) -> TaskView:
        """Feed, work and watch at once, until the work is over."""
        if self.signals:
            for name in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(name, self.stop)
        if runtime.settings.proxy:
            log.warning(
                "Behind a proxy only addresses that are written as numbers can be checked; names are the proxy's to refuse."
            )
        if self.spider.hooks.started:
            links = links_of(runtime, await self.spider.call("started"))
            await frontier.push(self.spec.name, links)
        feeder = asyncio.create_task(Feeder(frontier, runtime, self.clock).run())
        watch = asyncio.create_task(overseer.run())
        work = asyncio.create_task(working)
        helpers = {feeder, watch}
        try:
            pending: set[asyncio.Task[Any]] = {work, *helpers}
            while not work.done():
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()  # a fault of any part ends the run with its error
                if feeder in done:
                    wake()
            return await overseer.look()
        finally:
            for task in (work, *helpers):
                task.cancel()
            await asyncio.gather(work, *helpers, return_exceptions=True)

    def _notice(self, outcomes: list[Outcome], follower: SinkFollower) -> None:
        if any(outcome.items for outcome in outcomes):
            follower.notify()

    async def _ending(self, frontier: Frontier, task: TaskView, *, already: bool) -> Ending:
        from gossamer.crawling.feeding import refused_seeds
        from gossamer.model.task import TaskState
        from gossamer.services.seeding import nothing_to_start_from

        name = self.spec.name
        [task] = await frontier.tasks([name])
        seeds = refused_seeds(frontier, name)
        if seeds.counts and task.state is TaskState.COMPLETED and not task.discovered:
            await frontier.forget(name)  # else the corrected command would find it complete
            raise nothing_to_start_from(seeds.counts, seeds.samples)
        counters = await frontier.counters(name)
        ending = Ending.of(
            name, task.state.value, counters, await frontier.samples(name), reason=task.reason,
            seconds=self.clock.now() - self._started, pages_before=self._before,
            interrupted=self.interrupted and task.state not in ENDED, output=self.output, state_dir=self.state,
        )  # fmt: skip
        ending.note_seeds(seeds.counts, seeds.samples)
        if already:
            ending.notes.append(
                "This crawl was complete before: nothing was fetched. --fresh starts it anew."
            )
        if self.spider.hooks.ended and task.state in ENDED and not already:
            await self.spider.call("ended", ending)
        return ending


def check_output(task: TaskView, kept: Kept) -> None:
    """A crawl goes on writing where it began: its first items are there, and are not kept twice."""
    before = read_kept(task.spec).output
    if task.discovered and before and before != kept.output:
        raise UsageError(
            f"The items of this crawl go to {before}",
            where=f"--output {kept.output}",
            hint="name the same file, or begin anew with --fresh",
        )


@asynccontextmanager
async def worker_parts(
    frontier: Frontier,
    spec: TaskSpec,
    spider: Spider,
    kept: Kept,
    state: Path,
    *,
    on_stuck: Callable[[str, float], None] | None = None,
) -> AsyncIterator[Worker]:
    """A worker with its transport, blobs and watch, ready to run."""
    from gossamer.backends.files.blobs import FileBlobs

    keep_heap()
    runtime = Runtime(
        spec,
        spider,
        kept.settings,
        incarnation=frontier.incarnation,
        hosts=kept.hosts,
        cache=open_cache(kept.settings),
    )
    pulse = Pulse(kept.settings.handler_hard, on_stuck or only_said)
    async with contextlib.AsyncExitStack() as stack:
        transport = await stack.enter_async_context(open_transport(kept.settings))
        blobs = (
            await stack.enter_async_context(FileBlobs(state / BLOBS)) if kept.settings.keep_bodies else None
        )
        pulse.start()
        stack.callback(pulse.stop)
        yield Worker(
            frontier, transport, {spec.name: runtime}, Handling(pulse), SystemClock(),
            concurrency=kept.settings.concurrency, blobs=blobs,
        )  # fmt: skip


def only_said(where: str, seconds: float) -> None:
    """Where the process is not ours to replace: a notebook, a script."""
    log.error("the handler of %s has not come back for %.0f s", where, seconds)


def begin_again(where: str, seconds: float) -> None:
    """This process is stuck in a handler: become a new one, which goes on where this one was."""
    sys.stderr.write(
        f"\x1b[?25h\ngossamer: the handler of {where} has not come back for {seconds:.0f} s; starting this process anew\n"
        if sys.stderr.isatty()
        else f"gossamer: the handler of {where} has not come back for {seconds:.0f} s; starting this process anew\n"
    )
    sys.stderr.flush()
    arguments = [word for word in sys.argv[1:] if word != "--fresh"]
    os.execv(sys.executable, [sys.executable, "-m", "gossamer.services.cli", *arguments])  # noqa: S606  (this same program)

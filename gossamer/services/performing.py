"""One run of one task, from opening its state to its ending.

The order of things matters at both ends. Opened first is what others depend on; at the end the worker drains before the
sink reads the last items, and the sink is done before the frontier closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import signal
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gossamer.crawling.feeding import Feeder
from gossamer.crawling.followers import SinkFollower
from gossamer.crawling.runtime import Runtime
from gossamer.model.errors import GossamerError, UsageError
from gossamer.model.record import Outcome
from gossamer.model.task import ENDED, Command, TaskSpec, TaskView
from gossamer.ports.frontier import Frontier
from gossamer.services.anew import begin_anew, forget_shared
from gossamer.services.crew import Crew, Duty
from gossamer.services.overseeing import Overseer, links_of
from gossamer.services.progress import View
from gossamer.services.reopening import already_ended, is_raised
from gossamer.services.seeding import nothing_to_start_from
from gossamer.services.submission import Kept, read_kept
from gossamer.services.summary import Ending
from gossamer.services.wiring import SystemClock, holding, open_frontier, open_sink
from gossamer.services.working import begin_again, worker_parts
from gossamer.spiders.seeds import STDIN
from gossamer.spiders.spider import Spider

log = logging.getLogger("gossamer")

READER_GONE = 141  # what a shell says of a process that was ended by SIGPIPE


@dataclass(frozen=True)
class Shared:
    """The frontier of a run that other machines take part in."""

    url: str
    namespace: str = ""
    works: bool = True


class Performance:
    """The parts of a run, and what binds them together."""

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
        self.shared: Shared | None = None
        self.signals = False
        self._keeps_items = True  # this process brings the items to their file
        self.clock = SystemClock()
        self.interrupted = False
        self.began = False
        """Whether pages were asked for: from then on an error is no matter of how the command was written."""
        self._before = 0  # pages of earlier runs
        self._started = self.clock.now()
        self._overseer: Overseer | None = None
        self._feeder: Feeder | None = None
        self._stops: list[Callable[[], None]] = []
        self._kills: list[Callable[[], None]] = []

    async def run(self) -> Ending:
        if self.shared is not None:
            return await self._run_shared(self.shared)
        with holding(self.state, self.spec.name):
            if self.fresh:
                await begin_anew(self.state, self.spec.name, self.output)
            async with open_frontier(self.state) as frontier:
                try:
                    return await self._run(frontier)
                except Exception:
                    await self._leave_no_trace(frontier)
                    raise

    async def _run_shared(self, shared: Shared) -> Ending:
        """Whoever holds the task on the machine that submitted it keeps its items; everybody else works only."""
        name = self.spec.name
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(holding(self.state, name))
            except UsageError:  # this machine does it already: one process more
                self._keeps_items = False
            async with open_frontier(self.state, shared.url, shared.namespace, telling=True) as frontier:
                if self.fresh:
                    await forget_shared(frontier, name, self.output)
                stored = await frontier.open_task(self.spec)
                submitted = read_kept(stored.spec)
                check_code(submitted, read_kept(self.spec), name)
                if submitted.machine != read_kept(self.spec).machine:
                    self._keeps_items = False
                if not self._keeps_items:
                    self.spec = stored.spec
                try:
                    return await self._run(frontier)
                except Exception:
                    if self._keeps_items:
                        await self._leave_no_trace(frontier)
                    raise

    async def _run(self, frontier: Frontier) -> Ending:
        task = await self._opened(frontier)
        finished = task.state in ENDED
        if not self._keeps_items:
            if not finished:
                self.began = True
                task = await self._work(frontier, read_kept(self.spec), None)
            return await self._ending(frontier, task, already=finished)
        if finished and await self._is_written(frontier):
            return await self._ending(frontier, task, already=True)
        sink = open_sink(self.output, self._reader_gone if self.signals else None)
        async with SinkFollower(frontier, sink, self.spec.name, self._sink_name) as follower:
            if self.shared is not None:
                follower.poll_every(0.2)  # items are settled elsewhere, too
            if not finished:
                self.began = True
                task = await self._work(frontier, read_kept(self.spec), follower)
            await follower.drain()
        return await self._ending(frontier, task, already=finished, written=follower.written)

    async def _opened(self, frontier: Frontier) -> TaskView:
        """The task with the settings of this run; one that a limit had ended goes on where the limit is higher now."""
        name, kept = self.spec.name, read_kept(self.spec)
        task = await frontier.open_task(self.spec)
        counters = await frontier.counters(name)
        self._before = counters["pages"]
        if not self._keeps_items:
            return task
        check_output(task, kept)
        raised = is_raised(task, counters, kept.settings)
        if raised or task.state not in ENDED:
            task = await frontier.control(name, Command.UPDATE, spec=self.spec)
        if raised:
            task = await frontier.control(name, Command.RETRY_FAILED)
        return task

    async def _leave_no_trace(self, frontier: Frontier) -> None:
        """A task that was refused before anything was found is none, and must not be listed, nor stop the corrected command."""
        with contextlib.suppress(GossamerError):  # what ended the run is the news
            if any(not task.discovered for task in await frontier.tasks([self.spec.name])):
                await frontier.forget(self.spec.name)

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

    def _reader_gone(self) -> None:
        """`gossamer crawl -o - | head`: whoever read has enough, so all ends at once and quietly. It loses nothing."""
        for kill in self._kills:
            kill()
        self.view.close()
        os._exit(READER_GONE)

    # The parts

    @property
    def _sink_name(self) -> str:
        return f"jsonl:{read_kept(self.spec).output}"

    async def _is_written(self, frontier: Frontier) -> bool:
        """Whether the sink has everything: then the file need not be there any more."""
        number, _ = await frontier.cursor(self.spec.name, 0, self._sink_name)
        return not await frontier.read(self.spec.name, 0, number, 1)

    async def _work(self, frontier: Frontier, kept: Kept, follower: SinkFollower | None) -> TaskView:
        """Until the task ends or the run is interrupted."""
        if self.shared is not None and not self.shared.works:
            return await self._work_elsewhere(frontier, kept, follower)
        # What was read from standard input cannot be read again, so no process that reads it may be replaced for a handler.
        if self.duty is not None and (self.workers > 1 or self.spider.start == STDIN):
            return await self._work_in_crew(frontier, kept, follower)
        async with worker_parts(
            frontier, self.spec, self.spider, kept, self.state, on_stuck=begin_again if self.signals else None
        ) as worker:
            if self.shared is not None:
                worker.name = f"{platform.node()}-{os.getpid()}"
            worker.on_settled = lambda outcomes: self._notice(outcomes, follower)
            runtime = worker.runtimes[self.spec.name]
            self._overseer = Overseer(
                frontier, runtime, self.clock, self.view, lag=lambda: lag_of(follower), wake=worker.wake
            )
            self._stops.append(worker.stop)
            return await self._together(frontier, runtime, self._overseer, worker.run(), worker.wake)

    async def _work_in_crew(self, frontier: Frontier, kept: Kept, follower: SinkFollower | None) -> TaskView:
        assert self.duty is not None
        runtime = self._runtime(frontier, kept)
        crew = Crew(self.duty, self.workers)
        self._overseer = Overseer(
            frontier, runtime, self.clock, self.view, workers=self.workers, lag=lambda: lag_of(follower)
        )
        self._stops.append(crew.stop)
        self._kills.append(crew.kill)
        if follower is not None:
            follower.poll_every(0.2)  # items are settled by the children, who cannot wake this follower
        return await self._together(frontier, runtime, self._overseer, crew.run(), lambda: None)

    async def _work_elsewhere(
        self, frontier: Frontier, kept: Kept, follower: SinkFollower | None
    ) -> TaskView:
        """Feed and follow; the workers are somewhere else."""
        runtime = self._runtime(frontier, kept)
        self._overseer = Overseer(
            frontier, runtime, self.clock, self.view, workers=0, lag=lambda: lag_of(follower)
        )
        stopped = asyncio.Event()
        self._stops.append(stopped.set)
        ended = self._overseer.ended

        async def follow() -> None:
            waits = [asyncio.create_task(event.wait()) for event in (stopped, ended)]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()

        return await self._together(frontier, runtime, self._overseer, follow(), lambda: None)

    def _runtime(self, frontier: Frontier, kept: Kept) -> Runtime:
        """What feeding and the author's hooks need of the task, where no worker of this process has it."""
        return Runtime(
            self.spec,
            self.spider,
            kept.settings,
            incarnation=frontier.incarnation,
            hosts=kept.hosts,
            home=kept.home,
        )

    async def _feed(self, frontier: Frontier) -> None:
        """Push the seeds; again where the store has lost its end since, for it may have lost them too."""
        assert self._feeder is not None
        while True:
            life = frontier.incarnation
            await self._feeder.run()
            if self.shared is None or self.spider.start == STDIN:
                return
            while frontier.incarnation == life:
                await self.clock.sleep(1.0)
            log.warning("the store has lost its end; the seeds are pushed again (known ones change nothing)")

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
        self._feeder = Feeder(frontier, runtime, self.clock, nothing_to_start_from)
        feeder = asyncio.create_task(self._feed(frontier))
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
        except Exception:
            for kill in self._kills:  # the children of a crew work on what may be about to be forgotten
                kill()
            raise
        finally:
            for task in (work, *helpers):
                task.cancel()
            await asyncio.gather(work, *helpers, return_exceptions=True)

    def _notice(self, outcomes: list[Outcome], follower: SinkFollower | None) -> None:
        if follower is not None and any(outcome.items for outcome in outcomes):
            follower.notify()

    async def _ending(self, frontier: Frontier, task: TaskView, *, already: bool, written: int = 0) -> Ending:
        name = self.spec.name
        [task] = await frontier.tasks([name])
        ending = Ending.of(
            name, task.state.value, await frontier.counters(name), await frontier.samples(name), reason=task.reason,
            seconds=self.clock.now() - self._started, pages_before=self._before,
            interrupted=self.interrupted and task.state not in ENDED,
            output=self.output if self._keeps_items else None, state_dir=self.state,
        )  # fmt: skip
        if self._feeder is not None:
            ending.note_seeds(self._feeder.refusals.counts, self._feeder.refusals.samples)
        if already:
            ending.notes.append(already_ended(task, written))
        if not self._keeps_items:
            ending.notes.append(
                f"The items go to {read_kept(self.spec).output} on the machine that submitted the task."
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


def check_code(submitted: Kept, ours: Kept, name: str) -> None:
    """One name is one task: nobody takes part in it with other code, or by another command."""
    if submitted.code == ours.code:
        return
    what = (
        "was submitted with other code"
        if submitted.code and submitted.code.digest
        else "was submitted otherwise"
    )
    raise UsageError(
        f"A task of this name {what}",
        where=f"--task {name}",
        hint="the same command and the same files on all machines; another --task NAME; or --fresh, which forgets it",
    )


def lag_of(follower: SinkFollower | None) -> int:
    return 0 if follower is None else follower.lag

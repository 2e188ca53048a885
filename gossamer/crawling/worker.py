"""One worker: pulls as much as it has free slots for, visits, settles, and stops cleanly.

Back-pressure is in the pull: nothing is leased that there is no slot for. The worker holds one session; if that is lost (the
machine slept, the store was away), everything in flight is given up, for the store has given it to others already, and a new
session begins. So it does when the store has lost its end: what the worker knew to be enqueued may be gone with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping

from gossamer.crawling.handling import Handling
from gossamer.crawling.rules import Rules
from gossamer.crawling.runtime import Runtime
from gossamer.crawling.settler import Settler
from gossamer.crawling.sharing import share
from gossamer.crawling.visit import Visited, Visits
from gossamer.model.host import HostView
from gossamer.model.record import Grant, Kind, Leases, Outcome, Verdict
from gossamer.model.task import SessionLost, TaskState
from gossamer.ports.blobs import BlobStore
from gossamer.ports.clock import Clock
from gossamer.ports.frontier import Frontier
from gossamer.ports.transport import Transport
from gossamer.spiders.effects import Effects
from gossamer.spiders.failing import HandlerFailed

log = logging.getLogger("gossamer")

BEAT_EVERY = 2.0
CLOSE_AFTER = 7.0  # without a confirmed beat for so long, the worker must not speak to any host
LOOK_AGAIN = (
    0.5  # seconds at most between two looks at the store: others may push, settle, pause, resume, cancel
)
GOODBYE = 5.0  # seconds that the store is given to take the leases back; a session that is not closed ends by its silence
DRAIN = 25.0  # seconds that open exchanges are given when the worker is told to stop
AHEAD = 2.0  # leases held beyond the open exchanges, as a share of them: what the settle in flight would make us wait for
PLENTY = (
    0.7  # with more leases than that, as the same share, waiting to be begun, a settle may wait for company
)


class Worker:
    """Serves tasks until they end or it is told to stop."""

    def __init__(
        self,
        frontier: Frontier,
        transport: Transport,
        runtimes: Mapping[str, Runtime],
        handling: Handling,
        clock: Clock,
        *,
        concurrency: int,
        name: str = "worker",
        blobs: BlobStore | None = None,
        lasting: bool = False,
    ) -> None:
        """`lasting`: it does not end with its tasks but waits for others, until it is stopped."""
        self.frontier = frontier
        self.transport = transport
        self.runtimes = dict(runtimes)
        self.handling = handling
        self.clock = clock
        self.concurrency = concurrency
        self.name = name
        self.ended: dict[str, str] = {}
        self._blobs = blobs
        self._lasting = lasting
        self._told_to_stop = False
        self._incarnation = ""
        self._confirmed_at = 0.0  # when the last beat was sent that the store has answered
        self.on_settled: Callable[[list[Outcome]], None] | None = None
        self._rules = Rules(frontier)
        self._visits = {
            name: Visits(runtime, transport, self._rules, handling) for name, runtime in self.runtimes.items()
        }
        self._queue: deque[tuple[Grant, HostView]] = deque()
        self._open: dict[asyncio.Task[None], Grant] = {}
        self._held: Counter[str] = Counter()
        self._owner: dict[int, str] = {}  # lease number → task, until it is settled
        self._telling: set[asyncio.Task[None]] = set()  # hooks that are being told of dropped items
        self._stopping = False
        self._done = asyncio.Event()
        self._idle = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._capacity = concurrency + max(2, int(concurrency * AHEAD))
        self._fault: BaseException | None = None
        self._settler: Settler | None = None

    async def run(self) -> None:
        """Work until all tasks have ended or `stop` was called; then give back what is held."""
        while True:
            try:
                await self._live()
            except SessionLost as lost:
                if self._told_to_stop:
                    return
                log.warning("%s: %s; a new session begins, and nothing is lost", self.name, lost.what)
                self._forget()
            else:
                return

    async def _live(self) -> None:
        """One session, from its opening to its end. Raises SessionLost where the store ended it first."""
        await self.frontier.reap()
        self._confirmed_at = self.clock.now()
        session = await self.frontier.open_session(self.name)
        self._learn_incarnation()
        settler = self._settler = Settler(
            self.frontier, session, self._want, self._settled, self._blobs, has_plenty=self._has_plenty
        )
        loops = [
            asyncio.create_task(self._guarded(settler.run())),
            asyncio.create_task(self._guarded(self._beat(session))),
        ]
        try:
            settler.wake()
            await self._done.wait()
            await self._drain(settler)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            for task in loops:
                task.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            await self._abort()
            with contextlib.suppress(Exception):  # a store that is gone gives the leases back by itself
                async with asyncio.timeout(GOODBYE):
                    await self.frontier.close_session(session)
        if self._fault is not None:
            raise self._fault

    def _learn_incarnation(self) -> None:
        """What was known to be enqueued in another life of the store may have been lost with its end."""
        self._incarnation = self.frontier.incarnation
        for runtime in self.runtimes.values():
            if runtime.outlinks.known.incarnation != self._incarnation:
                runtime.outlinks.known.clear(self._incarnation)

    def _forget(self) -> None:
        """Everything that belonged to a session that is no more."""
        self._fault = None
        self._stopping = self._told_to_stop
        self._done.clear()
        self._held.clear()
        self._owner.clear()
        self._queue.clear()
        for runtime in self.runtimes.values():
            runtime.drops.clear()
        self._check_done()

    def add(self, runtime: Runtime, transport: Transport | None = None) -> None:
        """Serve one more task."""
        if runtime.outlinks.known.incarnation != self._incarnation:
            runtime.outlinks.known.clear(self._incarnation)
        self.runtimes[runtime.name] = runtime
        self._visits[runtime.name] = Visits(runtime, transport or self.transport, self._rules, self.handling)
        self.wake()

    def stop(self) -> None:
        """Lease nothing more; finish what is open. Safe to repeat."""
        self._told_to_stop = self._stopping = True
        self._queue_back()
        self._check_done()

    def wake(self) -> None:
        """Something may be there to lease: links were pushed, a task was resumed."""
        if self._settler is not None:
            self._settler.wake()

    @property
    def open(self) -> int:
        return len(self._open)

    async def _guarded(self, loop_: object) -> None:
        """A loop that fails ends the worker with its error."""
        try:
            await loop_  # type: ignore[misc]
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  (handed to run, which raises it)
            self._fault = self._fault or error
            self._stopping = True
            self._done.set()

    # Leasing

    def _want(self) -> dict[str, int]:
        if self.frontier.incarnation != self._incarnation:
            raise SessionLost("The store has lost its end")
        if self._stopping:
            return {}
        free = self._capacity - len(self._open) - len(self._queue)
        return share(free, [runtime.spec for runtime in self.runtimes.values()], self._held)

    def _has_plenty(self) -> bool:
        return len(self._queue) > PLENTY * self.concurrency

    def _settled(self, outcomes: list[Outcome], leases: Leases) -> None:
        """A settle is durable: remember its links, start what it granted."""
        stale = set(leases.stale)
        for outcome in outcomes:
            runtime = self.runtimes.get(self._owner.pop(outcome.number, ""))
            if runtime is None:
                continue
            if outcome.number in stale:
                runtime.drops.pop(outcome.number, None)
            else:
                self._acknowledge(runtime, outcome)
        if self.on_settled is not None and outcomes:
            self.on_settled(outcomes)
        for name, state in leases.ended.items():
            self._hear(name, TaskState(state))
        for grant in leases.grants:
            self._held[grant.task] += 1
            self._owner[grant.number] = grant.task
            self._queue.append((grant, leases.hosts.get(grant.host) or HostView(host=grant.host)))
        if self._stopping:
            self._queue_back()
        self._start()
        self._look_again(leases.wait)
        self._check_done()

    def _acknowledge(self, runtime: Runtime, outcome: Outcome) -> None:
        runtime.outlinks.acknowledge(outcome.links)
        dropped = runtime.drops.pop(outcome.number, None)
        if dropped is not None:
            telling = asyncio.create_task(self._announce(runtime, dropped))
            self._telling.add(telling)
            telling.add_done_callback(self._telling.discard)

    async def _announce(self, runtime: Runtime, effects: Effects) -> None:
        """Tell the author's hook what was left out, now that its page is settled."""
        try:
            await runtime.spider.announce_dropped(effects)
        except HandlerFailed as error:
            log.error("the hook for dropped items failed: %s", error)

    def _hear(self, name: str, state: TaskState) -> None:
        """A task is not RUNNING any more: nothing of it is begun; if it has ended, nothing is finished either."""
        self._withdraw(lambda grant: grant.task == name)
        if state is TaskState.PAUSED:
            return
        self.ended[name] = state.value
        self.runtimes.pop(name, None)
        self._visits.pop(name, None)
        for task, grant in self._open.items():
            if grant.task == name:
                task.cancel()

    def _withdraw(self, which: Callable[[Grant], bool]) -> None:
        """Give back leases that wait for their slot: their host was parked since, or their task is not to go on."""
        keep: deque[tuple[Grant, HostView]] = deque()
        for grant, view in self._queue:
            if which(grant):
                self._held[grant.task] -= 1
                self._give_back(grant)
            else:
                keep.append((grant, view))
        self._queue = keep

    def _give_back(self, grant: Grant, sent_at: float | None = None) -> None:
        if self._settler is not None and not self._stopping:
            self._settler.add(grant.task, Outcome(grant.number, Verdict.RELEASE), sent_at)

    def _look_again(self, wait: float | None) -> None:
        """Ask the store again when the next host is ready; and soon in any case, for a task may be ended or paused while all
        that is open here hangs."""
        if self._timer is not None:
            self._timer.cancel()
        later = wait is None or self._has_plenty()
        delay = LOOK_AGAIN if later else min(max(wait or 0.0, 0.001), LOOK_AGAIN)
        self._timer = asyncio.get_running_loop().call_later(delay, self.wake)

    # Visiting

    def _start(self) -> None:
        while self._queue and not self._stopping and len(self._open) < self.concurrency and self._may_ask():
            grant, view = self._queue.popleft()
            task = asyncio.create_task(self._visit(grant, view), name=grant.url)
            self._open[task] = grant
            task.add_done_callback(self._finished)

    def _may_ask(self) -> bool:
        """Whether the store has said lately enough that the leases are ours: after a halt of this process they may not be."""
        return self.clock.now() - self._confirmed_at < CLOSE_AFTER

    async def _visit(self, grant: Grant, view: HostView) -> None:
        if not self._may_ask():
            self._give_back(grant)
            return
        visits = self._visits[grant.task]
        if grant.kind is Kind.ROBOTS:
            visited: Visited = await visits.robots(grant, view)
        else:
            visited = await visits.page(grant, view)
        assert self._settler is not None
        self._settler.add(grant.task, visited.outcome, visited.sent_at, visited.body)
        order = visited.outcome.host
        if order is not None and order.park > 0:
            self._withdraw(lambda other: other.host == grant.host)

    def _finished(self, task: asyncio.Task[None]) -> None:
        grant = self._open.pop(task)
        self._held[grant.task] -= 1
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fault = self._fault or error
            self._stopping = True
            self._done.set()
            return
        if task.cancelled():
            self._give_back(
                grant, time.monotonic()
            )  # its request may have gone out: the host's turn counts from now
        self._start()
        self._check_done()

    def _check_done(self) -> None:
        if not self._open:
            self._idle.set()
        else:
            self._idle.clear()
        if self._stopping or not (self.runtimes or self._lasting):
            self._done.set()

    # Living and ending

    async def _beat(self, session: str) -> None:
        """Confirm the session, again and again. The store alone says whether it lives: after a halt of the whole machine it may."""
        while True:
            await self.clock.sleep(BEAT_EVERY)
            if not await self._confirmed(session):
                await self._abort()
                raise SessionLost("The session could not be confirmed in time, and its leases went to others")
            await self.frontier.reap()

    async def _confirmed(self, session: str) -> bool:
        """Whether the session lives. While the store does not say, it may give the leases away: every socket is closed before."""
        sent = self.clock.now()
        beat = asyncio.ensure_future(self.frontier.beat(session))
        try:
            await asyncio.wait({beat}, timeout=CLOSE_AFTER)
            if not beat.done():
                log.warning(
                    "%s: the store has not answered for %g s; open exchanges are given up",
                    self.name,
                    CLOSE_AFTER,
                )
                await self._abort()
            alive = await beat
            if alive:
                self._confirmed_at = sent
                self._start()
            return alive
        finally:
            beat.cancel()

    def _queue_back(self) -> None:
        """Leases that were not begun go back with the session."""
        for grant, _ in self._queue:
            self._held[grant.task] -= 1
        self._queue.clear()

    async def _drain(self, settler: Settler) -> None:
        """Finish open exchanges within their time, and settle what they brought."""
        self._stopping = True
        if self._fault is not None:
            return
        self._check_done()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN):
                await self._idle.wait()
        # A store that is away keeps nobody who was told to stop: what it does not hear of is fetched again.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE if self._told_to_stop else None):
                await settler.flush()
        await asyncio.gather(*self._telling)

    async def _abort(self) -> None:
        """Close every socket and begin nothing of what was leased ahead."""
        self._withdraw(lambda _: True)
        tasks = list(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

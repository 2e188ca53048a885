"""How records move: made, queued, delayed, ended, closed off with their host, revived; and when a task is complete."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from itertools import islice, takewhile

from gossamer.backends.memory.rows import Host, Lane, Lease, Record, Session, Task
from gossamer.model.hostrow import Asking, HostRow, free_slots, is_in_flight, ready_at
from gossamer.model.record import Kind, Link, State
from gossamer.model.task import TaskState, UnknownTask, limit_reached
from gossamer.model.traps import BEYOND_BUDGET, budget_name
from gossamer.ports.clock import Clock
from gossamer.ports.frontier import KEPT_SAMPLES, SAMPLE_LENGTH, SESSION_TTL

TICK_DELAYED = 1_000  # delayed records that one call makes due
TICK_RETRIED = 500  # FAILED records that one call revives


class Ledger:
    """All rows, and the moves that every call is made of. Nothing in here awaits: a call is applied in one piece."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = self._called = clock.now()
        self._tasks: dict[str, Task] = {}
        self._hosts = {"": Host(HostRow(name=""))}  # the pseudo host of the seeds comes before all others
        self._delayed: list[Record] = []  # sorted by (due, id)
        self._leases: dict[int, Lease] = {}
        self._sessions: dict[str, Session] = {}
        self._touched: set[Host] = set()  # hosts of which this call changed slots, row or closures
        self._fed: set[Host] = set()  # hosts that got records to do
        self._given_up: list[Record] = []  # what this call ended because its host was given up
        self._last_record = self._last_lease = self._last_item = 0

    def _enter(self) -> None:
        """Begin a call that changes something: read the clock, and forgive the sessions a halt of the whole store.

        A call that is refused must be refused before this: it changes nothing, not even this.
        """
        self._now = self._clock.now()
        if self._now - self._called > SESSION_TTL:
            for session in self._sessions.values():
                session.beat = self._now
        self._called = self._now

    def _task(self, name: str) -> Task:
        if name not in self._tasks:
            raise UnknownTask(
                f"There is no task named {name!r}", hint="open the task first, or check its name"
            )
        return self._tasks[name]

    # Records come

    def _push(self, task: Task, links: Sequence[Link], found_on: str = "") -> int:
        """Make records of the links that are new; how many were."""
        new = 0
        for link in links:
            host = self._meet(link)
            known = task.records.get(link.key)
            if known is None:
                self._make(task, host, link, found_on)
                new += 1
            elif known.state is State.PENDING and link.priority > known.priority:
                self._raise_priority(known, link.priority)
        return new

    def _meet(self, link: Link) -> Host:
        host = self._hosts.get(link.host)
        if host is None:
            row = HostRow(name=link.host, id=len(self._hosts), scheme=link.url.partition(":")[0])
            host = self._hosts[link.host] = Host(row)
        return host

    def _make(self, task: Task, host: Host, link: Link, found_on: str) -> None:
        self._last_record += 1
        lane = task.lanes.get(link.host) or self._open_lane(task, host)
        record = Record(self._last_record, link, lane, link.priority, link.request, found_on)
        task.records[link.key] = record
        if self._is_beyond_budget(task, link):
            self._fed.add(host)
            self._end(record, State.SKIPPED, BEYOND_BUDGET)
            self._keep_samples(task, [(f"skipped:{BEYOND_BUDGET}", link.url[:SAMPLE_LENGTH])])
        else:
            self._give_back(record, link.delay)

    def _is_beyond_budget(self, task: Task, link: Link) -> bool:
        """Whether the URL's pattern has used up its budget; else it takes its share."""
        budget = task.spec.pages_per_pattern
        if budget is None or link.kind is not Kind.PAGE:
            return False
        name = budget_name(link.url)
        if task.patterns[name] >= budget:
            return True
        task.patterns[name] += 1
        return False

    def _open_lane(self, task: Task, host: Host) -> Lane:
        wish = task.spec.wish
        lane = Lane(task, host, 0.0 if host.row.name in wish.eager else wish.first_delay)
        task.lanes[host.row.name] = lane
        host.lanes.append(lane)
        return lane

    def _give_back(self, record: Record, delay: float = 0.0) -> None:
        """The record waits (again): in its queue, or until it is due. In a closed lane it ends instead."""
        record.state = State.PENDING
        self._fed.add(record.lane.host)
        if record.lane.closed:
            self._touched.add(record.lane.host)
            self._end_closed(record, *record.lane.closed)
        elif delay > 0:
            record.due = self._now + delay
            insort(self._delayed, record, key=lambda waiting: (waiting.due, waiting.id))
        else:
            insort(record.lane.queue, record, key=lambda waiting: waiting.turn)

    def _raise_priority(self, record: Record, priority: int) -> None:
        if record.due is None:
            record.lane.queue.remove(record)
        record.priority = priority
        if record.due is None:
            insort(record.lane.queue, record, key=lambda waiting: waiting.turn)

    # Records end

    def _end(self, record: Record, state: State, code: str) -> None:
        record.state, record.code, record.due = state, code, None
        self._count_end(record, 1)

    def _count_end(self, record: Record, by: int) -> None:
        kind = record.state.name.lower()
        record.lane.task.counts[kind] += by
        record.lane.task.counts[f"{kind}:{record.code or 'ok'}"] += by

    def _close_lane(self, lane: Lane, state: State, code: str) -> None:
        """End all that waits here, and by `closed` all that will ever come."""
        lane.closed = (state, code)
        self._touched.add(lane.host)
        delayed = [record for record in self._delayed if record.lane is lane]
        if delayed:
            self._delayed = [record for record in self._delayed if record.lane is not lane]
        for record in lane.queue + delayed:
            self._end_closed(record, state, code)
        lane.queue.clear()

    def _end_closed(self, record: Record, state: State, code: str) -> None:
        """Not by a verdict of its own, but with its host."""
        self._end(record, state, code)
        if state is State.FAILED:
            self._given_up.append(record)

    def _account_given_up(self) -> None:
        """When all of the call came so far, what went with a host counts as failed, and the first discovered are samples."""
        for record in sorted(self._given_up, key=lambda record: record.id):
            task = record.lane.task
            task.errors += 1
            self._keep_samples(task, [(f"failed:{record.code}", record.link.url[:SAMPLE_LENGTH])])
        self._given_up.clear()

    def _keep_samples(self, task: Task, samples: Sequence[tuple[str, str]]) -> None:
        for counter, example in samples:
            kept = task.samples.setdefault(counter, [])
            if len(kept) < KEPT_SAMPLES:
                kept.append(example)

    def _free(self, lease: Lease) -> None:
        """Delete the lease and give its slot back; what becomes of its record is the caller's to say."""
        del self._leases[lease.number]
        lease.lane.host.row.open -= 1
        self._touched.add(lease.lane.host)
        if lease.record is None:
            lease.lane.host.row.robots_open = False
            return
        lease.lane.open -= 1
        lease.lane.task.leased -= 1
        lease.lane.task.leased_pages -= lease.record.kind is Kind.PAGE

    def _leases_of(self, task: Task) -> list[Lease]:
        return [lease for lease in self._leases.values() if lease.lane.task is task]

    def _check_end(self, task: Task) -> None:
        """End a running task that has reached a limit, or that has nothing left to do."""
        self._check_limits(task)
        if task.state is not TaskState.RUNNING:
            return
        expects_more = task.seeding or task.spec.keep_open or task.retried_up_to is not None
        if not expects_more and len(task.records) == task.terminal:
            self._end_task(task, TaskState.COMPLETED, "")

    def _check_limits(self, task: Task) -> None:
        """End a running task that has reached one of its limits."""
        if task.state is TaskState.RUNNING:
            items = task.counts["items"]
            end = limit_reached(task.spec, pages=task.pages, items=items, errors=task.errors)
            if end is not None:
                self._end_task(task, *end)

    def _end_task(self, task: Task, state: TaskState, reason: str) -> None:
        task.state, task.reason, task.ended = state, reason, self._now
        task.retried_up_to = None

    # Time passes

    def _tick(self) -> None:
        """What time alone brings about: delayed records fall due, retry-failed goes on; both in bounded steps."""
        due = list(islice(takewhile(lambda r: (r.due or 0.0) <= self._now, self._delayed), TICK_DELAYED))
        del self._delayed[: len(due)]
        for record in due:
            record.due = None
            self._give_back(record)
        for task in self._tasks.values():
            if task.retried_up_to is not None:
                self._retry_some(task, task.retried_up_to)

    def _retry_some(self, task: Task, up_to: int) -> None:
        """Revive the next FAILED records, each once: what fails again behind the mark stays FAILED."""
        failed = (r for r in task.records.values() if r.state is State.FAILED and r.id > up_to)
        found = list(islice(failed, TICK_RETRIED + 1))
        for record in found[:TICK_RETRIED]:
            self._revive(record)
        more = len(found) > TICK_RETRIED
        task.retried_up_to = found[TICK_RETRIED - 1].id if more else None
        if not more:
            self._check_end(task)

    def _revive(self, record: Record) -> None:
        self._count_end(record, -1)
        record.code, record.retries, record.crashes, record.suspect = "", 0, 0, False
        record.lane.closed = None
        self._give_back(record)

    # Hosts

    def _asking(self, host: Host) -> Asking:
        """What the considered tasks ask of the host: those that are RUNNING and have something due or leased there."""
        return [
            (lane.task.spec.wish, lane.first_delay)
            for lane in host.lanes
            if (lane.queue or lane.open) and lane.task.state is TaskState.RUNNING
        ]

    def _free_slots(self, host: Host) -> int:
        return free_slots(host.row, self._asking(host))

    def _refresh(self, granted: AbstractSet[Host] = frozenset()) -> None:
        """Say anew when each lane may be leased from, at the touched hosts, and where a lane that was fed has no time yet."""
        for host in self._touched | granted | {host for host in self._fed if _has_sleeper(host)}:
            asking = self._asking(host)
            for lane in host.lanes:
                lane.ready_at = self._ready_at(lane, asking, granted=host in granted)
        self._touched.clear()
        self._fed.clear()

    def _ready_at(self, lane: Lane, asking: Asking, *, granted: bool) -> float | None:
        row, wish = lane.host.row, lane.task.spec.wish
        waits = bool(row.name) and is_in_flight(wish, lane.pages, lane.open)
        if waits or lane.closed or not lane.queue:
            return None
        return ready_at(row, wish, asking, lane.ready_at, granted=granted, now=self._now)

    def _is_still_ready(self, lane: Lane) -> bool:
        """By what is asked of its host now; its hour may have been set before a task was resumed or updated."""
        ready = self._ready_at(lane, self._asking(lane.host), granted=False)
        return ready is not None and ready <= self._now


def _has_sleeper(host: Host) -> bool:
    return any(lane.ready_at is None and lane.queue and not lane.closed for lane in host.lanes)

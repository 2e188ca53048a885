"""Leases: which records a session may have now, host by host in the order in which they became ready."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile

from gossamer.backends.memory.ledger import Ledger
from gossamer.backends.memory.rows import Lane, Lease, Record, Task
from gossamer.model.hostrow import NO_LIMIT, knows_robots, robots_url, view
from gossamer.model.record import Grant, Kind, Leases, State
from gossamer.model.task import TaskState


class Granting(Ledger):
    """The grants of one call."""

    def _lease(self, session: str, want: Mapping[str, int]) -> Leases:
        answer = Leases()
        wanted: list[Task] = []
        for name, n in want.items():
            task = self._task(name)
            if task.state is not TaskState.RUNNING:
                answer.ended[name] = task.state.value
            elif not task.log_is_full:
                self._grant(session, task, n, answer)
                wanted.append(task)
        answer.wait = min((self._wait(task) for task in wanted), default=None, key=_soonest)
        return answer

    def _grant(self, session: str, task: Task, n: int, answer: Leases) -> None:
        """Up to n grants from at most n lanes, robots first; the hosts move behind those that waited longer."""
        robots: list[Lane] = []
        records: list[Record] = []
        for lane in self._ready_lanes(task)[:n]:
            left = n - len(robots) - len(records)
            if left == 0:
                break
            if self._is_spent(lane):
                # Its budget was cut by an update, or its closure lifted by retry-failed: nothing else would close it.
                self._close_lane(lane, State.SKIPPED, "budget")
            elif not self._is_still_ready(lane):
                self._touched.add(lane.host)  # a task was resumed or updated since: its hour is set anew
            elif not self._lacks_robots(lane):
                records += self._take(lane, left)
            else:
                self._occupy(lane)
                robots.append(lane)
        answer.grants += [self._grant_robots(session, lane) for lane in robots]
        answer.grants += [self._grant_record(session, record) for record in records]
        granted = {lane.host for lane in robots} | {record.lane.host for record in records}
        answer.hosts |= {host.row.name: view(host.row, self._now) for host in granted}
        self._refresh(granted)
        self._check_end(task)

    def _ready_lanes(self, task: Task) -> list[Lane]:
        """The lanes that are ready, longest first; without pages left to grant, that of the seeds alone."""
        ready = [lane for lane in self._hopeful_lanes(task) if (lane.ready_at or 0.0) <= self._now]
        return sorted(ready, key=lambda lane: (lane.ready_at, lane.host.row.id))

    def _hopeful_lanes(self, task: Task) -> list[Lane]:
        """The lanes that are ready or will be; without pages left to grant, only seeds need not wait for one to end."""
        has_pages = self._pages_left(task) > 0
        return [
            lane for name, lane in task.lanes.items() if lane.ready_at is not None and (has_pages or not name)
        ]

    # What a lane may have

    def _pages_left(self, task: Task) -> int:
        limit = task.spec.max_pages
        return NO_LIMIT if limit is None else limit - task.pages - task.leased_pages

    def _is_spent(self, lane: Lane) -> bool:
        budget = lane.task.spec.wish.pages_per_host
        return bool(lane.host.row.name) and budget is not None and lane.pages >= budget

    def _lacks_robots(self, lane: Lane) -> bool:
        return lane.task.spec.wish.robots and not knows_robots(lane.host.row, self._now)

    def _room(self, lane: Lane) -> int:
        """How many records may be leased from here: slots of the host, budget at the host, budget of the task."""
        room = self._free_slots(lane.host)
        if not lane.host.row.name:
            return room
        budget = lane.task.spec.wish.pages_per_host
        here = NO_LIMIT if budget is None else budget - lane.pages - lane.open
        return max(min(room, here, self._pages_left(lane.task)), 0)

    def _wait(self, task: Task) -> float | None:
        """Seconds until the task may be granted something more; None when nothing is in sight."""
        if self._is_more_ready(task):
            return 0.0
        times = [lane.ready_at for lane in self._hopeful_lanes(task) if lane.ready_at is not None]
        times += [
            record.due for record in self._delayed if record.due is not None and record.lane.task is task
        ]
        waits = [max(time - self._now, 0.0) for time in times]
        return min(waits, default=None)

    def _is_more_ready(self, task: Task) -> bool:
        """Whether a lane was left only because the caller wanted no more. Those before it get their hours anew."""
        lanes = self._ready_lanes(task)
        late = list(takewhile(lambda lane: not self._is_expected(lane), lanes))
        self._touched |= {lane.host for lane in late}
        self._refresh()
        return len(late) < len(lanes)

    def _is_expected(self, lane: Lane) -> bool:
        """Whether asking again would close this ready lane, or grant something of it."""
        return self._is_spent(lane) or self._is_still_ready(lane)

    # The grants themselves

    def _take(self, lane: Lane, n: int) -> list[Record]:
        """Up to n records from the front of the queue, their slots taken."""
        front = lane.queue[: min(n, self._room(lane))]
        del lane.queue[: len(front)]
        for record in front:
            record.state = State.LEASED
            self._occupy(lane, record)
        return front

    def _occupy(self, lane: Lane, record: Record | None = None) -> None:
        """Take a slot, for a record or else for the host's robots."""
        lane.host.row.open += 1
        if record is None:
            lane.host.row.robots_open = True
            return
        lane.open += 1
        lane.task.leased += 1
        lane.task.leased_pages += record.kind is Kind.PAGE

    def _grant_robots(self, session: str, lane: Lane) -> Grant:
        number, host, task = self._number(session, lane), lane.host.row, lane.task.spec.name
        return Grant(
            number, task, Kind.ROBOTS, robots_url(host), host.name, 0, 0, 0, b"", 0, 0, suspect=False
        )

    def _grant_record(self, session: str, record: Record) -> Grant:
        link = record.link
        return Grant(
            self._number(session, record.lane, record),
            record.lane.task.spec.name,
            link.kind,
            link.url,
            link.host,
            record.priority,
            link.depth,
            link.hops,
            record.request,
            record.retries,
            record.crashes,
            record.suspect,
        )

    def _number(self, session: str, lane: Lane, record: Record | None = None) -> int:
        """Write the lease down; with the session, its number is the token."""
        self._last_lease += 1
        self._leases[self._last_lease] = Lease(self._last_lease, session, lane, record)
        return self._last_lease


def _soonest(wait: float | None) -> float:
    return float("inf") if wait is None else wait

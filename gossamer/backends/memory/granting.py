"""Leases: which records a session may have now, host by host in the order in which they became ready."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.backends.memory.ledger import Ledger
from gossamer.backends.memory.rows import Lane, Lease, Record, Task
from gossamer.model.hostrow import NO_LIMIT, knows_robots, robots_url, turn_of, view
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
            elif turn_of(lane.host.row, self._asking(lane.host), self._now) > self._now:
                self._touched.add(lane.host)  # a task was resumed, or wishes more since: its hour is set anew
            elif not self._lacks_robots(lane):
                records += self._take(lane, left)
            elif self._may_ask_robots(lane):
                self._occupy(lane)
                robots.append(lane)
        answer.grants += [self._grant_robots(session, lane) for lane in robots]
        answer.grants += [self._grant_record(session, record) for record in records]
        granted = {lane.host for lane in robots} | {record.lane.host for record in records}
        answer.hosts |= {host.row.name: view(host.row, self._now) for host in granted}
        self._refresh(granted)
        self._check_end(task)

    def _ready_lanes(self, task: Task) -> list[Lane]:
        ready = [
            lane for lane in task.lanes.values() if lane.ready_at is not None and lane.ready_at <= self._now
        ]
        return sorted(ready, key=lambda lane: (lane.ready_at, lane.host.row.id))

    # What a lane may have

    def _is_spent(self, lane: Lane) -> bool:
        budget = lane.task.spec.wish.pages_per_host
        return bool(lane.host.row.name) and budget is not None and lane.pages >= budget

    def _lacks_robots(self, lane: Lane) -> bool:
        return lane.task.spec.wish.robots and not knows_robots(lane.host.row, self._now)

    def _may_ask_robots(self, lane: Lane) -> bool:
        return not lane.host.row.robots_open and self._free_slots(lane.host) > 0

    def _room(self, lane: Lane) -> int:
        """How many records may be leased from here: slots of the host, budget at the host, budget of the task."""
        room = self._free_slots(lane.host)
        if not lane.host.row.name:
            return room
        spec, task = lane.task.spec, lane.task
        here = (
            NO_LIMIT
            if spec.wish.pages_per_host is None
            else spec.wish.pages_per_host - lane.pages - lane.open
        )
        all_over = NO_LIMIT if spec.max_pages is None else spec.max_pages - task.pages - task.leased_pages
        return max(min(room, here, all_over), 0)

    def _wait(self, task: Task) -> float | None:
        """Seconds until the task may be granted something more; None when nothing is in sight."""
        lanes = task.lanes.values()
        times = [lane.ready_at for lane in lanes if lane.ready_at is not None and self._is_expected(lane)]
        times += [
            record.due for record in self._delayed if record.due is not None and record.lane.task is task
        ]
        waits = [max(time - self._now, 0.0) for time in times]
        return min(waits, default=None)

    def _is_expected(self, lane: Lane) -> bool:
        """Whether a lane becomes ready later, or is ready and was left only because the caller wanted no more."""
        if (lane.ready_at or 0.0) > self._now or self._is_spent(lane):
            return True
        return self._may_ask_robots(lane) if self._lacks_robots(lane) else self._room(lane) > 0

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

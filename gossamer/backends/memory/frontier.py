"""`MemoryFrontier`: the contract's calls on the ledger in memory."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Self

from gossamer.backends.memory.commands import Commands
from gossamer.backends.memory.rows import Task
from gossamer.model.host import HostView
from gossamer.model.hostrow import view
from gossamer.model.record import Leases, Link, Outcome, Pushed, State
from gossamer.model.task import Command, IllegalChange, SessionLost, TaskEnded, TaskSpec, TaskView
from gossamer.ports.clock import Clock
from gossamer.ports.frontier import Explained, SessionView


class MemoryFrontier(Commands):
    """A frontier that lives and dies with its process. Whatever may be refused is refused before anything changes."""

    partitions = 1

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.incarnation = secrets.token_hex(8)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        return None

    # FrontierStore

    async def open_task(self, spec: TaskSpec) -> TaskView:
        self._enter()
        task = self._tasks.setdefault(spec.name, Task(spec, self._now))
        return task.view(self._now)

    async def tasks(self, names: Sequence[str] | None = None) -> list[TaskView]:
        now = self._clock.now()
        return [task.view(now) for name, task in self._tasks.items() if names is None or name in names]

    async def push(self, task: str, links: Sequence[Link]) -> Pushed:
        row = self._task(task)
        if row.is_over:
            raise TaskEnded(
                f"The task is {row.state.value} and takes no more URLs",
                where=task,
                hint="submit a new task, or reopen this one with retry-failed",
            )
        self._enter()
        new = self._push(row, links)
        self._account_given_up()
        self._check_end(row)
        self._refresh()
        return Pushed(new, len(links) - new)

    async def lease(self, session: str, want: Mapping[str, int]) -> Leases:
        if session not in self._sessions:
            raise SessionLost(
                "The session has ended", where=session, hint="open a new one and forget its leases"
            )
        self._know(want)
        self._enter()
        self._tick()
        self._refresh()
        return self._lease(session, want)

    async def settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        self._know(want)
        self._enter()
        self._tick()
        return self._settle(session, outcomes, want)

    async def control(
        self, task: str, command: Command, *, reason: str = "", spec: TaskSpec | None = None
    ) -> TaskView:
        row = self._task(task)
        self._refuse(row, command, spec)
        self._enter()
        self._control(row, command, reason, spec)
        return row.view(self._now)

    async def forget(self, task: str) -> None:
        row = self._task(task)
        if any(lease.record is not None for lease in self._leases_of(row)):
            raise IllegalChange(
                "The task is being worked on",
                where=task,
                hint="stop its workers first, or cancel it and wait",
            )
        self._enter()
        for lease in self._leases_of(row):  # somebody else may ask for the robots that it was asking for
            self._free(lease)
        self._delayed = [record for record in self._delayed if record.lane.task is not row]
        for host in self._hosts.values():
            host.lanes = [lane for lane in host.lanes if lane.task is not row]
        del self._tasks[task]
        self._refresh()

    def _know(self, want: Mapping[str, int]) -> None:
        for name in want:
            self._task(name)

    # Oversight

    async def sessions(self) -> list[SessionView]:
        now, found = self._clock.now(), []
        for name, session in self._sessions.items():
            held = self._held(name)
            found.append(
                SessionView(
                    session=name, worker=session.worker, beat_ago=now - session.beat,
                    leases=Counter(lease.lane.task.spec.name for lease in held),
                    hosts=Counter(lease.lane.host.row.name for lease in held),
                )
            )  # fmt: skip
        return sorted(found, key=lambda view: (view.worker, view.session))

    async def counters(self, task: str) -> dict[str, int]:
        row = self._task(task)
        seen = row.view(self._clock.now())
        counts = {
            name: row.counts[name]
            for name in ("done", "failed", "skipped", "items", "retried", "stale", "bytes")
        }
        counts |= {name: value for name, value in row.counts.items() if value}
        return counts | {
            "discovered": seen.discovered,
            "pending": seen.pending,
            "leased": seen.leased,
            "cancelled": seen.discovered - seen.terminal if row.is_over else 0,
            "pages": row.pages,
        }

    async def samples(self, task: str) -> dict[str, list[str]]:
        return {counter: list(kept) for counter, kept in self._task(task).samples.items()}

    async def explain(self, task: str, key: bytes, host: str) -> Explained | None:  # noqa: ARG002 (one partition)
        row = self._task(task)
        record = row.records.get(key)
        if record is None:
            return None
        now = self._clock.now()
        cancelled = row.is_over and record.state in (State.PENDING, State.LEASED)
        due_in = 0.0 if cancelled or record.due is None else max(record.due - now, 0.0)
        return Explained(
            url=record.link.url,
            state=State.CANCELLED if cancelled else record.state,
            code=row.reason if cancelled else record.code,
            depth=record.link.depth,
            priority=record.priority,
            retries=record.retries,
            crashes=record.crashes,
            suspect=record.suspect,
            found_on=record.found_on,
            body=record.body,
            due_in=due_in,
            host=view(record.lane.host.row, now),
        )

    async def hosts(self, names: Sequence[str]) -> dict[str, HostView]:
        now = self._clock.now()
        return {name: view(self._hosts[name].row, now, robots=True) for name in names if name in self._hosts}

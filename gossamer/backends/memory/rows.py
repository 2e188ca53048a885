"""The rows: tasks, hosts, the lanes between them, records, leases, sessions."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from gossamer.model.hostrow import HostRow
from gossamer.model.record import Kind, Link, LoggedItem, State
from gossamer.model.task import ENDED, TaskSpec, TaskState, TaskView


@dataclass(slots=True, eq=False)
class Task:
    """A task, its records by key in the order of discovery, and everything counted for it."""

    spec: TaskSpec
    opened: float
    state: TaskState = TaskState.RUNNING
    reason: str = ""
    ended: float | None = None
    seeding: bool = True
    retried_up_to: int | None = None  # retry-failed has come to this record id; None: it is not under way
    leased: int = 0
    leased_pages: int = 0
    pages: int = 0
    errors: int = 0  # records that FAILED since it was opened or last retried
    records: dict[bytes, Record] = field(default_factory=dict)
    lanes: dict[str, Lane] = field(default_factory=dict)
    items: list[LoggedItem] = field(default_factory=list)
    sinks: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    patterns: Counter[str] = field(
        default_factory=Counter
    )  # pages taken of each URL pattern, where they have a budget
    samples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    @property
    def log_is_full(self) -> bool:
        return self.spec.log_limit is not None and len(self.items) >= self.spec.log_limit

    @property
    def terminal(self) -> int:
        return self.counts["done"] + self.counts["failed"] + self.counts["skipped"]

    def view(self, now: float) -> TaskView:
        leased = 0 if self.is_over else self.leased
        return TaskView(
            spec=self.spec,
            state=self.state,
            reason=self.reason,
            seeding=self.seeding,
            opened_ago=now - self.opened,
            ended_ago=None if self.ended is None else now - self.ended,
            discovered=len(self.records),
            pending=0 if self.is_over else len(self.records) - self.terminal - leased,
            leased=leased,
            terminal=self.terminal,
        )


@dataclass(slots=True, eq=False)
class Host:
    """A host with the lanes of all tasks that met it."""

    row: HostRow
    lanes: list[Lane] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Lane:
    """One task at one host: the queue that grants are taken from."""

    task: Task
    host: Host
    first_delay: float
    queue: list[Record] = field(default_factory=list)  # due now, sorted by `turn`
    open: int = 0
    pages: int = 0
    ready_at: float | None = None  # None: nothing is due, or something else must end first
    closed: tuple[State, str] | None = None  # what comes here ends at once with this


@dataclass(slots=True, eq=False)
class Record:
    """One thing to do. It waits in its lane's queue, or among the delayed when `due` is set."""

    id: int
    link: Link
    lane: Lane
    priority: int
    request: bytes
    found_on: str
    state: State = State.PENDING
    code: str = ""
    retries: int = 0
    crashes: int = 0
    suspect: bool = False
    due: float | None = None
    body: str | None = None

    @property
    def kind(self) -> Kind:
        return self.link.kind

    @property
    def turn(self) -> tuple[int, int]:
        """Its place in the queue: the higher priority, then first in, first out."""
        return (-self.priority, self.id)


@dataclass(slots=True, eq=False)
class Lease:
    """A grant that is out. A robots lease has no record: it belongs to the host."""

    number: int
    session: str
    lane: Lane
    record: Record | None


@dataclass(slots=True, eq=False)
class Session:
    """A worker's life. A dead session has no row."""

    worker: str
    beat: float

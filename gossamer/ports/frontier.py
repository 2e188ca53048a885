"""The frontier: the truth about records. Four Protocols by purpose, one class a backend.

The life of a record here: `push` makes it (its key is its identity: the insert *is* the dedup), `lease` grants it
to a session together with the host's slot, `settle` ends the attempt in one transaction with its links, items,
counters and host orders, guarded by the token (session, number). A session that dies gives all its leases back.

What every backend keeps, and `gossamer.testing.contracts.frontier` tests:

1. A key is one record for ever: (task, key). A push of a known PENDING one keeps the higher priority.
2. A call is applied whole or not at all; when it returns, it is durable.
3. A page is granted only while its host has a free slot, its turn has come, it is not parked, and its robots are
   known (unless the task ignores them). The limit and the delay are the strictest wish of the running tasks that have
   records open or pending there. A host with a delay (wished, adaptive or crawl-delay) has one request open. A host with
   unknown or expired robots grants exactly one lease, of kind ROBOTS, on the way of a page that needs them.
4. Order: hosts in the order in which they became ready, then as they were met; within a host the higher
   priority, within a priority first in, first out. Never by looking at all that is pending.
5. Time is the store's. Durations go in and come out; parked-until is clamped to an hour when read.
6. A stale token (settled, reaped, cancelled task, dead session) changes nothing, and is answered and counted.
7. Item numbers follow commit order and are never reused.
8. Commands are one row each. An ended task grants nothing and refuses settles; a push to it is refused.
9. `give_up` ends what the host still has PENDING for that task by one order; what is pushed there later ends at once. Some of
   their URLs stay as samples.
10. While the log of a task holds `log_limit` items or more, nothing of the task is granted: its slowest sink sets the pace.
11. A task is COMPLETED by the settle, or the SEEDED command, that leaves nothing PENDING and nothing LEASED.
12. The limits of a running task (`max_pages`, `max_items`, `max_errors`) end it with the outcome that reaches one; what comes behind
    that in the same call is stale. So there are never more items than the limit and those of one page.
13. `pages_per_pattern` is kept by the push: of the URLs of a host that share a pattern (`model.traps.budget_name`) so many become
    PENDING, the others are made and end SKIPPED(trap_pattern) at once.

All methods may be called concurrently from one event loop; a backend orders them itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, Self

import msgspec

from gossamer.model.errors import GossamerError
from gossamer.model.host import HostView
from gossamer.model.record import Leases, Link, LoggedItem, Outcome, Pushed, State
from gossamer.model.task import Command, TaskSpec, TaskView

SESSION_TTL = 10.0  # seconds without a beat after which a session is dead for ever
KEPT_SAMPLES = 5  # examples kept per counter
SAMPLE_LENGTH = 300  # characters of a URL that becomes one


class CursorMoved(GossamerError):  # noqa: N818  (a fact, known by this name in the frontier's contract)
    """The cursor does not stand where its sink believes: the store lost its end, and the sink must go back with it."""

    code = "cursor_moved"


def check_stand(task: str, sink: str, stands: int, number: int, after: int | None) -> None:
    """Raise CursorMoved where the cursor is neither at the number that the batch began behind, nor at its end already."""
    if after is not None and stands not in (after, number):
        raise CursorMoved(f"The sink {sink!r} stands at item {stands}, not at {after}", where=task)


class CursorAhead(GossamerError):  # noqa: N818  (a fact, known by this name in the frontier's contract)
    """A sink claims to hold items that this log never had: the store has lost its end, or the sink follows another one."""

    code = "cursor_ahead"


def within_log(task: str, sink: str, number: int, last: int) -> None:
    """Raise CursorAhead for a cursor beyond the last number that the log ever gave; `sink` is empty where nobody is named."""
    if number > last:
        who = f"The sink {sink!r}" if sink else "Who reads the log"
        raise CursorAhead(
            f"{who} stands at item {number}, and the log has had {last}",
            where=task,
            hint="the state was restored from an older copy, or is not the one that this sink followed: begin anew with --fresh",
        )


class FrontierStore(Protocol):
    """Records: made once, leased politely, settled once."""

    partitions: int

    @property
    def incarnation(self) -> str:
        """Changes when the store may have lost its end; what a worker knows to be enqueued is forgotten then, and what it
        made of that knowledge is not settled."""

    async def open_task(self, spec: TaskSpec) -> TaskView:
        """Make the task RUNNING and seeding, or return the one of that name as it is (its spec unchanged)."""

    async def tasks(self, names: Sequence[str] | None = None) -> list[TaskView]:
        """The tasks of these names, or all, in the order they were opened."""

    async def push(self, task: str, links: Sequence[Link]) -> Pushed:
        """Make records of the links that are new. Raises TaskEnded where the task takes no more."""

    async def lease(self, session: str, want: Mapping[str, int]) -> Leases:
        """Grant up to so many records of each task. Raises SessionLost for a dead session."""

    async def settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        """End attempts, and lease in the same transaction what the freed slots may take. Never raises for a stale token."""

    async def control(
        self, task: str, command: Command, *, reason: str = "", spec: TaskSpec | None = None
    ) -> TaskView:
        """Obey, if the table of states allows it: else raises IllegalChange and nothing has changed."""

    async def forget(self, task: str) -> None:
        """Remove the task with all its records, items and counters. Raises IllegalChange while a record of it is leased."""


class SessionStore(Protocol):
    """A worker's life: all its leases live and die with one row."""

    async def open_session(self, worker: str) -> str:
        """A new random id, beating from now on."""

    async def beat(self, session: str) -> bool:
        """Stay alive for SESSION_TTL more. False: the session is dead, and stays so."""

    async def release(self, session: str, numbers: Sequence[int] | None = None) -> int:
        """Give leases back untouched (all when None), without suspicion: a drain. How many were given back."""

    async def close_session(self, session: str) -> None:
        """Release everything and end the session. Its hosts pause, for nobody says what of it was sent. Safe to repeat."""

    async def reap(self) -> int:
        """End sessions that stopped beating. Their records become suspects and PENDING. How many sessions ended."""


class ItemLog(Protocol):
    """Items in commit order: an item is here if and only if its page is settled."""

    async def read(self, task: str, partition: int, after: int, limit: int) -> list[LoggedItem]:
        """Up to `limit` items with numbers above `after`. Raises CursorAhead where `after` is beyond the last number ever given."""

    async def cursor(self, task: str, partition: int, sink: str) -> tuple[int, bytes]:
        """Where the sink stands: (number, its own state), registering it at (0, b"") when it is new."""

    async def advance(
        self,
        task: str,
        partition: int,
        sink: str,
        number: int,
        state: bytes = b"",
        *,
        after: int | None = None,
    ) -> None:
        """The sink holds everything up to `number`. What all registered sinks hold is trimmed. With `after`, the number that
        the batch began behind, it raises CursorMoved where the cursor stands elsewhere (but at `number`, where the answer to
        the same call was lost), and changes nothing."""


class Explained(msgspec.Struct, frozen=True, kw_only=True):
    """The life of one URL, for `gossamer explain`."""

    url: str
    state: State
    code: str
    depth: int
    priority: int
    retries: int
    crashes: int
    suspect: bool
    found_on: str  # URL of the record that pushed it; empty for a seed
    body: str | None = None  # the key of the blob that holds what was answered, where it was kept
    due_in: float  # seconds until it may be leased; 0 when that is now or over
    host: HostView


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as the store sees it."""

    session: str
    worker: str
    beat_ago: float
    leases: dict[str, int] = {}  # by task
    hosts: dict[str, int] = {}  # by host


class Oversight(Protocol):
    """What people ask."""

    async def sessions(self) -> list[SessionView]:
        """All that live, with what they hold, in the order of their workers' names."""

    async def counters(self, task: str) -> dict[str, int]:
        """All counters of the task, in one consistent reading. Always there: discovered, pending, leased, done, failed,
        skipped, cancelled, pages, items, retried, stale, bytes. `done:CODE`, `failed:CODE`, `skipped:CODE` by cause."""

    async def samples(self, task: str) -> dict[str, list[str]]:
        """A few examples for each counter that came with some."""

    async def explain(self, task: str, key: bytes, host: str) -> Explained | None:
        """What became of the record with this key; None when it was never pushed."""

    async def hosts(self, names: Sequence[str]) -> dict[str, HostView]:
        """The rows of these hosts with their robots.txt; unknown names are left out."""


class Frontier(FrontierStore, SessionStore, ItemLog, Oversight, Protocol):
    """All four, as one backend gives them. Opened and closed as an async context manager."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

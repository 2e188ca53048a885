"""A task as the frontier knows it: its spec, its state, and the one table of legal changes.

The user's side (owner, schedule, history) belongs to the metadata; this is the run record that leasing, budgets
and the end of the run are decided on.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from gossamer.model.errors import GossamerError
from gossamer.model.host import Wish


class TaskState(StrEnum):
    """The life of a task."""

    PENDING = "PENDING"
    WAITING = "WAITING"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


S = TaskState

# Rule 1: a state changes only along this table. Rule 2: the last three are left by `retry-failed` alone.
CHANGES: dict[TaskState, frozenset[TaskState]] = {
    S.PENDING: frozenset({S.WAITING, S.RUNNING, S.CANCELLED}),
    S.WAITING: frozenset({S.RUNNING, S.CANCELLED, S.FAILED}),
    S.RUNNING: frozenset({S.PAUSED, S.COMPLETED, S.FAILED, S.CANCELLED}),
    S.PAUSED: frozenset({S.RUNNING, S.CANCELLED, S.FAILED}),
    S.COMPLETED: frozenset({S.RUNNING}),
    S.FAILED: frozenset({S.RUNNING}),
    S.CANCELLED: frozenset({S.RUNNING}),
}
ENDED = frozenset({S.COMPLETED, S.FAILED, S.CANCELLED})


class TaskSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What is submitted. The same name means the same task."""

    name: str
    settings: bytes = b"{}"  # everything the worker needs, as JSON; opaque to the store
    wish: Wish = Wish()
    max_pages: int | None = None  # COMPLETED when so many are DONE
    max_items: int | None = None  # COMPLETED when there are so many
    pages_per_pattern: int | None = (
        None  # URLs of one pattern of a host; what is found beyond ends SKIPPED(trap_pattern)
    )
    max_errors: int | None = None  # FAILED when so many records are, since it was opened or last retried
    keep_open: bool = False  # never ends by itself; a push to it is always welcome
    log_limit: int | None = (
        None  # so many items in its log, waiting for their sinks, and nothing more is leased
    )
    needs: tuple[str, ...] = ()  # labels that a worker must have
    weight: int = 1
    priority: int = 0


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task as the store has it now."""

    spec: TaskSpec
    state: TaskState
    reason: str = ""  # why it ended or paused: max_pages, max_errors, user …
    seeding: bool = True  # its seeds are not all pushed yet, so it cannot be complete
    opened_ago: float = 0.0
    ended_ago: float | None = None
    discovered: int = 0
    pending: int = 0
    leased: int = 0
    terminal: int = 0


class Command(StrEnum):
    """What may be ordered of a task; each is one row's change, however many records it has."""

    SEEDED = "seeded"  # all seeds are in: the task may complete
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    FINISH = "finish"  # a budget is reached: COMPLETED, what is left is CANCELLED(reason)
    FAIL = "fail"
    RETRY_FAILED = "retry_failed"  # its FAILED records are PENDING again, with fresh budgets, max_errors too
    UPDATE = "update"  # wish, settings and budgets are replaced by those of the spec given


def limit_reached(spec: TaskSpec, *, pages: int, items: int, errors: int) -> tuple[TaskState, str] | None:
    """How a running task ends by its own limits, and the reason; None while it may go on.

    Of two that are reached at once the bad news is told.
    """
    if spec.max_errors is not None and errors >= spec.max_errors:
        return S.FAILED, "max_errors"
    if spec.max_items is not None and items >= spec.max_items:
        return S.COMPLETED, "max_items"
    if spec.max_pages is not None and pages >= spec.max_pages:
        return S.COMPLETED, "max_pages"
    return None


# The state that each command leads to; SEEDED and UPDATE change no state.
LEADS_TO: dict[Command, TaskState] = {
    Command.PAUSE: S.PAUSED,
    Command.RESUME: S.RUNNING,
    Command.CANCEL: S.CANCELLED,
    Command.FINISH: S.COMPLETED,
    Command.FAIL: S.FAILED,
    Command.RETRY_FAILED: S.RUNNING,
}


REPEATABLE = frozenset(
    {Command.CANCEL, Command.FINISH, Command.FAIL}
)  # nothing happens where it is so already
STATELESS = frozenset({Command.SEEDED, Command.UPDATE, Command.RETRY_FAILED})  # allowed in every state


class UnknownTask(GossamerError):  # noqa: N818  (a fact, known by this name in the frontier's contract)
    """No task of this name is in the store."""

    code = "unknown_task"


class TaskEnded(GossamerError):  # noqa: N818  (a fact, known by this name in the frontier's contract)
    """The task takes no more URLs: it ended and was not opened to stay open."""

    code = "task_ended"


class IllegalChange(GossamerError):  # noqa: N818  (a fact, known by this name in the frontier's contract)
    """The task's state does not allow this command."""

    code = "illegal_change"


class SessionLost(GossamerError):  # noqa: N818  (a fact, known by this name in the frontier's contract)
    """The session is dead: its leases went back, and what it still holds must not be settled."""

    code = "session_lost"

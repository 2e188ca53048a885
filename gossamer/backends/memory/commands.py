"""Commands to a task: one row's change each, however many records it has."""

from __future__ import annotations

from gossamer.backends.memory.items import Items
from gossamer.backends.memory.rows import Task
from gossamer.model.errors import UsageError
from gossamer.model.task import (
    CHANGES,
    ENDED,
    LEADS_TO,
    REPEATABLE,
    STATELESS,
    Command,
    IllegalChange,
    TaskSpec,
    TaskState,
)


class Commands(Items):
    """What `control` obeys."""

    def _refuse(self, task: Task, command: Command, spec: TaskSpec | None) -> None:
        """Raise where the command cannot be obeyed."""
        if command is Command.UPDATE and (spec is None or spec.name != task.spec.name):
            raise UsageError(
                "An update needs the new spec of the same task",
                where=task.spec.name,
                hint="pass spec= with the name of the task that is updated",
            )
        if command in STATELESS or (task.state is LEADS_TO[command] and command in REPEATABLE):
            return
        if task.is_over or LEADS_TO[command] not in CHANGES[task.state]:
            raise IllegalChange(
                f"The task is {task.state.value} and cannot be told to {command.value}",
                where=task.spec.name,
                hint="look at its state first; an ended task is only reopened by retry-failed",
            )

    def _control(self, task: Task, command: Command, reason: str, spec: TaskSpec | None) -> None:
        if command is Command.SEEDED:
            task.seeding = False
        elif command is Command.UPDATE:
            task.spec = spec or task.spec
            # What is in flight may have room by another page budget, or has none any more.
            self._touched |= {lease.lane.host for lease in self._leases_of(task)}
        elif command is Command.RETRY_FAILED:
            self._retry_failed(task)
        else:
            self._change_state(task, LEADS_TO[command], reason)
        self._check_end(task)
        self._refresh()

    def _retry_failed(self, task: Task) -> None:
        if task.is_over:
            task.state, task.reason, task.ended = TaskState.RUNNING, "", None
        task.retried_up_to = task.errors = 0

    def _change_state(self, task: Task, target: TaskState, reason: str) -> None:
        if task.state is target:
            return
        if target in ENDED:
            self._end_task(task, target, reason)
        else:
            task.state, task.reason = target, reason

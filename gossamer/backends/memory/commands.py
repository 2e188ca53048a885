"""Commands to a task: one row's change each, however many records it has."""

from __future__ import annotations

from gossamer.backends.memory.items import Items
from gossamer.backends.memory.rows import Task
from gossamer.model.errors import UsageError
from gossamer.model.task import CHANGES, ENDED, LEADS_TO, Command, IllegalChange, TaskSpec, TaskState

REPEATABLE = frozenset({Command.CANCEL, Command.FINISH, Command.FAIL})


class Commands(Items):
    """What `control` obeys."""

    def _control(self, task: Task, command: Command, reason: str, spec: TaskSpec | None) -> None:
        if command is Command.SEEDED:
            task.seeding = False
        elif command is Command.UPDATE:
            self._update(task, spec)
        elif command is Command.RETRY_FAILED:
            self._retry_failed(task)
        else:
            self._change_state(task, command, reason)
        self._check_end(task)

    def _update(self, task: Task, spec: TaskSpec | None) -> None:
        if spec is None or spec.name != task.spec.name:
            raise UsageError(
                "An update needs the new spec of the same task",
                where=task.spec.name,
                hint="pass spec= with the name of the task that is updated",
            )
        task.spec = spec

    def _retry_failed(self, task: Task) -> None:
        if task.is_over:
            task.state, task.reason, task.ended = TaskState.RUNNING, "", None
        task.retried_up_to = 0

    def _change_state(self, task: Task, command: Command, reason: str) -> None:
        target = LEADS_TO[command]
        if task.state is target and command in REPEATABLE:
            return
        if target not in CHANGES[task.state] or task.is_over:
            raise IllegalChange(
                f"The task is {task.state.value} and cannot be told to {command.value}",
                where=task.spec.name,
                hint="look at its state first; an ended task is only reopened by retry-failed",
            )
        if target in ENDED:
            self._end_task(task, target, reason)
        else:
            task.state, task.reason = target, reason

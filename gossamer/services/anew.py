"""`--fresh`: forget what an earlier run did, and touch nothing that somebody else uses."""

from __future__ import annotations

import logging
from pathlib import Path

from gossamer.model.errors import OutputError, StateError, UsageError
from gossamer.model.task import IllegalChange
from gossamer.ports.frontier import Frontier
from gossamer.services.wiring import (
    discard_state,
    has_state,
    is_damaged,
    is_shared,
    is_worked_on,
    open_frontier,
    running_elsewhere,
    set_aside,
)

log = logging.getLogger("gossamer")


async def begin_anew(state: Path, task: str, output: Path) -> None:
    """Remove the task and its output. Called by who holds the task; raises UsageError where its pages are leased all the same,
    as they are for a while when the workers of a killed command finish what is open."""
    if has_state(state) and not await _forgotten(state, task):
        if is_worked_on(state):
            raise running_elsewhere(state, task)
        discard_state(state)
    _remove_output(output)


async def _forgotten(state: Path, task: str) -> bool:
    """Whether nothing more is to be removed: the state has other tasks too, or was put aside."""
    try:
        async with open_frontier(state) as frontier:
            names = [view.spec.name for view in await frontier.tasks()]
            if not any(name != task for name in names) and not is_shared(state, task):
                return False
            if task in names:
                await frontier.reap()  # what a killed run had in hand is nobody's
                await frontier.forget(task)
            return True
    except IllegalChange:
        raise running_elsewhere(state, task) from None
    except StateError as error:
        if not is_damaged(error):
            raise
    if is_worked_on(state):
        raise running_elsewhere(state, task)
    log.warning("The state file was damaged. It is kept as %s; a new one begins.", set_aside(state))
    return True


async def forget_shared(frontier: Frontier, task: str, output: Path) -> None:
    """The same where many machines share the frontier: only this task is forgotten, and only if nobody works on it."""
    if await frontier.tasks([task]):
        await frontier.reap()
        try:
            await frontier.forget(task)
        except IllegalChange as error:
            raise UsageError(
                "Workers have pages of this task open",
                where=task,
                hint="`gossamer cancel` it, and wait until they have let go",
            ) from error
    _remove_output(output)


def _remove_output(output: Path) -> None:
    if str(output) == "-" or output.is_dir():
        return  # the sink says what is wrong with a folder
    try:
        output.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(
            f"The old output cannot be removed: {error.strerror}",
            where=str(output),
            hint="check the permissions of its folder, or name another file with --output",
        ) from error

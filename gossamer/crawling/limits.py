"""When a task has had its time. Its other limits count what the store counts, so they are the store's own to keep."""

from __future__ import annotations

from gossamer.model.settings import Settings
from gossamer.model.task import Command


def reached(settings: Settings, seconds: float) -> tuple[Command, str] | None:
    """The order to give to a task that was opened so long ago, with its reason; None while it may go on."""
    if settings.max_minutes is not None and seconds >= settings.max_minutes * 60:
        return Command.FINISH, "max_minutes"
    return None

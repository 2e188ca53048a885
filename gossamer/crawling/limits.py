"""When a task has had enough: the author's limits, checked against the frontier's own counters."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.model.settings import Settings
from gossamer.model.task import Command


def reached(settings: Settings, counters: Mapping[str, int], seconds: float) -> tuple[Command, str] | None:
    """The order to give, with its reason; None while the task may go on. (max_pages is the store's own to keep.)"""
    if settings.max_errors is not None and counters["failed"] >= settings.max_errors:
        return Command.FAIL, "max_errors"
    if settings.max_items is not None and counters["items"] >= settings.max_items:
        return Command.FINISH, "max_items"
    if settings.max_minutes is not None and seconds >= settings.max_minutes * 60:
        return Command.FINISH, "max_minutes"
    return None

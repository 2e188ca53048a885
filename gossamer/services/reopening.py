"""A task that has ended, and the same command again: whether it goes on, and what is said where it does not."""

from __future__ import annotations

from collections.abc import Mapping

from gossamer.model.settings import Settings
from gossamer.model.task import TaskState, TaskView
from gossamer.services import figures


def is_raised(task: TaskView, counters: Mapping[str, int], settings: Settings) -> bool:
    """Whether the limit that completed the task leaves room by these settings, so that the rest may be done."""
    if task.state is not TaskState.COMPLETED:
        return False
    limits = {
        "max_pages": (settings.max_pages, counters["pages"]),
        "max_items": (settings.max_items, counters["items"]),
        "max_minutes": (settings.max_minutes, task.opened_ago / 60),
    }
    # All of them, not only the one that ended it: another that is reached would end it again at once.
    return task.reason in limits and all(_has_room(limit) for limit in limits.values())


def _has_room(limit: tuple[float | None, float]) -> bool:
    most, reached = limit
    return most is None or reached < most


def already_ended(task: TaskView, written: int) -> str:
    """What is said instead of crawling: what else was done, and what would go on."""
    what = "This crawl was complete before: nothing was fetched"
    if task.reason in {"max_pages", "max_items", "max_minutes"}:
        what = f"This crawl was ended by {task.reason} before: nothing was fetched. Raise it to go on"
    elif task.state is not TaskState.COMPLETED:
        what = f"This crawl had ended before ({task.state.value}): nothing was fetched"
    if written:
        what += f"; {figures.counted(written, 'item')} that the output lacked {'was' if written == 1 else 'were'} written"
    return f"{what}. --fresh starts it anew."

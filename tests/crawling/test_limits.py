"""The one limit that is a matter of time, and so not the store's to watch."""

from __future__ import annotations

import pytest

from gossamer.crawling.limits import reached
from gossamer.model.settings import Settings
from gossamer.model.task import Command


@pytest.mark.parametrize(
    ("minutes", "seconds", "order"),
    [
        (None, 1e9, None),
        (2.0, 119.9, None),
        (2.0, 120.0, (Command.FINISH, "max_minutes")),
        (0.005, 1.0, (Command.FINISH, "max_minutes")),
    ],
)
def test_a_task_has_so_many_minutes(
    minutes: float | None, seconds: float, order: tuple[Command, str] | None
) -> None:
    """It is finished when they are over, counted from its opening; without the limit it never is."""
    assert reached(Settings(max_minutes=minutes), seconds) == order


def test_what_the_store_counts_is_the_stores_to_keep() -> None:
    """No other limit is an order from here, however long the task runs."""
    assert reached(Settings(max_pages=1, max_items=1, max_errors=1), 1e9) is None

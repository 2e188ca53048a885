"""The overseer watches the clock; what can be counted ends a task by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.crawling.runtime import Runtime
from gossamer.model.item import Item
from gossamer.model.record import Link, Outcome, Verdict
from gossamer.model.settings import Settings
from gossamer.model.task import TaskState
from gossamer.services.overseeing import Overseer
from gossamer.services.submission import spec_of
from gossamer.spiders import Spider
from gossamer.testing.fake_clock import FakeClock

START = "http://a.example/"


class Silent:
    """A view that shows nothing."""

    def update(self, snapshot: Any) -> None:
        """Nobody looks."""


class Watch:
    """A task of one host as it is submitted, with its overseer."""

    def __init__(self, **settings: Any) -> None:
        self.clock = FakeClock()
        self.frontier = MemoryFrontier(self.clock)
        spider = Spider("shop", start=START)
        given = Settings(robots=False, **settings)
        self.spec = spec_of("shop", spider, given, Path("shop.jsonl"))
        runtime = Runtime(self.spec, spider, given, hosts=("a.example",))
        self.overseer = Overseer(self.frontier, runtime, self.clock, Silent())  # type: ignore[arg-type]

    async def settle(self, *verdicts: Verdict) -> None:
        """So many pages of as many hosts, each ending so, with an item."""
        await self.frontier.open_task(self.spec)
        links = [Link(bytes([n]) * 16, f"http://h{n}/", f"h{n}:80") for n in range(len(verdicts))]
        await self.frontier.push("shop", links)
        session = await self.frontier.open_session("worker")
        grants = (await self.frontier.lease(session, {"shop": len(verdicts)})).grants
        outcomes = [
            Outcome(grant.number, verdict, items=[Item(b"{}")])
            for grant, verdict in zip(grants, verdicts, strict=True)
        ]
        await self.frontier.settle(session, outcomes, {})


def test_the_limits_of_the_settings_are_the_tasks() -> None:
    """Whoever submits says them once; the store has them from then on."""
    spec = Watch(max_pages=7, max_items=8, max_errors=9).spec
    assert (spec.max_pages, spec.max_items, spec.max_errors) == (7, 8, 9)
    spec = Watch().spec
    assert (spec.max_pages, spec.max_items, spec.max_errors) == (None, None, None)


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        ({"max_items": 2}, (TaskState.COMPLETED, "max_items")),
        ({"max_errors": 2}, (TaskState.FAILED, "max_errors")),
    ],
)
async def test_what_can_be_counted_ends_without_the_overseer(
    limits: dict[str, int], end: tuple[TaskState, str]
) -> None:
    """It finds the task ended with the page that reached the limit, and gives no order."""
    watch = Watch(**limits)
    await watch.settle(Verdict.FAILED, Verdict.FAILED, Verdict.FAILED)
    view = await watch.overseer.look()
    assert (view.state, view.reason) == end
    assert watch.overseer.counters["failed"] == 2


async def test_time_is_the_overseers() -> None:
    """A task whose minutes are over is finished at the next look; before it goes on."""
    watch = Watch(max_minutes=1.0)
    await watch.settle(Verdict.DONE)
    assert (await watch.overseer.look()).state is TaskState.RUNNING
    watch.clock.advance(60.0)
    view = await watch.overseer.look()
    assert (view.state, view.reason) == (TaskState.COMPLETED, "max_minutes")

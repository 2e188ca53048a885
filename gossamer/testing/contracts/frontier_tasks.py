"""Tasks: opened once, ordered about by one row's change, complete when nothing is left."""

from __future__ import annotations

import msgspec
import pytest

from gossamer.model.host import HostOrder, Wish
from gossamer.model.record import Kind, Link, State
from gossamer.model.task import ENDED, Command, IllegalChange, TaskEnded, TaskSpec, TaskState, UnknownTask
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier_steps import (
    HOST,
    RUDE,
    Elapse,
    begin,
    done,
    failed,
    key,
    life,
    page,
    pages,
    retry,
    row,
    seed,
    settle,
    state,
    take,
    take_one,
    urls,
)


class OpeningContract:
    """The same name is the same task."""

    async def test_opening_twice_finds_the_first(self, frontier: Frontier) -> None:
        """A task that exists is answered as it is, its spec unchanged."""
        first = TaskSpec(name="t", settings=b'{"a":1}', wish=Wish(per_host=2, eager=("a.test",)), max_pages=7)
        opened = await frontier.open_task(first)
        assert (opened.state, opened.seeding, opened.spec) == (TaskState.RUNNING, True, first)
        assert (await frontier.open_task(TaskSpec(name="t", weight=9))).spec == first

    async def test_tasks_are_listed_as_they_were_opened(self, frontier: Frontier) -> None:
        """All of them, or those named; a name that nobody opened is left out."""
        for name in ("c", "a", "b"):
            await frontier.open_task(TaskSpec(name=name))
        assert [view.spec.name for view in await frontier.tasks()] == ["c", "a", "b"]
        assert [view.spec.name for view in await frontier.tasks(["b", "nobody", "c"])] == ["c", "b"]

    async def test_a_view_tells_how_far_it_is(self, frontier: Frontier, elapse: Elapse) -> None:
        """Sums and ages are those of the moment."""
        session = await begin(frontier, *pages(3))
        await elapse(5.0)
        (grant, *_) = await take(frontier, session, 2)
        await settle(frontier, session, done(grant))
        view = await state(frontier)
        assert (view.discovered, view.pending, view.leased, view.terminal) == (3, 1, 1, 1)
        assert view.opened_ago == pytest.approx(5.0)
        assert view.ended_ago is None

    async def test_unknown_tasks_are_named(self, frontier: Frontier) -> None:
        """Whoever orders or counts a task that is not there is told its name."""
        with pytest.raises(UnknownTask, match="nobody"):
            await frontier.control("nobody", Command.PAUSE)
        with pytest.raises(UnknownTask, match="nobody"):
            await frontier.counters("nobody")


class EndContract:
    """A task is complete when nothing is pending and nothing is leased, and never before."""

    async def test_the_last_settle_completes(self, frontier: Frontier, elapse: Elapse) -> None:
        """When all seeds are in, the settle that leaves nothing to do ends the task; nothing else does."""
        session = await begin(frontier, *pages(2), seeded=True)
        one, two = await take(frontier, session)
        await settle(frontier, session, done(one))
        assert (await state(frontier)).state is TaskState.RUNNING
        answer = await settle(frontier, session, done(two), t=1)
        assert answer.ended == {"t": "COMPLETED"}
        await elapse(2.0)
        view = await state(frontier)
        assert (view.state, view.reason, view.ended_ago) == (TaskState.COMPLETED, "", pytest.approx(2.0))

    async def test_a_task_that_is_seeding_goes_on(self, frontier: Frontier) -> None:
        """As long as seeds may come, an empty task is not complete; the order SEEDED completes it then."""
        session = await begin(frontier, page())
        await settle(frontier, session, done(await take_one(frontier, session)))
        assert (await state(frontier)).state is TaskState.RUNNING
        assert (await frontier.control("t", Command.SEEDED)).state is TaskState.COMPLETED

    async def test_links_and_delays_keep_it_going(self, frontier: Frontier, elapse: Elapse) -> None:
        """What the last settle found, or sent back for later, is still to do."""
        session = await begin(frontier, page("/1"), seeded=True)
        await settle(frontier, session, done(await take_one(frontier, session), links=[page("/2")]))
        await settle(frontier, session, retry(await take_one(frontier, session), delay=5.0))
        assert (await state(frontier)).state is TaskState.RUNNING
        await elapse(5.0)
        await settle(frontier, session, done(await take_one(frontier, session)))
        assert (await state(frontier)).state is TaskState.COMPLETED

    async def test_a_task_kept_open_stays(self, frontier: Frontier) -> None:
        """A task that was opened to stay open waits for more."""
        session = await begin(frontier, page(), seeded=True, keep_open=True)
        await settle(frontier, session, done(await take_one(frontier, session)))
        assert (await state(frontier)).state is TaskState.RUNNING
        assert (await frontier.push("t", [page("/more")])).new == 1

    async def test_max_pages_ends_the_task(self, frontier: Frontier) -> None:
        """Never more pages are granted than the budget has; when it is spent the rest is CANCELLED(max_pages)."""
        session = await begin(frontier, *pages(3), *pages(3, "b.test"), max_pages=2)
        got = await take(frontier, session)
        assert len(got) == 2
        assert (await settle(frontier, session, retry(got[0]), t=9)).grants != []
        got = [got[1], *await take(frontier, session), await self.leased_again(frontier, session)]
        await settle(frontier, session, *(done(grant) for grant in got))
        view = await state(frontier)
        assert (view.state, view.reason) == (TaskState.COMPLETED, "max_pages")
        counters = await frontier.counters("t")
        assert (counters["pages"], counters["cancelled"]) == (2, 4)

    async def leased_again(self, frontier: Frontier, session: str) -> object:
        await frontier.release(session)
        return await take_one(frontier, session)

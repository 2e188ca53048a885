"""What a frontier on a disk or a server keeps besides: everything that it answered, over a restart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from gossamer.model.host import HostOrder, Wish
from gossamer.model.item import Item
from gossamer.model.record import State
from gossamer.model.task import Command, TaskState
from gossamer.ports.frontier import SESSION_TTL, Frontier
from gossamer.testing.contracts.frontier_steps import (
    RULES,
    Elapse,
    ask_robots,
    begin,
    done,
    failed,
    items,
    life,
    ordered,
    page,
    pages,
    retry,
    row,
    settle,
    state,
    take,
    take_one,
    urls,
)

Reopen = Callable[[], Awaitable[Frontier]]


class DurabilityContract:
    """Inherit besides `FrontierContract`, and give the fixture `reopen`: it closes the store and opens it again."""

    async def test_records_are_kept(self, frontier: Frontier, reopen: Reopen, elapse: Elapse) -> None:
        """Pending ones with their order, delays and retries; ended ones with their codes."""
        links = [page("/1"), page("/2"), page("/3", priority=5), page("/4", delay=30.0), page("/5", "b.test")]
        session = await begin(frontier, *links)
        got = {grant.url[-1]: grant for grant in await take(frontier, session)}
        await settle(
            frontier, session, failed(got["1"], "dns"), retry(got["2"]), retry(got["3"]), done(got["5"])
        )
        await frontier.close_session(session)
        again = await reopen()
        assert ((await life(again, page("/1"))).state, (await life(again, page("/1"))).code) == (
            State.FAILED,
            "dns",
        )
        assert (await life(again, page("/4"))).due_in == pytest.approx(30.0, abs=5.0)
        new = await again.open_session("worker")
        seen = await take(again, new)
        assert [(grant.url[-1], grant.retries) for grant in seen] == [("3", 1), ("2", 1)]
        assert min(grant.number for grant in seen) > max(grant.number for grant in got.values())
        await elapse(35.0)
        assert urls(await take(again, new)) == ["https://a.test/4"]

    async def test_what_was_known_is_known(self, frontier: Frontier, reopen: Reopen) -> None:
        """No key becomes new again, and every counter reads as before."""
        session = await begin(frontier, *pages(3))
        await settle(
            frontier,
            session,
            done(await take_one(frontier, session), items=items(b"{}"), counts={"bytes": 9}),
        )
        before = await frontier.counters("t")
        again = await reopen()
        assert await again.counters("t") == before
        assert (await again.push("t", pages(4))).new == 1

    async def test_leases_of_the_dead_return(
        self, frontier: Frontier, reopen: Reopen, elapse: Elapse
    ) -> None:
        """What was out when the process died is leased again when its session is given up, as a suspect."""
        session = await begin(frontier, page())
        await take_one(frontier, session)
        again = await reopen()
        for _ in range(4):
            await elapse(SESSION_TTL * 0.6)
            await again.reap()
        assert not await again.beat(session)
        assert (await take_one(again, await again.open_session("next"))).suspect

    async def test_politeness_is_kept(self, frontier: Frontier, reopen: Reopen) -> None:
        """Rules, pace, parking, trouble: a restart forgets nothing."""
        session = await begin(frontier, *pages(5), wish=Wish())
        await ask_robots(frontier, session)
        one, *_ = await take(frontier, session)
        await settle(frontier, session, ordered(one, bad=True, park=600.0, level=3, delay=1.5, latency=0.25))
        await frontier.close_session(session)
        again = await reopen()
        seen = await row(again)
        assert (seen.level, seen.trouble, seen.delay, seen.latency) == (3, 1, 1.5, 0.25)
        assert (seen.robots_version, seen.robots) == (1, RULES.body)
        assert 500 < seen.parked_for <= 600
        assert await take(again, await again.open_session("next")) == []

    async def test_tasks_are_kept(self, frontier: Frontier, reopen: Reopen) -> None:
        """State, reason, spec, and what is closed."""
        session = await begin(frontier, *pages(3), wish=Wish(robots=False, eager=("a.test",)), max_pages=9)
        await settle(
            frontier,
            session,
            failed(await take_one(frontier, session), "dns", host=HostOrder(give_up="dns")),
        )
        await frontier.control("t", Command.PAUSE, reason="user")
        before = (await state(frontier)).spec
        again = await reopen()
        view = await state(again)
        assert (view.spec, view.state, view.reason) == (before, TaskState.PAUSED, "user")
        await again.push("t", [page("/new")])
        assert (await life(again, page("/new"))).code == "dns"

    async def test_failures_and_bodies_are_kept(self, frontier: Frontier, reopen: Reopen) -> None:
        """What failed before counts towards the limit after, and a record still names its body."""
        session = await begin(frontier, *pages(3), max_errors=2)
        one, two, three = await take(frontier, session)
        await settle(frontier, session, done(one, body="body-1"), failed(two))
        again = await reopen()
        assert (await life(again, page("/0"))).body == "body-1"
        await settle(again, session, failed(three))
        view = await state(again)
        assert (view.state, view.reason) == (TaskState.FAILED, "max_errors")

    async def test_pattern_budgets_are_kept(self, frontier: Frontier, reopen: Reopen) -> None:
        """What a pattern has taken before a restart is taken after it."""
        await begin(frontier, *pages(2), pages_per_pattern=3)
        again = await reopen()
        await again.push("t", pages(5))
        assert [(await life(again, link)).code for link in pages(5)] == [
            "",
            "",
            "",
            "trap_pattern",
            "trap_pattern",
        ]

    async def test_the_log_and_its_cursors_are_kept(self, frontier: Frontier, reopen: Reopen) -> None:
        """A sink goes on from its place; numbers go on rising, also behind a log that was trimmed to nothing."""
        session = await begin(frontier, *pages(4))
        got = await take(frontier, session)
        await settle(frontier, session, done(got[0], items=[*items(b'{"n":1}'), Item(b'{"n":2}', "two")]))
        numbers = [item.number for item in await frontier.read("t", 0, 0, 9)]
        await frontier.cursor("t", 0, "other")
        await frontier.cursor("t", 0, "file")
        await frontier.advance("t", 0, "file", numbers[-1], b"17")
        again = await reopen()
        assert await again.cursor("t", 0, "file") == (numbers[-1], b"17")
        assert [item.key for item in await again.read("t", 0, 0, 9)] == [None, "two"]
        await again.advance("t", 0, "other", numbers[-1])
        assert await again.read("t", 0, 0, 9) == []
        new = await again.open_session("next")
        await again.release(session)
        (grant, *_) = await take(again, new)
        await settle(again, new, done(grant, items=items(b'{"n":3}')))
        (item,) = await again.read("t", 0, 0, 9)
        assert item.number > numbers[-1]
        assert item.data == b'{"n":3}'

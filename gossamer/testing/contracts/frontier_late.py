"""What comes late, changes in between, or is forgotten: the host was asked all the same, and a token is never silently gone."""

from __future__ import annotations

import msgspec
import pytest

from gossamer.model.host import Wish
from gossamer.model.record import Outcome, Verdict
from gossamer.model.task import Command, IllegalChange, UnknownTask
from gossamer.ports.frontier import SESSION_TTL, CursorAhead, Frontier
from gossamer.testing.contracts.frontier_steps import (
    RUDE,
    Elapse,
    begin,
    done,
    items,
    page,
    pages,
    settle,
    state,
    take,
    take_one,
)

SLOW = Wish(robots=False, delay=5.0)


class LateContract:
    """Part of `FrontierContract`."""

    async def test_a_request_of_a_cancelled_task_counts_for_its_host(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """Its verdict is too late, but the next task's request waits its delay from when that one was sent."""
        session = await begin(frontier, page("/a"), wish=SLOW)
        grant = await take_one(frontier, session)
        await frontier.control("t", Command.CANCEL)
        await settle(frontier, session, Outcome(grant.number, Verdict.RELEASE, sent_ago=0.0))
        other = await begin(frontier, page("/b"), name="u", wish=SLOW)
        assert await take(frontier, other, name="u") == []
        await elapse(5.1)
        assert len(await take(frontier, other, name="u")) == 1

    async def test_a_session_that_closes_leaves_its_hosts_their_pause(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """Nobody says whether the requests of a drained worker went out, so the next one waits as if they had just now."""
        session = await begin(frontier, *pages(2), wish=SLOW)
        await take_one(frontier, session)
        await frontier.close_session(session)
        other = await frontier.open_session("other")
        assert await take(frontier, other) == []
        await elapse(5.1)
        assert len(await take(frontier, other)) == 1

    @pytest.mark.parametrize("how", ["resumed", "updated"])
    async def test_a_wish_holds_from_the_moment_it_is_made(
        self, frontier: Frontier, elapse: Elapse, how: str
    ) -> None:
        """A task that is resumed, or wishes a longer delay, is not served by an hour that was set before."""
        session = await begin(frontier, *pages(2), wish=SLOW if how == "resumed" else RUDE)
        if how == "resumed":
            await frontier.control("t", Command.PAUSE)
        await begin(frontier, page("/u"), name="u", wish=RUDE)
        await settle(frontier, session, done(await take_one(frontier, session, "u"), sent_ago=0.0))
        await elapse(1.0)
        if how == "resumed":
            await frontier.control("t", Command.RESUME)
        else:
            spec = msgspec.structs.replace((await state(frontier)).spec, wish=SLOW)
            await frontier.control("t", Command.UPDATE, spec=spec)
        assert await take(frontier, session) == []
        await elapse(4.1)
        assert len(await take(frontier, session)) == 1

    async def test_budgets_in_flight_stand_in_nobodys_way(self, frontier: Frontier) -> None:
        """Hosts whose page budget is open already are not looked at before those that have room, nor asked about again at once."""
        wish = Wish(robots=False, per_host=8, pages_per_host=1)
        busy = [page(f"/{n}", f"busy{host}.test") for host in range(10) for n in range(3)]
        session = await begin(frontier, *busy, wish=wish)
        assert len(await take(frontier, session, 10)) == 10
        await frontier.push("t", [page("/", f"free{host}.test") for host in range(5)])
        answer = await frontier.lease(session, {"t": 5})
        assert {grant.host for grant in answer.grants} == {f"free{host}.test" for host in range(5)}
        assert (await frontier.lease(session, {"t": 5})).wait is None

    async def test_a_token_that_nobody_knows_is_counted_for_its_task(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """Settled twice, reaped, never given: each is answered as stale and counted, where the outcome names its task."""
        session = await begin(frontier, *pages(3))
        first, second = await take(frontier, session, 2)
        await settle(frontier, session, done(first, task="t"))
        assert (await settle(frontier, session, done(first, task="t"))).stale == [first.number]
        assert (await frontier.counters("t"))["stale"] == 1
        other = await frontier.open_session("other")
        for _ in range(3):
            await elapse(SESSION_TTL / 2)
            await frontier.beat(other)
        await frontier.reap()
        assert (await settle(frontier, session, done(second, task="t"))).stale == [second.number]
        await settle(frontier, other, Outcome(10**6, Verdict.DONE, task="t"))
        assert (await frontier.counters("t"))["stale"] == 3

    async def test_a_cursor_beyond_its_log_is_refused(self, frontier: Frontier) -> None:
        """A sink that claims what the log never had stops loudly: else what comes next would never reach it."""
        session = await begin(frontier, page("/"))
        await settle(frontier, session, done(await take_one(frontier, session), items=items(b"{}")))
        await frontier.cursor("t", 0, "sink")
        (item,) = await frontier.read("t", 0, 0, 9)
        with pytest.raises(CursorAhead, match="sink"):
            await frontier.advance("t", 0, "sink", item.number + 1)
        await frontier.advance("t", 0, "sink", item.number)
        assert (await frontier.cursor("t", 0, "sink"))[0] == item.number

    async def test_a_forgotten_task_leaves_nothing(self, frontier: Frontier) -> None:
        """Its name is free, its URLs are new again, its items are gone; other tasks and the hosts stay."""
        session = await begin(frontier, *pages(2), page("/later", delay=9.0))
        await begin(frontier, page("/u"), name="u")
        await settle(
            frontier, session, *(done(grant, items=items(b"{}")) for grant in await take(frontier, session))
        )
        await frontier.forget("t")
        with pytest.raises(UnknownTask):
            await frontier.counters("t")
        assert [view.spec.name for view in await frontier.tasks()] == ["u"]
        await begin(frontier)
        assert (await frontier.push("t", pages(2))).new == 2
        assert await frontier.read("t", 0, 0, 9) == []
        assert len(await take(frontier, session, name="u")) == 1

    async def test_a_task_that_is_worked_on_is_not_forgotten(self, frontier: Frontier) -> None:
        """While something of it is leased, forgetting is refused and nothing has changed."""
        session = await begin(frontier, *pages(2))
        grant = await take_one(frontier, session)
        with pytest.raises(IllegalChange):
            await frontier.forget("t")
        assert (await settle(frontier, session, done(grant))).stale == []

"""Sessions: a worker's life. Whatever ends it, its leases go back."""

from __future__ import annotations

import pytest

from gossamer.model.host import Wish
from gossamer.model.record import Kind, State
from gossamer.model.task import SessionLost
from gossamer.ports.frontier import SESSION_TTL, Frontier
from gossamer.testing.contracts.frontier_steps import (
    HOST,
    Elapse,
    begin,
    done,
    items,
    life,
    page,
    pages,
    row,
    settle,
    take,
    take_one,
    urls,
)

STEP = SESSION_TTL * 0.6  # short enough that the store was not halted, long enough that two of them kill


class SessionsContract:
    """Alive by its beat, dead for ever, and never blamed on a record."""

    async def outlive(self, frontier: Frontier, elapse: Elapse, beating: str = "") -> None:
        """Let every session die that does not beat, while the store itself is never out of reach."""
        for _ in range(2):
            await elapse(STEP)
            await frontier.beat(beating)

    async def test_who_lives_is_seen_with_what_he_holds(self, frontier: Frontier, elapse: Elapse) -> None:
        """Worker, last beat, leases by task and by host; who has ended is not there any more."""
        session = await begin(frontier, *pages(3), page("/x", "b.test"))
        other = await frontier.open_session("another")
        await take(frontier, session, 3)
        await elapse(2.0)
        await frontier.beat(other)
        idle, busy = await frontier.sessions()
        assert (idle.worker, idle.session, dict(idle.leases), dict(idle.hosts)) == ("another", other, {}, {})
        assert idle.beat_ago == pytest.approx(0.0, abs=0.5)
        assert (busy.worker, busy.session, dict(busy.leases)) == ("worker", session, {"t": 3})
        assert busy.beat_ago == pytest.approx(2.0, abs=0.5)
        assert sum(busy.hosts.values()) == 3
        await frontier.close_session(session)
        assert [view.session for view in await frontier.sessions()] == [other]

    async def test_an_unknown_session_gets_nothing(self, frontier: Frontier) -> None:
        """A session that was never opened neither beats nor leases."""
        await begin(frontier, page())
        assert not await frontier.beat("nobody")
        with pytest.raises(SessionLost):
            await frontier.lease("nobody", {"t": 1})

    async def test_each_session_is_another(self, frontier: Frontier) -> None:
        """Two sessions of one worker have different ids, and both live."""
        one, two = await frontier.open_session("w"), await frontier.open_session("w")
        assert one != two
        assert await frontier.beat(one)
        assert await frontier.beat(two)

    async def test_release_gives_back_what_is_named(self, frontier: Frontier) -> None:
        """Only own leases go back; they are no suspects and keep their place."""
        session = await begin(frontier, *pages(4))
        other = await frontier.open_session("other")
        got = await take(frontier, session, 3)
        theirs = await take_one(frontier, other)
        assert await frontier.release(session, [got[0].number, theirs.number, 10**6]) == 1
        again = await take_one(frontier, session)
        assert (again.url, again.suspect, again.retries) == (got[0].url, False, 0)
        assert (await life(frontier, page("/3"))).state is State.LEASED

    async def test_release_gives_back_everything(self, frontier: Frontier) -> None:
        """Without numbers all leases of the session go back, in their old order, and their tokens are stale."""
        session = await begin(frontier, *pages(4))
        got = await take(frontier, session)
        assert await frontier.release(session) == 4
        assert (await row(frontier)).open == 0
        assert (await settle(frontier, session, done(got[0]))).stale == [got[0].number]
        assert urls(await take(frontier, session)) == urls(got)

    async def test_closing_releases_and_ends(self, frontier: Frontier) -> None:
        """A closed session holds nothing, gets nothing and may be closed again."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        await frontier.close_session(session)
        await frontier.close_session(session)
        assert not await frontier.beat(session)
        assert await frontier.release(session) == 0
        with pytest.raises(SessionLost):
            await frontier.lease(session, {"t": 1})
        again = await take_one(frontier, await frontier.open_session("next"))
        assert (again.url, again.suspect) == (grant.url, False)

    async def test_the_silent_die(self, frontier: Frontier, elapse: Elapse) -> None:
        """A session that stopped beating is ended; its records are suspects, PENDING, and nothing was burned."""
        dead = await begin(frontier, page())
        grant = await take_one(frontier, dead)
        alive = await frontier.open_session("other")
        await self.outlive(frontier, elapse, alive)
        assert await frontier.reap() == 1
        assert await frontier.reap() == 0
        seen = await life(frontier, page())
        assert (seen.state, seen.suspect, seen.retries, seen.crashes) == (State.PENDING, True, 0, 0)
        again = await take_one(frontier, alive)
        assert again.suspect
        assert again.number > grant.number

    async def test_death_is_for_ever(self, frontier: Frontier, elapse: Elapse) -> None:
        """A dead session that wakes up cannot beat, lease or settle; its tokens are answered as stale."""
        dead = await begin(frontier, page())
        grant = await take_one(frontier, dead)
        await self.outlive(frontier, elapse)
        await frontier.reap()
        assert not await frontier.beat(dead)
        answer = await settle(frontier, dead, done(grant, items=items(b"{}")), t=5)
        assert (answer.stale, answer.grants) == ([grant.number], [])
        assert (await frontier.counters("t"))["items"] == 0
        with pytest.raises(SessionLost):
            await frontier.lease(dead, {"t": 1})

    async def test_a_beat_keeps_alive(self, frontier: Frontier, elapse: Elapse) -> None:
        """Who beats is never reaped, however long it works on one record."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        for _ in range(5):
            await elapse(STEP)
            assert await frontier.beat(session)
            assert await frontier.reap() == 0
        assert (await settle(frontier, session, done(grant))).stale == []

    async def test_only_reaping_kills(self, frontier: Frontier, elapse: Elapse) -> None:
        """A session that was silent for long, but that nobody reaped, goes on where it was."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        await self.outlive(frontier, elapse)
        assert await frontier.beat(session)
        assert await frontier.reap() == 0
        assert (await settle(frontier, session, done(grant))).stale == []

    async def test_a_halt_of_the_store_kills_nobody(self, frontier: Frontier, elapse: Elapse) -> None:
        """When nobody could reach the store for long, all sessions have one more TTL to say that they live."""
        session = await begin(frontier, page())
        await elapse(SESSION_TTL * 20)
        assert await frontier.reap() == 0
        await elapse(STEP)
        assert await frontier.beat(session)
        await self.outlive(frontier, elapse)
        assert await frontier.reap() == 1

    async def test_a_hosts_turn_passes_with_the_dead(self, frontier: Frontier, elapse: Elapse) -> None:
        """Nobody knows when the lost request went out, so the next one waits a whole delay."""
        dead = await begin(frontier, *pages(2), wish=Wish(delay=5.0, robots=False))
        alive = await frontier.open_session("other")
        await take_one(frontier, dead)
        await self.outlive(frontier, elapse, alive)
        await frontier.reap()
        assert await take(frontier, alive) == []
        await elapse(5.0)
        assert len(await take(frontier, alive)) == 1

    async def test_a_dead_session_returns_the_robots_lease(self, frontier: Frontier, elapse: Elapse) -> None:
        """The host's rules can be asked for again by somebody who lives."""
        dead = await begin(frontier, page(), wish=Wish())
        alive = await frontier.open_session("other")
        assert (await take_one(frontier, dead)).kind is Kind.ROBOTS
        await self.outlive(frontier, elapse, alive)
        await frontier.reap()
        assert (await take_one(frontier, alive)).kind is Kind.ROBOTS
        assert (await frontier.hosts([HOST]))[HOST].open == 1

"""Records: made once, leased in order."""

from __future__ import annotations

import pytest

from gossamer.model.record import Kind, Pushed, State
from gossamer.model.task import TaskSpec, UnknownTask
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier_steps import (
    RUDE,
    Elapse,
    begin,
    done,
    life,
    page,
    pages,
    settle,
    take,
    take_one,
    urls,
)


class PushContract:
    """A key is one record for ever."""

    async def test_a_key_is_new_once(self, frontier: Frontier) -> None:
        """A second push of the same link finds it known, also within one push."""
        await begin(frontier)
        assert await frontier.push("t", [page("/1"), page("/2"), page("/1")]) == Pushed(2, 1)
        assert await frontier.push("t", [page("/1"), page("/3")]) == Pushed(1, 1)
        assert (await frontier.counters("t"))["discovered"] == 3

    async def test_a_key_belongs_to_its_task(self, frontier: Frontier) -> None:
        """Two tasks get the same URL each for itself."""
        await begin(frontier, page())
        await frontier.open_task(TaskSpec(name="other", wish=RUDE))
        assert await frontier.push("other", [page()]) == Pushed(1, 0)

    async def test_an_authors_key_is_one_over_all_hosts(self, frontier: Frontier) -> None:
        """The same own key on another host is the same record."""
        await begin(frontier)
        first = page("/x", own_key=True)
        again = page("/y", "b.test", own_key=True)
        assert await frontier.push("t", [first]) == Pushed(1, 0)
        again = type(again)(first.key, again.url, again.host, own_key=True)
        assert await frontier.push("t", [again]) == Pushed(0, 1)

    async def test_what_has_ended_is_known(self, frontier: Frontier) -> None:
        """A push of a record that has ended makes nothing and changes nothing, whatever its priority."""
        session = await begin(frontier, page(), wish=RUDE)
        await settle(frontier, session, done(await take_one(frontier, session)))
        assert await frontier.push("t", [page(priority=9)]) == Pushed(0, 1)
        assert await take(frontier, session) == []
        assert (await life(frontier, page())).state is State.DONE

    async def test_many_links_are_one_push(self, frontier: Frontier) -> None:
        """Three thousand links over thirty hosts are one call, and each of them is there."""
        links = [page(f"/{n}", f"h{n % 30}.test") for n in range(3_000)]
        await begin(frontier)
        assert await frontier.push("t", links) == Pushed(3_000, 0)
        assert await frontier.push("t", links) == Pushed(0, 3_000)

    async def test_an_unknown_task_takes_nothing(self, frontier: Frontier) -> None:
        """A push to a task that nobody opened is refused."""
        with pytest.raises(UnknownTask):
            await frontier.push("nobody", [page()])

    async def test_what_was_never_pushed_has_no_life(self, frontier: Frontier) -> None:
        """Explain says None of a key that it never saw."""
        await begin(frontier, page())
        assert await frontier.explain("t", page("/never").key, page().host) is None


class OrderContract:
    """Hosts in the order in which they became ready; within a host by priority, then first in, first out."""

    async def test_priority_then_age(self, frontier: Frontier) -> None:
        """Within a host the higher priority goes first, and of equals the older one."""
        links = [page("/low", priority=-1), page("/a"), page("/high", priority=5), page("/b")]
        session = await begin(frontier, *links)
        got = urls(await take(frontier, session, 4))
        assert got == [f"https://a.test/{name}" for name in ("high", "a", "b", "low")]

    async def test_a_known_record_moves_up_and_never_down(self, frontier: Frontier) -> None:
        """A pending record that is found again keeps the higher of its priorities."""
        session = await begin(frontier, page("/1", priority=1), page("/2"), page("/3", priority=3))
        await frontier.push("t", [page("/2", priority=2), page("/3", priority=-9)])
        got = await take(frontier, session)
        assert [grant.priority for grant in got] == [3, 2, 1]

    async def test_a_delayed_record_moves_up_too(self, frontier: Frontier, elapse: Elapse) -> None:
        """A higher priority found while a record waits for its hour counts when the hour has come."""
        session = await begin(frontier, page("/1", priority=1), page("/2", delay=2.0))
        await frontier.push("t", [page("/2", priority=7)])
        await elapse(2.0)
        assert [grant.priority for grant in await take(frontier, session)] == [7, 1]

    async def test_hosts_take_turns(self, frontier: Frontier, elapse: Elapse) -> None:
        """A host that was just granted from stands behind those that wait longer."""
        links = [page(path, host) for host in ("a.test", "b.test", "c.test") for path in ("/1", "/2")]
        session = await begin(frontier, *links, wish=RUDE)
        got = []
        for _ in range(6):
            await elapse(0.25)
            got.append(await take_one(frontier, session))
        assert [grant.host for grant in got] == ["a.test", "b.test", "c.test"] * 2

    async def test_a_call_takes_from_the_first_ready_hosts(self, frontier: Frontier) -> None:
        """Hosts that became ready together are served as they were met."""
        session = await begin(frontier, page(host="z.test"), page(host="a.test"), page(host="m.test"))
        assert [grant.host for grant in await take(frontier, session, 2)] == ["z.test", "a.test"]

    async def test_a_grant_tells_what_the_link_told(self, frontier: Frontier) -> None:
        """Depth, hops, priority and request travel with the record."""
        session = await begin(frontier, page("/x", depth=3, hops=2, priority=4, request=b'{"method":"POST"}'))
        got = await take_one(frontier, session)
        assert (got.depth, got.hops, got.priority) == (3, 2, 4)
        assert got.request == b'{"method":"POST"}'
        assert (got.task, got.kind, got.host, got.url) == ("t", Kind.PAGE, "a.test", "https://a.test/x")
        assert (got.retries, got.crashes, got.suspect) == (0, 0, False)

    async def test_no_more_than_wanted_and_nothing_twice(self, frontier: Frontier) -> None:
        """Two sessions share the records out between them; each lease has its own number."""
        links = [page(host=f"h{n}.test") for n in range(5)]
        one = await begin(frontier, *links)
        two = await frontier.open_session("other")
        got = [*await take(frontier, one, 2), *await take(frontier, two, 2), *await take(frontier, one, 2)]
        assert len(got) == len(set(urls(got))) == 5
        numbers = [grant.number for grant in got]
        assert numbers == sorted(set(numbers))

    async def test_an_unknown_task_is_refused_whole(self, frontier: Frontier) -> None:
        """A lease or settle that names an unknown task changes nothing at all."""
        session = await begin(frontier, page())
        with pytest.raises(UnknownTask):
            await frontier.lease(session, {"t": 1, "nobody": 1})
        grant = await take_one(frontier, session)
        with pytest.raises(UnknownTask):
            await frontier.settle(session, [done(grant)], {"nobody": 1})
        assert (await life(frontier, page())).state is State.LEASED

    async def test_a_delayed_link_waits(self, frontier: Frontier, elapse: Elapse) -> None:
        """A link with a delay is not leased before it is over, and the wait says when that is."""
        session = await begin(frontier, page(delay=5.0))
        early = await frontier.lease(session, {"t": 1})
        assert early.grants == []
        assert early.wait == pytest.approx(5.0)
        assert (await life(frontier, page())).due_in == pytest.approx(5.0)
        await elapse(5.0)
        assert len(await take(frontier, session)) == 1


class WaitContract:
    """When it is worth asking again."""

    async def test_nothing_in_sight(self, frontier: Frontier) -> None:
        """Without records there is nothing to wait for."""
        session = await begin(frontier)
        assert (await frontier.lease(session, {"t": 3})).wait is None

    async def test_more_is_ready_than_was_wanted(self, frontier: Frontier) -> None:
        """Who took all that he wanted and left something is told to come at once."""
        session = await begin(frontier, *pages(3))
        assert (await frontier.lease(session, {"t": 1})).wait == 0.0

    async def test_a_full_host_is_not_worth_asking(self, frontier: Frontier) -> None:
        """Where only a settle can free a slot, nobody is told to spin."""
        session = await begin(frontier, *pages(9))
        answer = await frontier.lease(session, {"t": 9})
        assert len(answer.grants) == RUDE.per_host
        assert answer.wait is None

    async def test_a_budget_is_not_worth_asking(self, frontier: Frontier) -> None:
        """Where a page budget is in flight, nobody is told to spin."""
        session = await begin(frontier, *pages(3), max_pages=1)
        answer = await frontier.lease(session, {"t": 3})
        assert len(answer.grants) == 1
        assert answer.wait is None

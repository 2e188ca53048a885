"""What comes late, changes in between, or is forgotten: the host was asked all the same, and a token is never silently gone."""

from __future__ import annotations

import msgspec
import pytest

from gossamer.model.host import HostOrder, Wish
from gossamer.model.record import Kind, Outcome, Verdict
from gossamer.model.task import Command, IllegalChange, UnknownTask
from gossamer.ports.frontier import SESSION_TTL, CursorAhead, Frontier
from gossamer.testing.contracts.frontier_steps import (
    RUDE,
    RULES,
    Elapse,
    begin,
    done,
    failed,
    items,
    life,
    page,
    pages,
    row,
    seed,
    settle,
    state,
    take,
    take_one,
    urls,
)

SLOW = Wish(robots=False, delay=5.0)


async def update(frontier: Frontier, wish: Wish, name: str = "t") -> None:
    spec = msgspec.structs.replace((await state(frontier, name)).spec, wish=wish)
    await frontier.control(name, Command.UPDATE, spec=spec)


async def outlive(frontier: Frontier, elapse: Elapse) -> str:
    """A session that lives on while all others fall silent and are reaped."""
    keeper = await frontier.open_session("keeper")
    for _ in range(3):
        await elapse(SESSION_TTL / 2)
        await frontier.beat(keeper)
    await frontier.reap()
    return keeper


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
            await update(frontier, SLOW)
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
        other = await outlive(frontier, elapse)
        assert (await settle(frontier, session, done(second, task="t"))).stale == [second.number]
        await settle(frontier, other, Outcome(10**6, Verdict.DONE, task="t"))
        assert (await frontier.counters("t"))["stale"] == 3

    async def test_a_late_token_of_a_task_that_is_gone_stops_nobody(self, frontier: Frontier) -> None:
        """It is answered as stale, and what came with it in the same call is applied."""
        session = await begin(frontier, *pages(2))
        first, second = await take(frontier, session, 2)
        late = Outcome(10**6, Verdict.DONE, task="gone")
        answer = await settle(frontier, session, done(first, task="t"), late, done(second, task="t"))
        assert answer.stale == [late.number]
        counters = await frontier.counters("t")
        assert (counters["done"], counters["stale"]) == (2, 0)

    async def test_a_token_that_comes_twice_in_one_call_is_stale_once(self, frontier: Frontier) -> None:
        """The first one is good; the second is answered and counted like any other that comes too late."""
        session = await begin(frontier, *pages(2))
        grant = await take_one(frontier, session)
        answer = await settle(frontier, session, done(grant, task="t"), failed(grant, task="t"))
        assert answer.stale == [grant.number]
        counters = await frontier.counters("t")
        assert (counters["done"], counters["failed"], counters["stale"]) == (1, 0, 1)

    @pytest.mark.parametrize("how", ["closed", "reaped"])
    async def test_hosts_pause_before_a_task_ends_with_what_came_back(
        self, frontier: Frontier, elapse: Elapse, how: str
    ) -> None:
        """What came back ends the task by its limit, and its hosts get its delay all the same: its requests may be under way."""
        hosts = [
            f"{letter}.test" for letter in "bcdefg"
        ]  # the lost one that ends the task may come before any of them
        links = [*pages(2), *(page(path, host) for host in hosts for path in ("/0", "/1"))]
        session = await begin(frontier, *links, max_errors=1)
        one, _ = await take(frontier, session, 2)
        for _ in hosts:
            holder = session if how == "closed" else await frontier.open_session("holder")
            assert len(await take(frontier, holder, 2)) == 2
        await settle(frontier, session, done(one, host=HostOrder(give_up="dns")))
        await update(frontier, SLOW)
        if how == "closed":
            keeper = await frontier.open_session("keeper")
            await frontier.close_session(session)
        else:
            keeper = await outlive(frontier, elapse)
        assert (await state(frontier)).reason == "max_errors"
        await begin(frontier, *(page("/u", host) for host in hosts), name="u")
        assert await take(frontier, keeper, name="u") == []
        await elapse(5.1)
        assert len(await take(frontier, keeper, name="u")) == len(hosts)

    async def test_a_raised_page_budget_holds_at_once(self, frontier: Frontier) -> None:
        """A host that sleeps because its budget is open is leased from again when an update raises the budget."""
        session = await begin(frontier, *pages(3), wish=Wish(robots=False, per_host=8, pages_per_host=1))
        assert len(await take(frontier, session)) == 1
        assert await take(frontier, session) == []
        await update(frontier, Wish(robots=False, per_host=8, pages_per_host=3))
        assert len(await take(frontier, session)) == 2

    async def test_a_lowered_page_budget_stands_in_nobodys_way(self, frontier: Frontier) -> None:
        """Hosts that have no room any more are not looked at before those that have some, nor asked about again at once."""
        hosts = [f"busy{number}.test" for number in range(40)]
        session = await begin(frontier, *(page("/0", host) for host in hosts))
        assert len(await take(frontier, session)) == 40
        await frontier.push("t", [page(f"/{n}", host) for host in hosts for n in (1, 2)])
        await update(frontier, Wish(robots=False, pages_per_host=1))
        assert (await frontier.lease(session, {"t": 5})).wait is None
        await frontier.push("t", [page("/", f"free{number}.test") for number in range(5)])
        answer = await frontier.lease(session, {"t": 5})
        assert [grant.host[:4] for grant in answer.grants] == ["free"] * 5
        assert answer.wait is None

    async def test_hosts_without_a_slot_any_more_hide_nobody(self, frontier: Frontier) -> None:
        """Another task was resumed and wishes one request a host: whoever is told to ask again is granted what is ready."""
        hosts = [f"busy{number}.test" for number in range(40)]
        await begin(frontier, name="u", wish=Wish(robots=False, per_host=1))
        await frontier.control("u", Command.PAUSE)
        await frontier.push("u", [page("/u", host) for host in hosts])
        session = await begin(frontier, *(page("/0", host) for host in hosts))
        assert len(await take(frontier, session)) == 40
        await frontier.push("t", [page("/1", host) for host in hosts])
        await frontier.control("u", Command.RESUME)
        await frontier.push("t", [page("/", "free.test")])
        answer = await frontier.lease(session, {"t": 5})
        assert (answer.grants, answer.wait) == ([], 0.0)
        answer = await frontier.lease(session, {"t": 5})
        assert [grant.host for grant in answer.grants] == ["free.test"]
        assert answer.wait is None

    async def test_a_page_limit_that_is_out_holds_no_seed_back(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """While the last pages are out, a seed is granted before hosts that are ready, and nobody is told to ask again at once."""
        session = await begin(frontier, *(page("/", f"h{n}.test") for n in range(20)), max_pages=4)
        answer = await frontier.lease(session, {"t": 4})
        assert (len(answer.grants), answer.wait) == (4, None)
        await elapse(1.0)
        await frontier.push("t", [seed()])
        assert (await frontier.lease(session, {"t": 0})).wait == 0.0
        assert [grant.kind for grant in await take(frontier, session, 4)] == [Kind.SEED]
        assert (await frontier.lease(session, {"t": 4})).wait is None
        await settle(frontier, session, failed(answer.grants[0]))
        assert len(await take(frontier, session, 4)) == 1

    async def test_a_cursor_beyond_its_log_is_refused(self, frontier: Frontier) -> None:
        """A sink that claims what the log never had stops loudly: else what comes next would never reach it."""
        session = await begin(frontier, page("/"))
        await settle(frontier, session, done(await take_one(frontier, session), items=items(b"{}")))
        await frontier.cursor("t", 0, "sink")
        (item,) = await frontier.read("t", 0, 0, 9)
        with pytest.raises(CursorAhead, match="sink"):
            await frontier.advance("t", 0, "sink", item.number + 1)
        with pytest.raises(CursorAhead):
            await frontier.read("t", 0, item.number + 1, 9)
        assert await frontier.read("t", 0, item.number, 9) == []
        await frontier.advance("t", 0, "sink", item.number)
        assert (await frontier.cursor("t", 0, "sink"))[0] == item.number

    async def test_a_forgotten_task_leaves_nothing(self, frontier: Frontier, elapse: Elapse) -> None:
        """Its name is free, its URLs are new again, nothing of it is kept, due or counted; other tasks and the hosts stay."""
        await begin(frontier, page("/", "u.test"), name="u")
        first = [page("/wait", priority=-1), page("/later", "later.test", delay=9.0)]
        links = [*first, *pages(5), page("/", "closed.test")]
        session = await begin(frontier, *links, pages_per_pattern=4)
        *got, last = await take(frontier, session, 5)
        assert last.host == "closed.test"
        outcomes = [done(grant, items=items(b"{}"), body="kept") for grant in got[1:]]
        given_up = done(last, host=HostOrder(give_up="dns"), samples=[("offsite", "https://x.test/")])
        await settle(frontier, session, failed(got[0]), *outcomes, given_up)
        assert (await frontier.cursor("t", 0, "sink")) == (0, b"")
        await frontier.advance("t", 0, "sink", 1, b"state")
        await frontier.forget("t")
        with pytest.raises(UnknownTask):
            await frontier.counters("t")
        assert [view.spec.name for view in await frontier.tasks()] == ["u"]
        await begin(frontier, pages_per_pattern=4)
        await frontier.control("t", Command.RETRY_FAILED)
        assert await take(frontier, session) == []
        await elapse(5.0)
        assert not any((await frontier.counters("t")).values())
        assert await frontier.samples("t") == {}
        assert await frontier.cursor("t", 0, "sink") == (0, b"")
        assert await frontier.read("t", 0, 0, 9) == []
        assert [await frontier.explain("t", link.key, link.host) for link in links] == [None] * len(links)
        assert (await frontier.push("t", links)).new == 8
        await elapse(5.0)
        expected = [
            *urls(got),
            last.url,
        ]  # what waits now waits as it did: behind others, and nine seconds from now on
        assert urls(await take(frontier, session)) == expected
        assert (await state(frontier)).pending == 2
        assert {(await life(frontier, link)).body for link in links} == {None}
        assert len(await take(frontier, session, name="u")) == 1

    async def test_a_task_that_asks_for_robots_may_be_forgotten(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """Another task asks for them then; who comes back with those of the forgotten one is too late, and nothing breaks."""
        session = await begin(frontier, page("/a"), wish=Wish())
        await begin(frontier, page("/b"), name="u", wish=Wish())
        asked = await take_one(frontier, session)
        assert asked.kind is Kind.ROBOTS
        assert await take(frontier, session, name="u") == []
        await frontier.forget("t")
        assert (await row(frontier)).open == 0
        other = await frontier.open_session("other")
        assert (await take_one(frontier, other, "u")).kind is Kind.ROBOTS
        late = done(asked, task="t", sent_ago=0.0, host=HostOrder(good=True, robots=RULES))
        assert (await settle(frontier, session, late)).stale == [asked.number]
        assert await frontier.release(session) == 0
        assert ((await row(frontier)).open, (await row(frontier)).robots_version) == (1, 0)
        keeper = await outlive(frontier, elapse)
        assert not await frontier.beat(session)
        assert (await row(frontier)).open == 0
        assert (await take_one(frontier, keeper, "u")).kind is Kind.ROBOTS

    async def test_a_task_that_is_worked_on_is_not_forgotten(self, frontier: Frontier) -> None:
        """While something of it is leased, forgetting is refused and nothing has changed."""
        session = await begin(frontier, *pages(2))
        grant = await take_one(frontier, session)
        with pytest.raises(IllegalChange):
            await frontier.forget("t")
        assert (await settle(frontier, session, done(grant))).stale == []

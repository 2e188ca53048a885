"""Politeness: granted with the lease, by one row a host for all tasks and workers."""

from __future__ import annotations

import pytest

from gossamer.model.host import HostOrder, RobotsOrder, Wish
from gossamer.model.hostrow import MAX_PARKED
from gossamer.model.record import Kind, Outcome, State, Verdict
from gossamer.model.task import Command, TaskSpec
from gossamer.ports.frontier import SAMPLE_LENGTH, Frontier
from gossamer.testing.contracts.frontier_steps import (
    HOST,
    RUDE,
    Elapse,
    ask_robots,
    begin,
    done,
    failed,
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
)


class SlotsContract:
    """Open slots are below the limit, and the strictest wish is the limit."""

    async def test_a_host_gets_what_its_policy_grants(self, frontier: Frontier) -> None:
        """Over all sessions of a task no more leases are open than the wish allows."""
        one = await begin(frontier, *pages(9), wish=Wish(per_host=3, robots=False))
        two = await frontier.open_session("other")
        assert len(await take(frontier, one, 2)) == 2
        assert len(await take(frontier, two, 9)) == 1
        assert (await row(frontier)).open == 3

    async def test_of_several_tasks_the_strictest_wins(self, frontier: Frontier) -> None:
        """The slots are the host's: a second task sees those of the first, and the lower limit is for both."""
        session = await begin(frontier, *pages(9), wish=Wish(per_host=5, robots=False))
        await begin(frontier, *pages(9), name="strict", wish=Wish(per_host=2, robots=False))
        answer = await frontier.lease(session, {"t": 9, "strict": 9})
        assert [grant.task for grant in answer.grants] == ["t", "t"]

    async def test_a_task_that_is_not_running_wishes_nothing(self, frontier: Frontier) -> None:
        """The wish of a paused task holds nobody back."""
        session = await begin(frontier, *pages(9), wish=Wish(per_host=5, robots=False))
        await begin(frontier, *pages(9), name="strict", wish=Wish(per_host=1, robots=False))
        await frontier.control("strict", Command.PAUSE)
        assert len(await take(frontier, session, 9)) == 5

    async def test_each_end_of_an_attempt_frees_its_slot_once(self, frontier: Frontier) -> None:
        """Done, failed, retried, given back: the host's slots are all free again."""
        session = await begin(frontier, *pages(4))
        got = await take(frontier, session)
        verdicts = (Verdict.DONE, Verdict.FAILED, Verdict.RETRY, Verdict.RELEASE)
        await settle(frontier, session, *(Outcome(g.number, v) for g, v in zip(got, verdicts, strict=True)))
        assert (await row(frontier)).open == 0
        await settle(frontier, session, *(Outcome(g.number, Verdict.DONE) for g in got))
        assert (await row(frontier)).open == 0

    async def test_a_page_budget_closes_the_host(self, frontier: Frontier) -> None:
        """No more than pages_per_host are in flight or done; then the rest, and what comes later, is SKIPPED."""
        session = await begin(frontier, *pages(6), wish=Wish(robots=False, pages_per_host=2))
        got = await take(frontier, session)
        assert len(got) == 2
        assert (await frontier.lease(session, {"t": 5})).wait is None
        await settle(frontier, session, done(got[0]), done(got[1], links=[page("/late")]))
        assert (await frontier.counters("t"))["skipped:budget"] == 5
        assert (await life(frontier, page("/late"))).code == "budget"

    async def test_a_budget_that_was_cut_closes_the_host(self, frontier: Frontier) -> None:
        """A budget that an update puts below what is done already ends the rest, instead of holding it for ever."""
        session = await begin(frontier, *pages(4), seeded=True)
        got = await take(frontier, session, 2)
        await settle(frontier, session, *(done(grant) for grant in got))
        cut = TaskSpec(name="t", wish=Wish(robots=False, pages_per_host=1))
        await frontier.control("t", Command.UPDATE, spec=cut)
        assert await take(frontier, session) == []
        assert (await state(frontier)).state == "COMPLETED"
        assert (await frontier.counters("t"))["skipped:budget"] == 2


class PaceContract:
    """One request open where there is a delay, and the next turn counts from when the last one was sent."""

    async def test_a_delay_means_one_at_a_time(self, frontier: Frontier, elapse: Elapse) -> None:
        """With a wished delay one lease is open, and the next comes a turn after the send time."""
        session = await begin(frontier, *pages(3), wish=Wish(delay=2.0, robots=False))
        (grant,) = await take(frontier, session)
        await elapse(1.5)
        answer = await settle(frontier, session, ordered(grant, 1.5, turn=2.0), t=5)
        assert answer.grants == []
        assert answer.wait == pytest.approx(0.5)
        await elapse(0.5)
        assert len(await take(frontier, session)) == 1

    async def test_a_turn_never_moves_back(self, frontier: Frontier, elapse: Elapse) -> None:
        """Of two settles the later turn stays, in whatever order they come."""
        session = await begin(frontier, *pages(9))
        one, two = await take(frontier, session, 2)
        await settle(frontier, session, ordered(one, 0.0, turn=4.0))
        await settle(frontier, session, ordered(two, 0.0, turn=1.0))
        await elapse(3.9)
        assert await take(frontier, session) == []
        await elapse(0.2)
        assert await take(frontier, session)

    async def test_a_strict_task_waits_after_anothers_request(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """A wished delay counts from the last send to the host, whichever task sent it and whatever turn it asked for."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        await begin(frontier, page(), name="strict", wish=Wish(delay=5.0, robots=False))
        await settle(frontier, session, ordered(grant, 1.0, good=True))
        answer = await frontier.lease(session, {"strict": 1})
        assert answer.grants == []
        assert answer.wait == pytest.approx(4.0)
        await elapse(4.0)
        assert len(await take(frontier, session, 1, "strict")) == 1

    async def test_what_was_not_sent_takes_no_turn(self, frontier: Frontier) -> None:
        """An attempt that sent nothing does not move the host's turn."""
        session = await begin(frontier, *pages(5))
        (grant, *_) = await take(frontier, session)
        assert (await settle(frontier, session, ordered(grant, None, turn=9.0), t=1)).grants

    async def test_an_unmeasured_host_is_met_gently(self, frontier: Frontier) -> None:
        """Until somebody has measured a host, the first delay is its pace; a measured 0 opens it."""
        session = await begin(frontier, *pages(5), wish=Wish(first_delay=0.5, robots=False))
        (grant,) = await take(frontier, session)
        await settle(frontier, session, ordered(grant, 0.0, delay=0.0))
        assert len(await take(frontier, session)) == Wish().per_host

    async def test_an_eager_host_is_not(self, frontier: Frontier) -> None:
        """Hosts that the user named at the keyboard have no first delay."""
        wish = Wish(first_delay=0.5, eager=("a.test",), robots=False)
        session = await begin(frontier, *pages(5), *pages(5, "b.test"), wish=wish)
        hosts = [grant.host for grant in await take(frontier, session)]
        assert (hosts.count("a.test"), hosts.count("b.test")) == (4, 1)

    async def test_the_first_delay_is_fixed_when_a_host_is_met(self, frontier: Frontier) -> None:
        """An update of the wish is for hosts that the task has not met yet."""
        session = await begin(frontier, *pages(5), wish=Wish(first_delay=0.5, robots=False))
        wish = Wish(first_delay=0.5, eager=("a.test", "b.test"), robots=False)
        await frontier.control("t", Command.UPDATE, spec=TaskSpec(name="t", wish=wish))
        await frontier.push("t", [page("/new"), *pages(5, "b.test")])
        hosts = [grant.host for grant in await take(frontier, session)]
        assert (hosts.count("a.test"), hosts.count("b.test")) == (1, 4)

    async def test_the_measured_pace_is_for_all_tasks(self, frontier: Frontier) -> None:
        """A delay that one task measured holds for another."""
        session = await begin(frontier, *pages(2))
        await settle(frontier, session, ordered(await take_one(frontier, session), 5.0, delay=1.0))
        await begin(frontier, *pages(5), name="other")
        assert len(await take(frontier, session, 5, "other")) == 1
        assert (await row(frontier)).delay == 1.0


class RobotsContract:
    """The rules come first, once for all."""

    async def test_a_host_with_unknown_rules_grants_one_robots_lease(self, frontier: Frontier) -> None:
        """The first lease is for robots.txt, and while it is out nobody gets another one, nor a page."""
        one = await begin(frontier, *pages(3), wish=Wish())
        await begin(frontier, *pages(3), name="other", wish=Wish())
        answer = await frontier.lease(one, {"t": 5, "other": 5})
        (grant,) = answer.grants
        assert (grant.kind, grant.url, grant.host) == (Kind.ROBOTS, "https://a.test/robots.txt", HOST)
        assert answer.wait is None
        two = await frontier.open_session("two")
        assert (await frontier.lease(two, {"t": 5, "other": 5})).grants == []

    async def test_known_rules_let_pages_through(self, frontier: Frontier) -> None:
        """When the rules are in, pages are granted, to every task; the host's row has them."""
        session = await begin(frontier, *pages(2), wish=Wish())
        await begin(frontier, *pages(2), name="other", wish=Wish())
        await ask_robots(frontier, session)
        answer = await frontier.lease(session, {"t": 5, "other": 5})
        assert [grant.kind for grant in answer.grants] == [Kind.PAGE] * 4
        seen = await row(frontier)
        assert seen.robots == b"User-agent: *\nDisallow:"
        assert seen.robots_version == 1

    async def test_rules_are_asked_for_in_the_scheme_that_was_met(self, frontier: Frontier) -> None:
        """The first URL pushed of a host says where its robots.txt is."""
        plain = page("/1")
        plain = type(plain)(plain.key, "http://a.test/1", HOST)
        session = await begin(frontier, plain, page("/2"), wish=Wish())
        assert (await take_one(frontier, session)).url == "http://a.test/robots.txt"

    async def test_expired_rules_are_asked_for_again(self, frontier: Frontier, elapse: Elapse) -> None:
        """After their time the rules are unknown, and one robots lease comes before the next page."""
        session = await begin(frontier, *pages(9), wish=Wish(per_host=2))
        await ask_robots(frontier, session, RobotsOrder(b"", ttl=10.0))
        (grant, other) = await take(frontier, session)
        await elapse(10.0)
        assert (await row(frontier)).robots_version == 0
        answer = await settle(frontier, session, done(grant), done(other), t=5)
        assert [grant.kind for grant in answer.grants] == [Kind.ROBOTS]

    async def test_a_robots_lease_without_an_answer_is_granted_again(self, frontier: Frontier) -> None:
        """When the rules could not be got, the next one asks; the record of no task was touched."""
        session = await begin(frontier, page(), wish=Wish())
        await settle(frontier, session, retry(await take_one(frontier, session)))
        again = await take_one(frontier, session)
        assert again.kind is Kind.ROBOTS
        assert await frontier.release(session) == 1
        assert (await take_one(frontier, session)).kind is Kind.ROBOTS
        counters = await frontier.counters("t")
        assert (counters["retried"], counters["leased"], counters["pending"]) == (0, 0, 1)

    async def test_a_task_may_ignore_them(self, frontier: Frontier) -> None:
        """A task that ignores robots gets its pages while another one waits for the rules; the slots are shared."""
        session = await begin(frontier, *pages(9), wish=Wish())
        await begin(frontier, *pages(9), name="rude")
        answer = await frontier.lease(session, {"t": 9, "rude": 9})
        assert [grant.kind for grant in answer.grants] == [Kind.ROBOTS] + [Kind.PAGE] * 3

    async def test_crawl_delay_is_obeyed(self, frontier: Frontier, elapse: Elapse) -> None:
        """A host whose rules ask for a delay has one lease open, for tasks that ignore robots too, and only after it."""
        session = await begin(frontier, *pages(3), wish=Wish())
        await begin(frontier, *pages(3), name="rude")
        await ask_robots(frontier, session, RobotsOrder(b"", ttl=100.0, crawl_delay=3.0))
        assert (await frontier.lease(session, {"t": 5, "rude": 5})).grants == []
        await elapse(3.0)
        assert len((await frontier.lease(session, {"t": 5, "rude": 5})).grants) == 1
        assert (await row(frontier)).crawl_delay == 3.0

    async def test_rules_that_cannot_be_got_may_end_the_host(self, frontier: Frontier) -> None:
        """The order that gives a host up works on a robots lease too, and completes the task if nothing is left."""
        session = await begin(frontier, *pages(3), wish=Wish(), seeded=True)
        grant = await take_one(frontier, session)
        await settle(frontier, session, retry(grant, host=HostOrder(bad=True, give_up="robots_unreachable")))
        assert (await frontier.counters("t"))["failed:robots_unreachable"] == 3
        assert (await state(frontier)).state == "COMPLETED"


class TroubleContract:
    """Parking, forgiving, giving up."""

    async def test_a_parked_host_waits_alone(self, frontier: Frontier, elapse: Elapse) -> None:
        """Nobody asks a parked host, every other host goes on, and the wait is the parking's end."""
        session = await begin(frontier, *pages(5), *pages(1, "b.test"))
        (grant, *_) = await take(frontier, session, 1)
        answer = await settle(frontier, session, ordered(grant, bad=True, park=30.0, level=1), t=9)
        assert [grant.host for grant in answer.grants] == ["b.test"]
        assert answer.wait == pytest.approx(30.0)
        await elapse(30.0)
        assert len(await take(frontier, session)) == 4

    async def test_parking_is_bounded_and_only_grows(self, frontier: Frontier) -> None:
        """A parking is an hour at most, and a shorter one does not end a longer one."""
        session = await begin(frontier, *pages(4))
        one, two, three, _ = await take(frontier, session)
        await settle(frontier, session, ordered(one, bad=True, park=60.0, level=2))
        await settle(frontier, session, ordered(two, bad=True, park=5.0, level=1))
        seen = await row(frontier)
        assert (seen.level, seen.trouble) == (2, 2)
        assert seen.parked_for == pytest.approx(60.0)
        await settle(frontier, session, ordered(three, bad=True, park=10.0**9, level=1))
        assert (await row(frontier)).parked_for == pytest.approx(MAX_PARKED)

    async def test_a_good_answer_forgives(self, frontier: Frontier, elapse: Elapse) -> None:
        """It ends the trouble at once, and one level of parking when the parking is over."""
        session = await begin(frontier, *pages(4))
        one, two, three, _ = await take(frontier, session)
        await settle(frontier, session, ordered(one, bad=True, park=10.0, level=2))
        await elapse(4.0)
        assert (await row(frontier)).bad_for == pytest.approx(4.0)
        await settle(frontier, session, ordered(two, good=True))
        seen = await row(frontier)
        assert (seen.trouble, seen.bad_for, seen.level) == (0, 0.0, 2)
        await elapse(6.0)
        await settle(frontier, session, ordered(three, good=True, latency=0.25))
        seen = await row(frontier)
        assert (seen.level, seen.latency) == (1, 0.25)

    async def test_patience_counts_from_the_first_bad_answer(
        self, frontier: Frontier, elapse: Elapse
    ) -> None:
        """The clock of a host in trouble is not set back by more trouble."""
        session = await begin(frontier, *pages(4))
        for grant in (await take(frontier, session))[:2]:
            await settle(frontier, session, ordered(grant, bad=True))
            await elapse(3.0)
        assert (await row(frontier)).bad_for == pytest.approx(6.0)

    async def test_giving_up_ends_what_is_pending(self, frontier: Frontier) -> None:
        """One order ends queued and delayed records of this task there, and what comes later; nobody else's."""
        session = await begin(frontier, *pages(3), page("/later", delay=9.0), page("/else", "b.test"))
        await begin(frontier, *pages(2), name="other")
        grant = await take_one(frontier, session)
        order = HostOrder(bad=True, give_up="dns")
        await settle(
            frontier, session, Outcome(grant.number, Verdict.FAILED, "dns", sent_ago=0.0, host=order)
        )
        counters = await frontier.counters("t")
        assert (counters["failed:dns"], counters["pending"]) == (4, 1)
        await frontier.push("t", [page("/new")])
        assert (await life(frontier, page("/new"))).state is State.FAILED
        assert (await frontier.counters("other"))["pending"] == 2

    async def test_what_returns_to_a_given_up_host_ends(self, frontier: Frontier) -> None:
        """Records that were out when the host was given up end when they come back, however they come back."""
        session = await begin(frontier, *pages(4), seeded=True)
        one, two, three, four = await take(frontier, session)
        await settle(frontier, session, done(one, host=HostOrder(give_up="connect")))
        await settle(frontier, session, retry(two, delay=5.0))
        await frontier.release(session, [three.number])
        assert (await frontier.counters("t"))["failed:connect"] == 2
        await settle(frontier, session, Outcome(four.number, Verdict.RELEASE))
        assert (await state(frontier)).state == "COMPLETED"

    async def test_an_end_with_the_host_keeps_its_cause(self, frontier: Frontier) -> None:
        """What comes back to a host given up earlier ends by that cause, even if the same call gives the host up anew."""
        session = await begin(frontier, *pages(4))
        one, two, three, _ = await take(frontier, session)
        await settle(frontier, session, done(one, host=HostOrder(give_up="dns")))
        again = done(three, host=HostOrder(give_up="connect"))
        await settle(frontier, session, Outcome(two.number, Verdict.RELEASE), again)
        await frontier.push("t", [page("/new")])
        assert (await life(frontier, page("/1"))).code == "dns"
        assert (await life(frontier, page("/new"))).code == "connect"

    async def test_what_is_given_up_leaves_examples(self, frontier: Frontier) -> None:
        """A few URLs, the first discovered, after those that the worker told; queued, delayed, returned and new ones."""
        first = [page("/2", priority=1), page("/1", delay=5.0), page("/0"), page("/out", priority=9)]
        session = await begin(frontier, *first, wish=Wish(robots=False, per_host=1))
        grant = await take_one(frontier, session)
        order = HostOrder(bad=True, give_up="dns")
        told = [("failed:dns", grant.url)]
        await settle(frontier, session, failed(grant, "dns", samples=told, host=order))
        urls = [f"https://a.test/{name}" for name in ("out", "2", "1", "0")]
        assert await frontier.samples("t") == {"failed:dns": urls}
        await frontier.push("t", [page("/" + "x" * 900), page("/six"), page("/seven")])
        long = "https://a.test/" + "x" * (SAMPLE_LENGTH - len("https://a.test/"))
        assert await frontier.samples("t") == {"failed:dns": [*urls, long]}

    async def test_each_cause_has_its_examples(self, frontier: Frontier) -> None:
        """Hosts given up in one call, for one cause or two, share nothing but the order of discovery; a spent budget tells none."""
        wish = Wish(robots=False, per_host=1, pages_per_host=1)
        links = [page(f"/{n}", host) for n in range(3) for host in ("a.test", "b.test", "c.test", "d.test")]
        session = await begin(frontier, *links, wish=wish)
        causes = {"a.test": "dns", "b.test": "connect", "c.test": "dns"}
        got = [grant for grant in await take(frontier, session) if grant.host in causes][::-1]
        orders = [retry(grant, delay=9.0, host=HostOrder(give_up=causes[grant.host])) for grant in got]
        await settle(frontier, session, *orders)
        await settle(frontier, session, *(done(grant) for grant in await take(frontier, session)))
        assert await frontier.samples("t") == {
            "failed:dns": [
                f"https://{at}" for at in ("a.test/0", "c.test/0", "a.test/1", "c.test/1", "a.test/2")
            ],
            "failed:connect": [f"https://b.test/{n}" for n in range(3)],
        }

    async def test_a_lease_shows_the_host(self, frontier: Frontier) -> None:
        """The answer has the row of every host granted from, without the rules; an unknown host has no row."""
        session = await begin(frontier, *pages(2), wish=RUDE)
        answer = await frontier.lease(session, {"t": 2})
        assert (answer.hosts[HOST].open, answer.hosts[HOST].robots) == (2, b"")
        assert set(await frontier.hosts([HOST, "never.test"])) == {HOST}

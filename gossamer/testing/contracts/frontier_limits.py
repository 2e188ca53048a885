"""The limits of a task, kept by the store itself: the outcome that reaches one ends the task, not a look at it later."""

from __future__ import annotations

import msgspec
import pytest

from gossamer.model.host import HostOrder, Wish
from gossamer.model.record import State
from gossamer.model.task import Command, TaskState
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier_steps import (
    begin,
    done,
    failed,
    items,
    life,
    page,
    pages,
    retry,
    row,
    settle,
    state,
    take,
    take_one,
)

SLOW = Wish(robots=False, per_host=1)
GIVEN_UP = HostOrder(give_up="dns")


async def ended(frontier: Frontier, name: str = "t") -> tuple[TaskState, str]:
    view = await state(frontier, name)
    return view.state, view.reason


async def limit(frontier: Frontier, **fields: object) -> TaskState:
    """Update the task's spec in these fields; the state that this leads to."""
    spec = msgspec.structs.replace((await state(frontier)).spec, **fields)
    return (await frontier.control("t", Command.UPDATE, spec=spec)).state


class ItemLimitContract:
    """`max_items`: what one page brings is the most that comes beyond it."""

    async def test_the_page_that_reaches_it_ends_the_task(self, frontier: Frontier) -> None:
        """All items of that page are kept; what comes behind it in the same call is stale, the rest CANCELLED."""
        session = await begin(frontier, *pages(6), max_items=3)
        got = await take(frontier, session)
        some = [
            done(grant, items=items(b'{"a":1}', b'{"a":2}'), links=[page(grant.url[-1] + "/x")])
            for grant in got
        ]
        answer = await settle(frontier, session, *some, t=9)
        assert answer.stale == [got[2].number, got[3].number]
        assert (answer.grants, answer.ended) == ([], {"t": "COMPLETED"})
        assert await ended(frontier) == (TaskState.COMPLETED, "max_items")
        counters = await frontier.counters("t")
        assert (counters["items"], counters["done"], counters["stale"]) == (4, 2, 2)
        assert (counters["discovered"], counters["cancelled"]) == (8, 6)
        assert len(await frontier.read("t", 0, 0, 99)) == 4
        assert (await row(frontier)).open == 0
        for late in (page("/2"), page("/5")):
            seen = await life(frontier, late)
            assert (seen.state, seen.code) == (State.CANCELLED, "max_items")

    async def test_items_of_any_attempt_count(self, frontier: Frontier) -> None:
        """Those of a page that is to be tried again, too; a sink that holds them does not take them away."""
        session = await begin(frontier, *pages(2), max_items=2)
        await settle(frontier, session, retry(await take_one(frontier, session), items=items(b"{}")))
        (item,) = await frontier.read("t", 0, 0, 9)
        await frontier.cursor("t", 0, "file")
        await frontier.advance("t", 0, "file", item.number)
        assert (await state(frontier)).state is TaskState.RUNNING
        await settle(frontier, session, done(await take_one(frontier, session), items=items(b"{}")))
        assert await ended(frontier) == (TaskState.COMPLETED, "max_items")

    async def test_another_task_in_the_same_call_goes_on(self, frontier: Frontier) -> None:
        """The end of one makes no outcome of another stale."""
        session = await begin(frontier, *pages(2), max_items=1)
        await begin(frontier, *pages(2, "b.test"), name="other", max_items=9)
        ours, theirs = await take(frontier, session), await take(frontier, session, name="other")
        some = [done(grant, items=items(b"{}")) for pair in zip(ours, theirs, strict=True) for grant in pair]
        assert (await settle(frontier, session, *some)).stale == [ours[1].number]
        assert (await frontier.counters("other"))["items"] == 2
        assert (await state(frontier, "other")).state is TaskState.RUNNING


class ErrorLimitContract:
    """`max_errors`: a task in which too much fails is FAILED."""

    async def test_the_failure_that_reaches_it_ends_the_task(self, frontier: Frontier) -> None:
        """What comes behind it in the same call is stale; retries and skips are no failures."""
        session = await begin(frontier, *pages(9), *pages(4, "b.test"), max_errors=2)
        one, two, three, four, five, *_ = await take(frontier, session)
        some = [failed(one), retry(two), done(three, "http_404"), failed(four, "dns"), done(five)]
        assert (await settle(frontier, session, *some)).stale == [five.number]
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")
        counters = await frontier.counters("t")
        assert (counters["failed"], counters["done"]) == (2, 1)
        assert (await life(frontier, page("/8"))).code == "max_errors"

    async def test_what_ends_with_its_host_has_failed(self, frontier: Frontier) -> None:
        """The records of a host that is given up count; the call that gave it up is applied whole."""
        session = await begin(frontier, *pages(4), page("/", "b.test"), wish=SLOW, max_errors=4)
        one, other = await take(frontier, session)
        last = done(other, items=items(b"{}"))
        assert (await settle(frontier, session, failed(one, "dns", host=GIVEN_UP), last)).stale == []
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")
        counters = await frontier.counters("t")
        assert (counters["failed:dns"], counters["items"], counters["done"]) == (4, 1, 1)

    async def test_what_comes_to_a_given_up_host_has_failed(self, frontier: Frontier) -> None:
        """By a push, by a link, by a lease that is given back: each may be the one that is too much."""
        session = await begin(frontier, *pages(2), page("/", "b.test"), max_errors=4)
        one, two, other = await take(frontier, session)
        await settle(frontier, session, done(one, host=GIVEN_UP))
        await frontier.push("t", [page("/pushed")])
        await settle(frontier, session, done(other, links=[page("/linked")]))
        assert (await state(frontier)).state is TaskState.RUNNING
        await frontier.release(session, [two.number])
        assert (await state(frontier)).state is TaskState.RUNNING
        await frontier.push("t", [page("/last")])
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")

    async def test_bad_news_comes_first(self, frontier: Frontier) -> None:
        """A task that has its items and too many failures by the same outcome is FAILED."""
        session = await begin(frontier, page(), max_errors=1, max_items=1, max_pages=1)
        await settle(frontier, session, failed(await take_one(frontier, session), items=items(b"{}")))
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")

    async def test_retry_failed_counts_anew(self, frontier: Frontier) -> None:
        """A task that ended by its failures runs again, and ends when as many have failed since."""
        session = await begin(frontier, *pages(3), seeded=True, max_errors=2)
        await settle(frontier, session, *(failed(grant) for grant in (await take(frontier, session))[:2]))
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")
        await frontier.close_session(session)
        assert (await frontier.control("t", Command.RETRY_FAILED)).state is TaskState.RUNNING
        session = await frontier.open_session("next")
        one, two, three = await take(frontier, session)
        await settle(frontier, session, done(one), failed(two))
        assert (await state(frontier)).state is TaskState.RUNNING
        await settle(frontier, session, failed(three))
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")

    async def test_a_running_task_may_be_retried_as_well(self, frontier: Frontier) -> None:
        """Its failures up to then are forgiven, also those of a host that was given up."""
        session = await begin(frontier, *pages(3), page("/", "b.test"), wish=SLOW, max_errors=4)
        one, other = await take(frontier, session)
        await settle(frontier, session, failed(one, "dns", host=GIVEN_UP))
        await frontier.control("t", Command.RETRY_FAILED)
        await settle(frontier, session, failed(other))
        for _ in range(2):
            await settle(frontier, session, failed(await take_one(frontier, session)))
        assert (await state(frontier)).state is TaskState.RUNNING
        await settle(frontier, session, failed(await take_one(frontier, session)))
        assert await ended(frontier) == (TaskState.FAILED, "max_errors")


class ChangedLimitContract:
    """Limits are those of the spec as it is now."""

    @pytest.mark.parametrize(
        ("reached", "end"),
        [
            ({"max_items": 2}, (TaskState.COMPLETED, "max_items")),
            ({"max_errors": 1}, (TaskState.FAILED, "max_errors")),
            ({"max_pages": 1}, (TaskState.COMPLETED, "max_pages")),
        ],
    )
    async def test_one_that_is_reached_already_takes_effect(
        self, frontier: Frontier, reached: dict[str, int], end: tuple[TaskState, str]
    ) -> None:
        """With the update itself, and for a paused task when it is resumed; one that is not reached ends nothing."""
        session = await begin(frontier, *pages(4))
        one, two, *_ = await take(frontier, session)
        await settle(frontier, session, done(one, items=items(b"{}", b"{}")), failed(two))
        (name, number), *_ = reached.items()
        assert await limit(frontier, **{name: number + 1}) is TaskState.RUNNING
        await frontier.control("t", Command.PAUSE)
        assert await limit(frontier, **reached) is TaskState.PAUSED
        assert await limit(frontier, **{name: None}) is TaskState.PAUSED
        assert (await frontier.control("t", Command.RESUME)).state is TaskState.RUNNING
        assert await limit(frontier, **reached) is end[0]
        assert await ended(frontier) == end

    async def test_a_pause_outlives_a_limit(self, frontier: Frontier) -> None:
        """What was out when it was paused settles, however much it brings; resuming ends the task."""
        session = await begin(frontier, *pages(3), max_items=1)
        got = await take(frontier, session)
        await frontier.control("t", Command.PAUSE)
        some = [done(grant, items=items(b"{}")) for grant in got]
        assert (await settle(frontier, session, *some)).stale == []
        assert (await state(frontier)).state is TaskState.PAUSED
        await frontier.control("t", Command.RESUME)
        assert await ended(frontier) == (TaskState.COMPLETED, "max_items")

    async def test_a_raised_limit_lets_the_rest_be_done(self, frontier: Frontier) -> None:
        """Retry-failed alone finds the limit still reached; raised first, the task goes on where it was."""
        session = await begin(frontier, *pages(3), seeded=True, max_items=1)
        await settle(frontier, session, done(await take_one(frontier, session), items=items(b"{}")))
        assert (await frontier.control("t", Command.RETRY_FAILED)).reason == "max_items"
        assert await limit(frontier, max_items=5) is TaskState.COMPLETED
        assert (await frontier.control("t", Command.RETRY_FAILED)).state is TaskState.RUNNING
        assert len(await take(frontier, session)) == 2

    async def test_a_cut_page_budget_is_never_passed(self, frontier: Frontier) -> None:
        """Pages that are out when the budget shrinks below them come too late once it is spent."""
        session = await begin(frontier, *pages(4))
        got = await take(frontier, session)
        assert await limit(frontier, max_pages=2) is TaskState.RUNNING
        answer = await settle(frontier, session, *(done(grant) for grant in got))
        assert answer.stale == [got[2].number, got[3].number]
        assert (await frontier.counters("t"))["pages"] == 2


class PatternBudgetContract:
    """`pages_per_pattern`: counted where URLs become records, so over all workers, seeds and runs."""

    async def test_what_is_beyond_the_budget_is_known_and_never_leased(self, frontier: Frontier) -> None:
        """So many of a pattern are taken, also of one push; the others are SKIPPED, counted, and may be explained."""
        days = [page(f"/day/{n}") for n in range(5)]
        session = await begin(frontier, *days, page("/about"), pages_per_pattern=3, seeded=True)
        assert (await frontier.push("t", [*days, page("/day/9", delay=4.0)])).new == 1
        assert sorted(grant.url for grant in await take(frontier, session)) == [
            "https://a.test/about", *(f"https://a.test/day/{n}" for n in range(3)),
        ]  # fmt: skip
        beyond = await life(frontier, page("/day/9"))
        assert (beyond.state, beyond.code) == (State.SKIPPED, "trap_pattern")
        counts = await frontier.counters("t")
        assert (counts["skipped:trap_pattern"], counts["pending"], counts["leased"]) == (3, 0, 4)
        assert (await frontier.samples("t"))["skipped:trap_pattern"] == [
            f"https://a.test/day/{n}" for n in (3, 4, 9)
        ]

    async def test_each_pattern_of_each_host_has_its_own(self, frontier: Frontier) -> None:
        """Another pattern, another host and another task are not touched; links that a page brings count like any."""
        session = await begin(frontier, page("/list?page=0"), pages_per_pattern=2, seeded=True)
        await begin(frontier, name="u", pages_per_pattern=2)
        links = [page(f"/list?page={n}", host) for host in ("a.test", "b.test") for n in range(1, 4)]
        await settle(
            frontier, session, done(await take_one(frontier, session), links=[*links, page("/item/1")])
        )
        got = await take(frontier, session)
        assert sorted((grant.host, grant.url[-6:]) for grant in got) == [
            ("a.test", "item/1"), ("a.test", "page=1"), ("b.test", "page=1"), ("b.test", "page=2"),
        ]  # fmt: skip
        assert (await frontier.push("u", [page("/list?page=1")])).new == 1
        assert len(await take(frontier, session, name="u")) == 1

    async def test_a_task_may_end_with_what_it_does_not_take(self, frontier: Frontier) -> None:
        """Pages beyond the budget are terminal at once: they keep no task from its end."""
        session = await begin(frontier, page("/n/0"), pages_per_pattern=1, seeded=True)
        grant = await take_one(frontier, session)
        await settle(frontier, session, done(grant, links=[page(f"/n/{n}") for n in range(1, 4)]))
        assert await ended(frontier) == (TaskState.COMPLETED, "")
        assert (await frontier.counters("t"))["skipped"] == 3


class LimitsContract(PatternBudgetContract, ItemLimitContract, ErrorLimitContract, ChangedLimitContract):
    """All of them."""

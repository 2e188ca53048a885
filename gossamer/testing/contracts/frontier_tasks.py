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
    items,
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
        assert (view.state, view.reason) == (TaskState.COMPLETED, "")
        assert view.ended_ago == pytest.approx(2.0)

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
        first, second = await take(frontier, session)
        (again,) = (await settle(frontier, session, retry(first), t=9)).grants
        assert (await frontier.lease(session, {"t": 9})).grants == []
        await settle(frontier, session, done(second), done(again))
        view = await state(frontier)
        assert (view.state, view.reason) == (TaskState.COMPLETED, "max_pages")
        counters = await frontier.counters("t")
        assert (counters["pages"], counters["cancelled"], counters["pending"]) == (2, 4, 0)

    async def test_max_pages_holds_no_seeds_back(self, frontier: Frontier) -> None:
        """The page budget is for pages: slices of seeds are granted beside pages that use it up."""
        session = await begin(frontier, *pages(2), seed("1"), seed("2"), max_pages=1)
        kinds = [grant.kind for grant in await take(frontier, session)]
        assert (kinds.count(Kind.PAGE), kinds.count(Kind.SEED)) == (1, 2)

    async def test_a_given_up_host_may_be_the_last(self, frontier: Frontier) -> None:
        """A task whose last records end by one order is complete by that settle."""
        session = await begin(frontier, *pages(5), seeded=True, wish=Wish(per_host=1, robots=False))
        grant = await take_one(frontier, session)
        await settle(frontier, session, failed(grant, "dns", host=HostOrder(give_up="dns")))
        assert (await state(frontier)).state is TaskState.COMPLETED
        assert (await frontier.counters("t"))["failed:dns"] == 5


class CommandsContract:
    """One row's change each, by the table of states."""

    async def test_a_paused_task_grants_nothing(self, frontier: Frontier) -> None:
        """What is out may be settled and new links come in, but nothing is granted until it is resumed."""
        session = await begin(frontier, *pages(6))
        (grant, *_) = await take(frontier, session, 1)
        assert (await frontier.control("t", Command.PAUSE, reason="user")).reason == "user"
        answer = await settle(frontier, session, done(grant, links=[page("/new")]), t=9)
        assert (answer.grants, answer.stale, answer.ended) == ([], [], {"t": "PAUSED"})
        assert (await frontier.push("t", [page("/newer")])).new == 1
        assert (await frontier.control("t", Command.RESUME)).state is TaskState.RUNNING
        assert len(await take(frontier, session)) == RUDE.per_host

    @pytest.mark.parametrize("max_pages", [None, 1])
    async def test_a_paused_task_ends_when_it_is_resumed(
        self, frontier: Frontier, max_pages: int | None
    ) -> None:
        """A pause is kept even if nothing is left to do or the budget is spent; resuming completes the task."""
        session = await begin(frontier, page(), seeded=True, max_pages=max_pages)
        grant = await take_one(frontier, session)
        await frontier.control("t", Command.PAUSE)
        await settle(frontier, session, done(grant))
        assert (await state(frontier)).state is TaskState.PAUSED
        assert (await frontier.control("t", Command.RESUME)).state is TaskState.COMPLETED

    @pytest.mark.parametrize(
        ("command", "to"),
        [
            (Command.CANCEL, TaskState.CANCELLED),
            (Command.FINISH, TaskState.COMPLETED),
            (Command.FAIL, TaskState.FAILED),
        ],
    )
    async def test_an_ended_task_is_over(self, frontier: Frontier, command: Command, to: TaskState) -> None:
        """What is open is CANCELLED with the reason; nothing is granted or pushed; the same order again is none."""
        session = await begin(frontier, *pages(6))
        grant = await take_one(frontier, session)
        view = await frontier.control("t", command, reason="enough")
        assert (view.state, view.reason, view.pending, view.leased) == (to, "enough", 0, 0)
        assert (await frontier.control("t", command, reason="again")).reason == "enough"
        for link in (page("/5"), page(grant.url.removeprefix(f"https://{HOST}"))):
            seen = await life(frontier, link)
            assert (seen.state, seen.code) == (State.CANCELLED, "enough")
        assert (await frontier.counters("t"))["cancelled"] == 6
        answer = await frontier.lease(session, {"t": 5})
        assert (answer.grants, answer.ended, answer.wait) == ([], {"t": to.value}, None)
        with pytest.raises(TaskEnded):
            await frontier.push("t", [page("/new")])

    async def test_a_late_settle_is_refused_and_counted(self, frontier: Frontier) -> None:
        """It frees the host's slot once; links, items and orders that came with it do not apply."""
        session = await begin(frontier, *pages(2))
        grant, other = await take(frontier, session)
        await frontier.control("t", Command.CANCEL)
        luggage = done(grant, items=items(b"{}"), links=[page("/new")], host=HostOrder(bad=True, park=9.0))
        assert (await settle(frontier, session, luggage)).stale == [grant.number]
        assert (await settle(frontier, session, luggage)).stale == [grant.number]
        counters = await frontier.counters("t")
        assert (counters["stale"], counters["items"], counters["discovered"]) == (1, 0, 2)
        seen = await row(frontier)
        assert (seen.open, seen.trouble, seen.parked_for) == (1, 0, 0.0)
        assert (await life(frontier, page("/0"))).state is State.CANCELLED
        assert await frontier.release(session, [other.number]) == 1

    async def test_an_ended_task_wishes_nothing(self, frontier: Frontier) -> None:
        """The strict wish of a task that is over no longer holds others back."""
        session = await begin(frontier, *pages(5), name="strict", wish=Wish(delay=9.0, robots=False))
        await begin(frontier, *pages(5))
        await frontier.control("strict", Command.CANCEL)
        assert len(await take(frontier, session)) == RUDE.per_host

    @pytest.mark.parametrize(
        ("before", "command"),
        [
            ([], Command.RESUME),
            ([Command.PAUSE], Command.PAUSE),
            ([Command.PAUSE], Command.FINISH),
            ([Command.CANCEL], Command.RESUME),
            ([Command.CANCEL], Command.PAUSE),
            ([Command.CANCEL], Command.FAIL),
            ([Command.FINISH], Command.CANCEL),
        ],
    )
    async def test_the_table_of_states_is_kept(
        self, frontier: Frontier, before: list[Command], command: Command
    ) -> None:
        """An order that the state does not allow is refused with a sentence, and nothing has changed."""
        await begin(frontier, page())
        for earlier in before:
            await frontier.control("t", earlier, reason="first")
        seen = await state(frontier)
        with pytest.raises(IllegalChange, match=seen.state.value):
            await frontier.control("t", command, reason="second")
        assert await state(frontier) == seen

    async def test_an_update_replaces_the_spec(self, frontier: Frontier) -> None:
        """Wish, budgets and settings are those of the new spec from the next lease on."""
        session = await begin(frontier, *pages(9))
        spec = msgspec.structs.replace(
            (await state(frontier)).spec, wish=Wish(per_host=2, robots=False), weight=5
        )
        assert (await frontier.control("t", Command.UPDATE, spec=spec)).spec == spec
        assert len(await take(frontier, session)) == 2

    async def test_an_update_may_end_the_task(self, frontier: Frontier) -> None:
        """A budget that is spent already, and a task that need not stay open any more, end with the update."""
        session = await begin(frontier, page(), seeded=True, keep_open=True)
        await settle(frontier, session, done(await take_one(frontier, session)))
        spec = msgspec.structs.replace((await state(frontier)).spec, keep_open=False)
        assert (await frontier.control("t", Command.UPDATE, spec=spec)).state is TaskState.COMPLETED
        session = await begin(frontier, *pages(3), name="other")
        await settle(frontier, session, done(await take_one(frontier, session, "other")))
        spec = TaskSpec(name="other", wish=RUDE, max_pages=1)
        view = await frontier.control("other", Command.UPDATE, spec=spec)
        assert (view.state, view.reason) == (TaskState.COMPLETED, "max_pages")


class RetryFailedContract:
    """The one way back from an end."""

    async def test_failed_records_live_again(self, frontier: Frontier) -> None:
        """They are PENDING with a fresh budget; what is done or skipped stays; the task runs and ends again."""
        session = await begin(frontier, *pages(3), seeded=True)
        one, two, three = await take(frontier, session)
        (again,) = (await settle(frontier, session, retry(two, crashed=True), t=1)).grants
        await settle(frontier, session, done(one), failed(again, "http_500"), failed(three))
        assert (await state(frontier)).state is TaskState.COMPLETED
        view = await frontier.control("t", Command.RETRY_FAILED)
        assert (view.state, view.reason, view.ended_ago) == (TaskState.RUNNING, "", None)
        got = await take(frontier, session)
        assert urls(got) == ["https://a.test/1", "https://a.test/2"]
        assert [(grant.retries, grant.crashes, grant.suspect) for grant in got] == [(0, 0, False)] * 2
        counters = await frontier.counters("t")
        assert (counters["failed"], counters.get("failed:http_500", 0), counters["done"]) == (0, 0, 1)
        await settle(frontier, session, *(done(grant) for grant in got))
        assert (await state(frontier)).state is TaskState.COMPLETED

    async def test_a_given_up_host_is_asked_again(self, frontier: Frontier) -> None:
        """The closure of a host with FAILED records is lifted: they and new ones may be leased."""
        session = await begin(frontier, *pages(3))
        grant = await take_one(frontier, session)
        await settle(frontier, session, failed(grant, "dns", host=HostOrder(give_up="dns")))
        await frontier.control("t", Command.RETRY_FAILED)
        assert len(await take(frontier, session)) == 3
        assert (await frontier.push("t", [page("/new")])).new == 1
        assert (await life(frontier, page("/new"))).state is State.PENDING

    async def test_many_return_in_bounded_steps(self, frontier: Frontier) -> None:
        """Twelve hundred records return over a few calls, each of them once, and the task ends when they have."""
        links = [Link(key(str(n)), f"https://a.test/{n}", HOST) for n in range(1_200)]
        session = await begin(frontier, *links, seeded=True)
        grant = await take_one(frontier, session)
        await settle(frontier, session, failed(grant, "dns", host=HostOrder(give_up="dns")))
        await frontier.control("t", Command.RETRY_FAILED)
        for _ in range(5):
            await frontier.lease(session, {})
        assert (await frontier.counters("t"))["pending"] == 1_200
        grant = await take_one(frontier, session)
        await settle(frontier, session, failed(grant, "dns", host=HostOrder(give_up="dns")))
        assert (await state(frontier)).state is TaskState.COMPLETED
        assert (await frontier.counters("t"))["failed:dns"] == 1_200

    async def test_nothing_failed_nothing_to_do(self, frontier: Frontier) -> None:
        """A task without FAILED records is complete again at the next call."""
        session = await begin(frontier, page(), seeded=True)
        await settle(frontier, session, done(await take_one(frontier, session)))
        await frontier.control("t", Command.RETRY_FAILED)
        await frontier.lease(session, {"t": 1})
        assert (await state(frontier)).state is TaskState.COMPLETED

    async def test_a_pause_outlives_it(self, frontier: Frontier) -> None:
        """A paused task stays paused; its FAILED records wait for the resume."""
        session = await begin(frontier, *pages(2))
        await settle(frontier, session, failed(await take_one(frontier, session)))
        await frontier.control("t", Command.PAUSE)
        assert (await frontier.control("t", Command.RETRY_FAILED)).state is TaskState.PAUSED
        await frontier.control("t", Command.RESUME)
        assert len(await take(frontier, session)) == 2

    async def test_a_cancelled_task_goes_on_where_it_was(self, frontier: Frontier) -> None:
        """What was pending or out when it ended can be leased again, also what was settled too late."""
        session = await begin(frontier, *pages(3), seeded=True)
        late, _ = await take(frontier, session, 2)
        await frontier.control("t", Command.CANCEL)
        await settle(frontier, session, done(late))
        await frontier.close_session(session)
        await frontier.control("t", Command.RETRY_FAILED)
        session = await frontier.open_session("next")
        got = await take(frontier, session)
        assert len(got) == 3
        await settle(frontier, session, *(done(grant) for grant in got))
        assert (await state(frontier)).state in ENDED

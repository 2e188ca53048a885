"""Settles: what one call makes true, or leaves as it was; and the sums that it moves."""

from __future__ import annotations

import pytest

from gossamer.model.record import Kind, Outcome, State, Verdict
from gossamer.model.task import Command
from gossamer.ports.frontier import KEPT_SAMPLES, Frontier
from gossamer.testing.contracts.frontier_steps import (
    Elapse,
    begin,
    done,
    failed,
    items,
    life,
    page,
    pages,
    retry,
    seed,
    settle,
    take,
    take_one,
    urls,
)

PROMISED = ("discovered", "pending", "leased", "done", "failed", "skipped", "cancelled", "pages", "items", "retried",
            "stale", "bytes")  # fmt: skip


class SettleContract:
    """One transaction ends an attempt, guarded by the token."""

    @pytest.mark.parametrize(
        ("verdict", "code", "state"),
        [
            (Verdict.DONE, "", State.DONE),
            (Verdict.DONE, "http_404", State.DONE),
            (Verdict.FAILED, "dns", State.FAILED),
            (Verdict.SKIPPED, "robots", State.SKIPPED),
        ],
    )
    async def test_a_verdict_is_for_ever(
        self, frontier: Frontier, verdict: Verdict, code: str, state: State
    ) -> None:
        """The record has its state and code, is never leased again, and a second settle is stale."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        assert (await settle(frontier, session, Outcome(grant.number, verdict, code))).stale == []
        again = await settle(frontier, session, Outcome(grant.number, Verdict.FAILED, "other"), t=5)
        assert again.stale == [grant.number]
        assert again.grants == []
        seen = await life(frontier, page())
        assert (seen.state, seen.code) == (state, code)

    async def test_retry_counts_what_was_burned(self, frontier: Frontier) -> None:
        """A burned attempt is counted, one that is not burned is not; the lease tells how many were."""
        session = await begin(frontier, page())
        for burned, retries in ((True, 1), (False, 1), (True, 2)):
            grant = await take_one(frontier, session)
            await settle(frontier, session, retry(grant, burned=burned))
            assert (await life(frontier, page())).retries == retries
        assert (await take_one(frontier, session)).retries == 2
        assert (await frontier.counters("t"))["retried"] == 3

    async def test_retry_waits_and_sinks(self, frontier: Frontier, elapse: Elapse) -> None:
        """A retried record is due after its delay, at the priority it was given."""
        session = await begin(frontier, page("/1"), page("/2", priority=-1))
        await settle(frontier, session, retry(await take_one(frontier, session), delay=3.0, priority=-5))
        assert urls(await take(frontier, session)) == ["https://a.test/2"]
        await elapse(3.0)
        grant = await take_one(frontier, session)
        assert (grant.url, grant.priority) == ("https://a.test/1", -5)

    async def test_a_crash_makes_a_suspect(self, frontier: Frontier) -> None:
        """A death over a record is counted and remembered, also through later retries."""
        session = await begin(frontier, page())
        await settle(frontier, session, retry(await take_one(frontier, session), crashed=True))
        grant = await take_one(frontier, session)
        assert (grant.crashes, grant.suspect) == (1, True)
        await settle(frontier, session, retry(grant))
        assert (await take_one(frontier, session)).suspect

    async def test_release_leaves_no_trace(self, frontier: Frontier) -> None:
        """A record that is given back is as it was, and in its old place."""
        session = await begin(frontier, page("/1"), page("/2"))
        grant = await take_one(frontier, session)
        await settle(frontier, session, Outcome(grant.number, Verdict.RELEASE))
        again = await take_one(frontier, session)
        assert (again.url, again.retries, again.suspect) == (grant.url, 0, False)
        assert (await frontier.counters("t"))["retried"] == 0

    async def test_links_come_with_the_verdict(self, frontier: Frontier) -> None:
        """Outlinks are made records in the same call, dedup and origin included, and may be leased by it."""
        session = await begin(frontier, page("/"))
        grant = await take_one(frontier, session)
        links = [page("/1", depth=1), page("/"), page("/1")]
        answer = await settle(frontier, session, done(grant, links=links), t=5)
        assert urls(answer.grants) == ["https://a.test/1"]
        assert (await life(frontier, page("/1"))).found_on == "https://a.test/"
        assert (await life(frontier, page("/"))).found_on == ""

    async def test_a_settle_with_thousands_of_links_is_one(self, frontier: Frontier) -> None:
        """However many links an outcome has, they come with it."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        await settle(
            frontier, session, done(grant, links=[page(f"/{n}", f"h{n % 9}.test") for n in range(5_000)])
        )
        assert (await frontier.counters("t"))["discovered"] == 5_001

    async def test_a_freed_slot_is_leased_in_the_same_call(self, frontier: Frontier) -> None:
        """A worker that settles and wants more needs no second call."""
        session = await begin(frontier, *pages(5))
        first = await take(frontier, session)
        answer = await settle(frontier, session, done(first[0]), t=9)
        assert urls(answer.grants) == ["https://a.test/4"]

    async def test_a_bad_token_changes_nothing(self, frontier: Frontier) -> None:
        """Unknown, foreign and repeated numbers are answered as stale; none of what came with them applies."""
        session = await begin(frontier, page("/1"), page("/2"))
        other = await frontier.open_session("other")
        mine, theirs = await take_one(frontier, session), await take_one(frontier, other)
        luggage = {
            "links": [page("/new")],
            "items": items(b"{}"),
            "counts": {"bytes": 7},
            "samples": [("x", "y")],
        }
        bad = [Outcome(n, Verdict.DONE, **luggage) for n in (theirs.number, 10**6, mine.number)]  # type: ignore[arg-type]
        answer = await settle(frontier, session, done(mine), *bad)
        assert answer.stale == [theirs.number, 10**6, mine.number]
        counters = await frontier.counters("t")
        assert (counters["discovered"], counters["items"], counters["bytes"]) == (2, 0, 0)
        assert (counters["done"], counters["leased"]) == (1, 1)
        assert await frontier.samples("t") == {}
        assert (await settle(frontier, other, done(theirs))).stale == []

    async def test_a_record_names_the_body_it_ended_with(self, frontier: Frontier) -> None:
        """The key comes with the verdict, is told of that record alone, and is none where nothing was kept."""
        session = await begin(frontier, *pages(3))
        one, two, three = await take(frontier, session)
        await settle(frontier, session, done(one, body="body-1"), done(two), retry(three, body="body-3"))
        assert [(await life(frontier, link)).body for link in pages(3)] == ["body-1", None, None]
        await settle(frontier, session, done(await take_one(frontier, session), "http_404", body="body-4"))
        assert (await life(frontier, page("/2"))).body == "body-4"

    async def test_a_later_end_names_a_later_body(self, frontier: Frontier) -> None:
        """A record that ends again names what was kept last; one that fails then still names what there is."""
        session = await begin(frontier, page(), keep_open=True)
        for verdict, body, named in (
            (Verdict.FAILED, "body-1", "body-1"),
            (Verdict.FAILED, None, "body-1"),
            (Verdict.DONE, "body-2", "body-2"),
        ):
            grant = await take_one(frontier, session)
            await settle(frontier, session, Outcome(grant.number, verdict, body=body))
            await frontier.control("t", Command.RETRY_FAILED)
            assert (await life(frontier, page())).body == named

    async def test_seeds_are_settled_many_times(self, frontier: Frontier) -> None:
        """A slice of seeds keeps the place it reached, is held back by no host, and is no page and no retry."""
        session = await begin(frontier, *(seed(str(n)) for n in range(9)))
        got = await take(frontier, session, 9)
        assert len(got) == 9
        await settle(frontier, session, retry(got[0], burned=False, request=b'{"at":500}', links=[page()]))
        again = await take(frontier, session)
        assert [(grant.kind, grant.request) for grant in again] == [
            (Kind.SEED, b'{"at":500}'),
            (Kind.PAGE, b""),
        ]
        await settle(frontier, session, done(again[0]))
        counters = await frontier.counters("t")
        assert (counters["done"], counters["pages"], counters["retried"]) == (1, 0, 0)


class CountersContract:
    """One consistent reading."""

    async def test_all_counters_are_there_from_the_start(self, frontier: Frontier) -> None:
        """Before anything happened, every promised counter reads 0."""
        await begin(frontier)
        assert await frontier.counters("t") == dict.fromkeys(PROMISED, 0)

    async def test_everything_is_somewhere_once(self, frontier: Frontier) -> None:
        """Discovered is the sum of pending, leased and the ends; each end is the sum of its causes."""
        session = await begin(frontier, *(page(host=f"h{n}.test") for n in range(7)))
        got = await take(frontier, session, 6)
        await settle(
            frontier,
            session,
            done(got[0]),
            done(got[1], "http_404"),
            done(got[2], "redirected", links=[page("/target")]),
            failed(got[3], "dns"),
            Outcome(got[4].number, Verdict.SKIPPED, "trap"),
        )
        counters = await frontier.counters("t")
        ends = {
            "done": 3,
            "done:ok": 1,
            "done:http_404": 1,
            "done:redirected": 1,
            "failed": 1,
            "failed:dns": 1,
        }
        ends |= {"skipped": 1, "skipped:trap": 1, "discovered": 8, "leased": 1, "pending": 2, "cancelled": 0}
        assert {name: counters[name] for name in ends} == ends

    async def test_a_redirect_is_no_page(self, frontier: Frontier) -> None:
        """Pages are the answers, a 404 too, but not the way to one."""
        session = await begin(frontier, *pages(3))
        got = await take(frontier, session)
        await settle(frontier, session, done(got[0]), done(got[1], "http_404"), done(got[2], "redirected"))
        assert (await frontier.counters("t"))["pages"] == 2

    async def test_counts_and_samples_come_with_the_verdict(self, frontier: Frontier) -> None:
        """What a handler counted is added up; of the examples the first few stay."""
        session = await begin(frontier, *pages(4))
        for n, grant in enumerate(await take(frontier, session)):
            examples = [("offsite", f"https://x.test/{n}/{at}") for at in range(3)]
            await settle(
                frontier, session, done(grant, counts={"bytes": 100, "offsite": 3}, samples=examples)
            )
        counters = await frontier.counters("t")
        assert (counters["bytes"], counters["offsite"]) == (400, 12)
        kept = (await frontier.samples("t"))["offsite"]
        assert kept == [f"https://x.test/{n // 3}/{n % 3}" for n in range(KEPT_SAMPLES)]

"""The whole product against a web whose truth is known: every URL ends as it must, and the origin has no complaint."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawl_command import QUICK, Command
from known_truth import complaints, crawl_of, wrong_items, wrong_records

from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.model.record import State
from gossamer.model.url import fingerprint, host_key
from gossamer.testing.web import Kind, KnownWeb, Limits, Mix, serve_child

HOSTILE = Mix(
    limited=0.01,
    broken=0.01,
    large=0.01,
    hanging=0.01,
    slow=0.01,
    truncated=0.01,
    large_bytes=300_000,
    slow_seconds=0.1,
    robots_fails=1,
)
SLOWLY = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 108)]
BOUNDS = ("-s", "max_body=200000", "-s", "header_timeout=0.5")


@pytest.mark.parametrize("seed", [1, 2, *SLOWLY])
def test_every_url_ends_as_the_oracle_says(seed: int, tmp_path: Path) -> None:
    """Records, items, counters, request counts and politeness of the default mix are exactly what the web foretold."""
    web = KnownWeb(seed, pages=250, hosts=3)
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        ended = crawl.run()
        assert complaints(web, crawl, origin.log()) == []
        assert ended.code == 3, "some of its pages cannot be had"
        expected = list(web.expected().values())
        pages = [
            outcome for outcome in expected if outcome.state is State.DONE and outcome.code != "redirected"
        ]
        summary = ended.summary
        assert summary["state"] == "COMPLETED"
        assert summary["pages"] == len(pages)
        assert summary["items"] == len(web.items())
        assert summary["failed"] == sum(outcome.state is State.FAILED for outcome in expected)
        assert summary["skipped"] == sum(outcome.state is State.SKIPPED for outcome in expected)


@pytest.mark.parametrize("seed", [5, *SLOWLY])
def test_pages_that_hang_break_and_swell_end_with_their_cause(seed: int, tmp_path: Path) -> None:
    """Time-outs, resets, bodies cut short or too large, 429 and robots.txt that fails at first: each ends as it must."""
    web = KnownWeb(seed, pages=150, hosts=2, mix=HOSTILE)
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, *BOUNDS)
        ended = crawl.run()
        assert complaints(web, crawl, origin.log()) == []
        assert ended.code == 3
    bad = {
        Kind.HANGING,
        Kind.LARGE,
        Kind.BROKEN,
        Kind.TRUNCATED,
        Kind.LIMITED,
        Kind.GBK,
        Kind.LOOP,
        Kind.TRAP,
    }
    assert len(bad & set(web.kinds().values())) >= 6, "this web is too tame to show anything"


def test_a_web_of_plain_pages_completes_with_exit_code_0(tmp_path: Path) -> None:
    """Nothing fails, so nothing is FAILED; the same command again says so and fetches nothing."""
    web = KnownWeb(3, pages=60, hosts=2, mix=Mix.plain())
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        assert crawl.run().code == 0
        assert complaints(web, crawl, origin.log()) == []
        before = crawl.output.read_bytes()
        origin.clear_log()
        again = crawl.run()
        assert again.code == 0
        assert "complete before" in again.err
        assert origin.log().visits == []
        assert crawl.output.read_bytes() == before


def test_fresh_starts_anew(tmp_path: Path) -> None:
    """--fresh forgets the state and the output, and crawls everything once more."""
    web = KnownWeb(3, pages=50, hosts=2, mix=Mix.plain())
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        assert crawl.run().code == 0
        origin.clear_log()
        assert crawl.run("--fresh").code == 0
        assert complaints(web, crawl, origin.log()) == []


def test_the_depth_limit_ends_an_endless_calendar(tmp_path: Path) -> None:
    """With --depth the calendar and the maze are read so far and no further."""
    web = KnownWeb(5, pages=60, hosts=2, mix=Mix.plain(calendar=0.02, maze=0.02))
    limits = Limits(depth=6)
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        assert crawl.run("--depth", "6").code in {0, 3}
        assert complaints(web, crawl, origin.log(), limits=limits) == []


def test_crawl_delay_and_the_slots_of_a_host_are_kept(tmp_path: Path) -> None:
    """Judged at the origin: one request at a time where there is a delay, two where two are allowed."""
    web = KnownWeb(9, pages=50, hosts=2, mix=Mix.plain(crawl_delay=0.1, crawl_delay_hosts=1, latency=0.05))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, per_host=2)
        assert crawl.run().code == 0
        assert complaints(web, crawl, origin.log(), per_host=2) == []


def test_two_workers_leave_what_one_leaves(tmp_path: Path) -> None:
    """A supervisor and two children: the same records and items, the same manners towards each host."""
    web = KnownWeb(8, pages=200, hosts=3, mix=Mix(latency=0.02))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        assert crawl.run("--workers", "2").code == 3
        assert complaints(web, crawl, origin.log()) == []


async def test_the_frontier_explains_every_url_as_the_oracle_does(tmp_path: Path) -> None:
    """Asked through the port instead of by SQL, the store tells the same states and codes."""
    web = KnownWeb(4, pages=60, hosts=2)
    with serve_child(web):
        crawl = crawl_of(web, tmp_path)
        crawl.run()
        async with SqliteFrontier(crawl.database) as frontier:
            [task] = await frontier.tasks()
            for url, outcome in web.expected().items():
                told = await frontier.explain(task.spec.name, fingerprint("GET", url), host_key(url))
                assert told is not None
                assert (told.state, told.code or "ok") == (outcome.state, outcome.code)


def test_the_judge_of_these_tests_is_not_blind(tmp_path: Path) -> None:
    """A crawl that was told to leave a host out, and to stop early, is found incomplete."""
    web = KnownWeb(3, pages=60, hosts=2, mix=Mix.plain())
    with serve_child(web):
        crawl = Command(tmp_path, ["crawl", *web.seeds], QUICK)
        assert crawl.run("--max-pages", "5").code == 0
        assert any(found.startswith("lost: ") for found in wrong_records(web, crawl))
        assert any(found.startswith("outcome: ") for found in wrong_records(web, crawl))
        assert any(found.startswith("item lost: ") for found in wrong_items(web, crawl))

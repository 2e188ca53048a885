"""The known web: what its oracle says is what a crawler meets."""

from __future__ import annotations

import asyncio

import pytest
from simple_crawler import SimpleCrawler, fetch

from gossamer.model.record import State
from gossamer.testing.web import Kind, KnownWeb, Limits, Mix, Outcome, judge, serve, serve_child

QUICK = Mix(
    limited=0.01,
    broken=0.01,
    large=0.01,
    hanging=0.01,
    slow=0.01,
    large_bytes=200_000,
    slow_seconds=0.01,
    robots_fails=1,
)


def as_text(expected: dict[str, Outcome]) -> dict[str, str]:
    return {url: str(outcome) for url, outcome in expected.items()}


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
async def test_the_oracle_agrees_with_what_a_plain_crawler_meets_in_any_order(seed: int) -> None:
    """Outcomes, items, request counts and politeness of a sequential crawl are exactly what the web foretold."""
    web = KnownWeb(seed, pages=150, hosts=3, mix=QUICK)
    async with serve(web) as origin:
        crawler = SimpleCrawler(web.hosts, seed, patience=0.15, cap=100_000)
        await crawler.crawl(origin.seeds)
        hits = origin.log.hits_by_url()
        assert crawler.ended == as_text(web.expected())
        assert crawler.items == web.items()
        assert {url: hits[url] for url in web.requests()} == web.requests()
        assert (
            judge(origin.log, 1, 0.0, {host: web.robots(host) for host in web.hosts}, foreign=[web.foreign])
            == []
        )
        assert crawler.outside
        assert all(web.foreign in url for url in crawler.outside)


async def test_a_crawl_in_another_order_finds_the_same_depths() -> None:
    """Depth does not depend on the order of a crawl, so concurrent crawlers can be judged by it."""
    web = KnownWeb(11, pages=120, hosts=2, mix=Mix(flaky=0.0))
    async with serve(web) as origin:
        found = []
        for order in range(3):
            crawler = SimpleCrawler(web.hosts, order)
            await crawler.crawl(origin.seeds)
            found.append(crawler.items)
    assert found[0] == found[1] == found[2] == web.items()


async def test_an_endless_calendar_ends_at_the_depth_limit() -> None:
    """With a depth limit the oracle knows how far a calendar and a maze are read; without one it says so."""
    web = KnownWeb(5, pages=60, hosts=2, mix=Mix.plain(calendar=0.02, maze=0.02))
    async with serve(web) as origin:
        with pytest.raises(ValueError, match="depth"):
            web.expected()
        limits = Limits(depth=9)
        crawler = SimpleCrawler(web.hosts, depth=9)
        await crawler.crawl(origin.seeds)
        assert crawler.ended == as_text(web.expected(limits))
        assert crawler.items == web.items(limits)
        assert max(item["depth"] for item in web.items(limits).values()) == 9
        assert Kind.CALENDAR in web.kinds(limits).values()


def bound(web: KnownWeb) -> KnownWeb:
    web.bind([f"{address}:8000" for address in web.addresses])
    return web


def test_equal_arguments_make_equal_webs() -> None:
    """A web is a function of its arguments, and another seed is another web."""
    first, again, other = (bound(KnownWeb(seed, 200, 3)) for seed in (7, 7, 8))
    assert first.expected() == again.expected()
    assert first.items() == again.items()
    assert first.expected() != other.expected()


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_of_the_mix_appears(seed: int) -> None:
    """Whatever the seed, each kind that was asked for can be reached, and each title belongs to one content."""
    web = bound(KnownWeb(seed, 200, 3, Mix.hostile()))
    expected, kinds = web.expected(), web.kinds()
    assert set(kinds.values()) == set(Kind) - {Kind.CALENDAR}
    codes = {str(outcome) for outcome in expected.values()}
    assert {"DONE(ok)", "DONE(http_404)", "DONE(redirected)", "SKIPPED(robots)", "SKIPPED(trap)"} <= codes
    assert "FAILED(redirect_limit)" in codes
    titles = [item["title"] for url, item in web.items().items() if kinds[url] is not Kind.DUPLICATE]
    assert len(titles) == len(set(titles))
    assert set(web.items()) == {
        url for url, outcome in expected.items() if outcome == Outcome(State.DONE, "ok")
    }


def test_loops_end_as_the_design_says() -> None:
    """A redirect to itself fails; a circle of two or three is done at every hop."""
    seen = set()
    for seed in range(12):
        web = bound(KnownWeb(seed, 60, 2, Mix.plain(loop=0.05)))
        ends = {str(web.expected()[url]) for url, kind in web.kinds().items() if kind is Kind.LOOP}
        seen |= ends
    assert seen == {"FAILED(redirect_loop)", "DONE(redirected)"}


def test_the_limits_of_the_crawl_change_the_truth() -> None:
    """The oracle follows the limits it is given, not the product's defaults."""
    web = bound(KnownWeb(3, 200, 2, Mix.plain(long_chain=0.02, maze=0.02, trap=0.02)))
    usual, wide = web.expected(), web.expected(Limits(hops=50, repeats=6, segments=40, params=40))
    assert "FAILED(redirect_limit)" in as_text(usual).values()
    assert "FAILED(redirect_limit)" not in as_text(wide).values()
    assert len([url for url in wide if "again/again/again/" in url]) > len(
        [url for url in usual if "again/again/again/" in url]
    )


def test_urls_are_asked_for_after_binding_only() -> None:
    """Without addresses there are no URLs, and the error says what to do."""
    with pytest.raises(RuntimeError, match="bind"):
        KnownWeb().expected()


def test_a_mix_is_read_back_from_its_text() -> None:
    """Command lines carry mixes; a wrong name, share or sum is refused with the reason."""
    mix = Mix(flaky=0.2, retry_after=3)
    assert Mix.parse(mix.text()) == mix
    with pytest.raises(ValueError, match="nonsense"):
        Mix.parse("nonsense=1")
    with pytest.raises(ValueError, match="missing"):
        Mix(missing=1.5)
    with pytest.raises(ValueError, match="at most"):
        Mix(missing=0.5, flaky=0.5)
    with pytest.raises(ValueError, match="do not fit"):
        KnownWeb(1, 40, 2, Mix(**{**dict.fromkeys(Mix().shares(), 0.002), "missing": 0.65}))


async def test_retry_after_and_crawl_delay_are_served() -> None:
    """A limited page names its rest and answers in the end; the slowed host says so in robots.txt."""
    web = KnownWeb(2, 60, 3, Mix.plain(limited=0.03, retry_after=2, crawl_delay=0.5))
    async with serve(web) as origin:
        url = next(url for url, kind in web.kinds().items() if kind is Kind.LIMITED)
        statuses = []
        while 200 not in statuses:
            answer = await fetch(url)
            statuses.append(answer.status)
            assert answer.status == 200 or answer.headers["retry-after"] == "2"
        assert statuses[0] == 429
        assert origin.log.visits[0].retry_after == 2
        assert "Crawl-delay: 0.5" in (await fetch(f"http://{web.hosts[2]}/robots.txt")).body.decode()
        assert web.delays(0.1) == {web.hosts[0]: 0.1, web.hosts[1]: 0.1, web.hosts[2]: 0.5}


async def test_a_child_serves_the_web_whose_oracle_is_here() -> None:
    """Over a process boundary the same arguments give the same web, and its log and memory can be reached."""
    web = KnownWeb(9, 50, 2, Mix(flaky=0.05, large=0.0))
    with serve_child(web) as child:
        crawler = SimpleCrawler(web.hosts)
        await crawler.crawl(child.seeds)
        assert crawler.ended == as_text(web.expected())
        assert crawler.items == web.items()
        flaky = next(url for url, kind in web.kinds().items() if kind is Kind.FLAKY)
        log = await asyncio.to_thread(child.log)
        assert log.hits(flaky) == web.requests()[flaky] > 1
        assert (await fetch(flaky)).status == 200
        await asyncio.to_thread(child.reset)
        await asyncio.to_thread(child.clear_log)
        again = SimpleCrawler(web.hosts)
        await again.crawl([flaky])
        assert (await asyncio.to_thread(child.log)).hits(flaky) == web.requests()[flaky]

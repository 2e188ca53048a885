"""Hosts whose robots.txt is a trap: rows R01 to R09 of the catalogue, through the whole engine."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import QUICK, Crawl, crawl, reader
from hostile_origin import (
    CHUNKED,
    GOOD,
    HOSTILE,
    OK,
    Misbehaviour,
    asked,
    goes_on,
    goes_silent,
    hangs_up,
    hostile_site,
    html,
    in_turn,
    moved,
    page,
    resets,
    zipped,
)

from gossamer.model.record import State
from gossamer.testing.contracts.transport import Site

ELSEWHERE = "127.0.0.2"  # the host with the hostile robots.txt; the good pages are on the other
DONE = (State.DONE, "")
DENIED = (State.SKIPPED, "robots")
UNKNOWN = (State.FAILED, "robots_unreachable")
PRIVATE = "/private/x"
RULES = b"User-agent: *\nDisallow: /private\n"
ROBOTS = "/robots.txt"


async def crawl_both(folder: Path, good: Site, bad: Site, *paths: str, **settings: Any) -> Crawl:
    """Two pages of the hostile host, one of which its usual rules forbid, and the good pages of the other."""
    urls = [*(bad.url(path) for path in paths or (HOSTILE, PRIVATE)), *(good.url(path) for path in GOOD)]
    ours = {"private_hosts": ["127.0.0.1", ELSEWHERE], "host_patience": 0.3}
    return await crawl(folder, urls, **{**ours, **settings})


async def wrongs(
    folder: Path, robots: bytes | Misbehaviour, open_: Any, private: Any, **settings: Any
) -> list[str]:
    """What is not as it must be where a host answers so for its rules: the ends of its open and its private page."""
    answers = {ROBOTS: robots, HOSTILE: html("<title>open</title>"), PRIVATE: html("<title>private</title>")}
    async with hostile_site({}) as good, hostile_site(answers, host=ELSEWHERE) as bad:
        found = await crawl_both(folder, good, bad, **settings)
        ends = {bad.url(HOSTILE): open_, bad.url(PRIVATE): private}
        asked_for = {path for path, end in ((HOSTILE, open_), (PRIVATE, private)) if end == DONE}
        return [
            *await found.complaints(good, ends),
            *(f"asked for {path}" for path in asked(bad) if path not in {ROBOTS, *asked_for}),
        ]


@pytest.mark.parametrize("status", [b"404 Not Found", b"410 Gone", b"401 Who", b"403 No", b"418 Teapot"])
async def test_no_file_means_no_rules(tmp_path: Path, status: bytes) -> None:
    """R01: where there is no robots.txt everything may be read, whatever the body of the refusal says."""
    assert await wrongs(tmp_path, page(b"User-agent: *\nDisallow: /", status=status), DONE, DONE) == []


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(page(RULES, status=b"500 Oops"), id="500"),
        pytest.param(page(RULES, status=b"503 Later"), id="503"),
        pytest.param(page(RULES, status=b"599 Odd"), id="599"),
        pytest.param(hangs_up(b"HTTP/1.1 999 What\r\n\r\n"), id="999"),
        pytest.param(goes_silent(), id="silence"),
        pytest.param(goes_on(OK + b"\r\n" + RULES, b"#", 0.02), id="drips"),
        pytest.param(resets(OK + b"\r\n" + RULES), id="reset"),
        pytest.param(hangs_up(OK + b"Content-Length: 999\r\n\r\n" + RULES), id="cut short"),
        pytest.param(hangs_up(b"what?"), id="no HTTP"),
        pytest.param(page(RULES, b"Content-Encoding: gzip"), id="not the coding it says"),
    ],
)
async def test_rules_that_cannot_be_learned_are_no_permission(
    tmp_path: Path, robots: bytes | Misbehaviour
) -> None:
    """R02: while robots.txt cannot be got nothing else is asked for, and the host's pages end with its patience."""
    short = {"header_timeout": 0.3, "timeout": 0.3}
    assert await wrongs(tmp_path, robots, UNKNOWN, UNKNOWN, **short) == []


@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Later"])
async def test_an_absurd_wait_for_the_rules_is_clamped(tmp_path: Path, status: bytes) -> None:
    """R02, S20: a robots.txt that asks for thirty years has its host wait for an hour, in its stored row."""
    answers = {ROBOTS: page(RULES, b"Retry-After: 1000000000", status=status), HOSTILE: html()}
    async with hostile_site({}) as good, hostile_site(answers, host=ELSEWHERE) as bad:
        found = await crawl_both(tmp_path, good, bad, max_minutes=0.005)
        assert await found.complaints(good, {bad.url(HOSTILE): (State.CANCELLED, "max_minutes")}) == []
        told = await found.explain(bad.url(HOSTILE))
        assert told is not None
        assert 3500 < told.host.parked_for <= 3600
        assert asked(bad) == {ROBOTS: 1}


async def test_rules_that_come_late_are_obeyed(tmp_path: Path) -> None:
    """R02: after two failures the rules are learned in the end, and hold."""
    bad = page(
        b"",
        b"Connection: close",
        status=b"503 Later",
    )
    late = in_turn(bad, page(RULES, b"Connection: close"))
    assert await wrongs(tmp_path, late, DONE, DENIED, host_patience=0.5) == []


@pytest.mark.parametrize(
    ("hops", "end"), [(1, DENIED), (5, DENIED), (6, DONE), (1000, DONE)], ids=["1", "5", "6", "for ever"]
)
async def test_rules_are_followed_over_five_redirects(tmp_path: Path, hops: int, end: Any) -> None:
    """R03: five redirects lead to the rules; a file that lies behind more is taken as none (RFC 9309)."""
    chain = {f"/hop/{n}": moved(f"/hop/{n + 1}") for n in range(1, hops)}
    answers = {
        **chain,
        f"/hop/{hops}": page(RULES),
        ROBOTS: moved("/hop/1"),
        HOSTILE: html(),
        PRIVATE: html(),
    }
    async with hostile_site({}) as good, hostile_site(answers, host=ELSEWHERE) as bad:
        found = await crawl_both(tmp_path, good, bad)
        assert await found.complaints(good, {bad.url(HOSTILE): DONE, bad.url(PRIVATE): end}) == []
        assert sum(path.startswith("/hop/") for path in asked(bad)) == min(hops, 5)


async def test_rules_of_another_host_hold_for_the_one_that_sent_there(tmp_path: Path) -> None:
    """R03: rules found by a redirect are those of the host that was asked, and not of the one that has the file."""
    answers = {PRIVATE: html(), "/theirs": page(RULES)}
    async with (
        hostile_site(answers, host=ELSEWHERE) as there,
        hostile_site({ROBOTS: moved(there.url("/theirs")), PRIVATE: html()}) as here,
    ):
        urls = [here.url(PRIVATE), there.url(PRIVATE), *(here.url(path) for path in GOOD)]
        found = await crawl(tmp_path, urls, private_hosts=["127.0.0.1", ELSEWHERE])
        assert await found.complaints(here, {here.url(PRIVATE): DENIED, there.url(PRIVATE): DONE}) == []


@pytest.mark.parametrize(
    "target",
    ["http://127.0.0.3:PORT/", "http://localhost:PORT/", "http://169.254.169.254/"],
)
async def test_a_robots_file_leads_no_crawl_inside(tmp_path: Path, target: str) -> None:
    """N06: the redirect of a host that may be private does not open other private hosts, which nobody named."""
    async with hostile_site({}, host="0.0.0.0") as inside:
        robots = moved(target.replace("PORT", str(inside.port)))
        short = {"connect_timeout": 0.3, "timeout": 0.3}
        assert await wrongs(tmp_path, robots, UNKNOWN, UNKNOWN, **short) == []
        assert inside.connections == 0


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://127.0.0.1/robots.txt", "http://127.0.0.1:6379/"]
)
async def test_a_robots_file_elsewhere_than_on_the_web_is_none(tmp_path: Path, target: str) -> None:
    """D03: a robots.txt that redirects to no web page is no file, and no request goes there."""
    assert await wrongs(tmp_path, moved(target), DONE, DONE) == []


@pytest.mark.parametrize(
    "robots",
    [
        pytest.param(goes_on(OK + b"\r\n" + RULES, b"# more\n" * 500), id="endless"),
        pytest.param(goes_on(CHUNKED + b"%x\r\n%s\r\n" % (len(RULES), RULES), b"7\r\n# more\n\r\n" * 500), id="endless chunks"),
        pytest.param(page(RULES + b"# more\n" * 100_000), id="700 KB"),
        pytest.param(page(RULES + b"# more\n" * 1_800_000), id="12 MB"),
        pytest.param(zipped(RULES + b"#" * 30_000_000), id="bomb"),
    ],
)  # fmt: skip
async def test_of_rules_without_end_the_beginning_holds(tmp_path: Path, robots: bytes | Misbehaviour) -> None:
    """R04: of a robots.txt of any size the first 500 KiB are read and obeyed (RFC 9309), and the host is crawled."""
    assert await wrongs(tmp_path, robots, DONE, DENIED, max_body=10 * 1024 * 1024) == []


@pytest.mark.parametrize(
    "body",
    [
        b"<!doctype html><title>Welcome</title>",
        b'{"error": 1}',
        b"\x7fELF\x02\x01" + bytes(range(256)) * 9,
        b"",
        b"\xef\xbb\xbf",
        b"Disallow: /",
    ],
    ids=["HTML", "JSON", "binary", "nothing", "only a mark", "rules for nobody"],
)
async def test_what_is_no_robots_file_forbids_nothing(tmp_path: Path, body: bytes) -> None:
    """R05: a page that is served for every path says nothing about robots."""
    assert await wrongs(tmp_path, page(body, b"Content-Type: text/plain"), DONE, DONE) == []


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + RULES,
        RULES.replace(b"\n", b"\r"),
        RULES.decode().encode("utf-16"),
        RULES.replace(b"allow", b"al\0low"),
        b"\xff\xfb\xfd junk \xc3\x28\n" + RULES,
        RULES + b"\nUser-agent: other\nDisallow: /\n\nUser-agent: *\nDisallow: /else\n",
        RULES + b"Allow: /" + b"*a" * 4000 + b"$\nDisallow: /*a*a*a*a*a*a*a*a*a*a*a*a$",
        RULES.replace(b"/private", b"/*p*r*i*v*a*t*e*"),
    ],
    ids=["BOM", "CR only", "UTF-16", "NUL", "no text", "repeated groups", "stars that do not fit", "stars that fit"],
)  # fmt: skip
async def test_sloppy_and_crafted_rules_are_obeyed(tmp_path: Path, body: bytes) -> None:
    """R05, R06: what is no neat file is read as it is meant, and patterns of stars cost no time."""
    assert await wrongs(tmp_path, page(body), DONE, DENIED) == []


@pytest.mark.parametrize("delay", [b"-1", b"nan", b"inf", b"abc", b"", b"1e-9", b"0x10"])
async def test_a_delay_that_means_nothing_is_ignored(tmp_path: Path, delay: bytes) -> None:
    """R07: a Crawl-delay that is no number of seconds neither stops the crawl nor breaks the other rules."""
    assert await wrongs(tmp_path, page(RULES + b"Crawl-delay: " + delay), DONE, DENIED) == []


@pytest.mark.parametrize("delay", [b"1000000000", b"1e30", b"99999999999999999999", b"3601"])
async def test_an_absurd_delay_is_kept_to_the_hour(tmp_path: Path, delay: bytes) -> None:
    """R07: a host that asks for years between two pages gets an hour, and nobody else waits for it."""
    answers = {ROBOTS: page(b"User-agent: *\nCrawl-delay: " + delay), HOSTILE: html(), "/second": html()}
    async with hostile_site({}) as good, hostile_site(answers, host=ELSEWHERE) as bad:
        found = await crawl_both(tmp_path, good, bad, HOSTILE, "/second", max_minutes=0.005)
        assert await found.complaints(good, {}) == []
        told = await found.explain(bad.url("/second"))
        assert told is not None
        assert told.host.crawl_delay == 3600
        assert (told.state, told.code) == (State.CANCELLED, "max_minutes")
        assert asked(bad)["/second"] == 0


async def test_rules_are_asked_for_once_by_all(tmp_path: Path) -> None:
    """R09: two tasks that need the rules of a host at once, for many pages, cause one request for them."""
    pages = {f"/page/{n}": html(f"<title>{n}</title>") for n in range(20)}
    async with hostile_site({ROBOTS: page(RULES), **pages}) as here:
        urls = [here.url(path) for path in (*pages, PRIVATE, *GOOD)]
        spiders = [reader(urls), reader(urls)]
        spiders[1].name = "another"
        runs = (
            spider.run(state=tmp_path / "state", output=tmp_path / f"{spider.name}.jsonl", **QUICK)
            for spider in spiders
        )
        endings = await asyncio.gather(*runs)
        for ending in endings:
            found = Crawl(ending, tmp_path)
            assert ending.items == len(pages) + len(GOOD)
            assert await found.ended(here.url(PRIVATE)) == DENIED
        assert asked(here)[ROBOTS] == 1

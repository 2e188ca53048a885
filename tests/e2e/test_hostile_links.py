"""URLs that are meant to confuse or to never end: rows U01 to U17 of the catalogue, through the whole engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import crawl, crawl_site
from hostile_origin import GOOD, HOSTILE, asked, hostile_site, html, linking, linking_home

from gossamer import Page, Spider
from gossamer.model.record import State
from gossamer.model.url import canonical

DONE = (State.DONE, "")
TRAP = (State.SKIPPED, "trap")


@pytest.mark.parametrize("length", [8_200, 64_000, 2_000_000])
async def test_a_url_too_long_is_counted_not_kept(tmp_path: Path, length: int) -> None:
    """U01: a link beyond 8 KiB is refused, with an example of bounded length; one just below is fetched."""
    longest = "/" + "y" * (8_192 - len("http://127.0.0.1:65535/"))
    async with hostile_site({HOSTILE: linking("/" + "x" * length, longest), longest: html()}) as here:
        found = await crawl_site(tmp_path, here, max_body=10_000_000)
        assert await found.complaints(here, {here.url(HOSTILE): DONE, here.url(longest): DONE}) == []
        assert (await found.counters())["refused:url_too_long"] == 1
        assert not any("x" * 600 in sample for some in found.ending.samples.values() for sample in some)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param("http://127.0.0.1/" + "x" * 2_000_000, id="2 MB"),
        pytest.param("http://" + "a" * 100_000 + ".example/", id="endless host"),
        pytest.param("http://user:secret@127.0.0.1/", id="credentials"),
        pytest.param("http://a b\r\nINFO all is well\x1b[2J/", id="line breaks"),
        pytest.param("file:///etc/passwd", id="file"),
        pytest.param("\ud800://", id="half a character"),
        pytest.param("", id="nothing"),
    ],
)
async def test_a_hostile_seed_is_one_bounded_line(tmp_path: Path, seed: str) -> None:
    """U01, U15: a seed that cannot be fetched is told in one line, short and without credentials; the others are crawled."""
    async with hostile_site({}) as here:
        found = await crawl(tmp_path, [seed, *(here.url(path) for path in GOOD)], allow="*")
        assert await found.complaints(here, {}) == []
    assert found.ending.pages == len(GOOD)
    assert len(found.lines) == 1
    assert "secret" not in found.lines[0]
    assert found.lines[0].isprintable()


SAME = [
    "/one/two", " /one/two ", "\t/one/two\n", "/o\nne/t\two", "/one/./two", "/one/%2e/two", "/one/x/../two",
    "/one/x/%2E%2e/two", "//HOST/one/two", "http://HOST/one/two", "HTTP://HOST/one/two#part", "http:\\\\HOST\\one\\two",
    "/one/two?", "/one/two#", "http://127.0.0.1.:PORT/one/two", "http://0x7f000001:PORT/one/two", "http://127.1:PORT/one/two",
    "ht\ntp://HOST/one/two", "http://127.0.0\t.1:PORT/one/two", "http:/one/two", "http://HOST/../../one/two",
]  # fmt: skip


async def test_spellings_of_one_page_are_one_record(tmp_path: Path) -> None:
    """U02, U04, U07, U08: whatever browsers read as the same address is fetched once."""
    async with hostile_site({HOSTILE: linking_home(*SAME), "/one/two": html()}) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.complaints(here, {here.url(HOSTILE): DONE, here.url("/one/two"): DONE}) == []
        assert asked(here)["/one/two"] == 1
    assert (await found.counters())["discovered"] == 2 + len(GOOD)


DIFFERENT = [
    "/a/b", "/a%2Fb", "/a%2fb", "/a//b", "//HOST//a/b", "/a/b/", "/A/b", "/%61/b", "/a/b?", "/a/b?x", "/a/b?x=", "/x?a=1&b=2",
    "/x?b=2&a=1", "/x?a=1&a=2", "/x?a=2", "/x?a;b", "/x?a&b", "/%00", "/%zz", "/%2561", "/%", "/~", "/%7E", "/%C3%A9", "/é",
]  # fmt: skip


async def test_what_may_be_two_pages_is_two_records(tmp_path: Path) -> None:
    """U07, U09: escapes, slashes and the order of parameters go out as they are written, each for a page of its own."""
    wanted = [
        "/a/b",
        "/a%2Fb",
        "/a%2fb",
        "/a//b",
        "//a/b",
        "/a/b/",
        "/A/b",
        "/%61/b",
        "/a/b?x",
        "/a/b?x=",
        *DIFFERENT[11:23],
    ]
    paths = [*wanted, "/%C3%A9"]
    async with hostile_site({HOSTILE: linking_home(*DIFFERENT), **{path: html() for path in paths}}) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.complaints(here, dict.fromkeys(map(here.url, paths), DONE)) == []
        assert {path: asked(here)[path] for path in paths} == dict.fromkeys(paths, 1)
        assert sum(asked(here).values()) == len(paths) + 2 + len(GOOD)


async def test_a_calendar_without_end_has_its_budget(tmp_path: Path) -> None:
    """U10: of one URL pattern so many pages are taken as the task allows; the next ends SKIPPED, and the crawl ends."""
    days = {f"/day/2024/{n}": linking(f"/day/2024/{n + 1}") for n in range(1, 100)}
    async with hostile_site({HOSTILE: linking("/day/2024/1"), **days}) as here:
        found = await crawl_site(tmp_path, here, pages_per_pattern=5)
        taken = {here.url(f"/day/2024/{n}"): DONE for n in range(1, 6)}
        assert (
            await found.complaints(here, {**taken, here.url("/day/2024/6"): (State.SKIPPED, "trap_pattern")})
            == []
        )
    assert (await found.counters())["skipped:trap_pattern"] == 1


@pytest.mark.parametrize(
    "trap",
    [
        "/a/b/a/b/a/b/a/b/",
        "/again/again/again/",
        "/" + "/".join(map(str, range(200))),
        "/x" + "/" * 100,
        "/?" + "&".join(f"p{n}={n}" for n in range(100)),
        "/?" + "&" * 100,
    ],
)
async def test_the_shape_of_a_trap_is_skipped(tmp_path: Path, trap: str) -> None:
    """U11: repeated and very many segments or parameters end SKIPPED(trap) and are never asked for."""
    async with hostile_site(linking(trap)) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.complaints(here, {here.url(trap): TRAP}) == []
        assert trap not in asked(here)


async def test_session_ids_can_be_taken_out(tmp_path: Path) -> None:
    """U12: parameters that the author named are no part of a page's identity, wherever they stand and however written."""
    links = [f"/page?{'x=1&' * (n % 2)}{'sid' if n % 3 else 's%69d'}={n}&utm_{n}=y" for n in range(50)]
    async with hostile_site({HOSTILE: linking(*links), "/page": html(), "/page?x=1": html()}) as here:
        found = await crawl_site(tmp_path, here, drop_params=["sid", "utm_*"])
        assert await found.complaints(here, {here.url("/page"): DONE, here.url("/page?x=1"): DONE}) == []
    assert (await found.counters())["discovered"] == 3 + len(GOOD)


INERT = [
    "/$(touch x)", "/`id`", "/{0.__class__}", "/{{7*7}}", "/%s%n%d", "/%(name)s", "/';DROP TABLE record;--", '/"quoted"',
    "/%0d%0aX-Evil:%20y", "/\x1b[2J", "/<script>alert(1)</script>", "/|ls", "/\u202e.exe", "/[red]x[/red]", "/x?a='%22",
]  # fmt: skip


async def test_what_looks_like_code_is_a_name(tmp_path: Path) -> None:
    """U15: shell, SQL, format and markup in a URL are fetched, stored and logged as text, on one plain line each."""
    async with hostile_site({}) as here:
        spider = Spider("teller", start=[here.url(path) for path in (*INERT, *GOOD)])

        @spider.page(any_status=True)
        def read(page: Page) -> Iterator[Any]:
            if page.status == 404:
                raise ValueError(f"not here: {page.url}")
            yield {"url": page.url, "title": page.title}

        found = await crawl(tmp_path, spider)
        ends = {canonical(here.url(path)): (State.FAILED, "handler_error") for path in INERT}
        assert await found.complaints(here, ends) == []
        assert not any(b"\r\nX-Evil" in head for head in here.requests)
    assert len(found.lines) == len(INERT)
    assert all(line.isascii() and line.isprintable() for line in found.lines)


async def test_subdomains_without_end_are_out_of_scope(tmp_path: Path) -> None:
    """U16: a page that links to ten thousand hosts adds none of them, unless the task asks for subdomains."""
    links = [f"http://h{n}.shop.example/" for n in range(10_000)]
    async with hostile_site(linking(*links)) as here:
        found = await crawl_site(tmp_path, here, max_body=10_000_000)
        assert await found.wrongs(here) == []
        counters = await found.counters()
    assert (counters["refused:offsite"], counters["discovered"]) == (10_000, 1 + len(GOOD))


async def test_one_page_named_many_thousand_times_is_one_record(tmp_path: Path) -> None:
    """U17: as a seed and as a link, from several pages at once, a URL is fetched once."""
    again = linking_home(*(f"http://HOST/target#{n}" for n in range(2000)))
    hubs = {f"/hub/{n}": again for n in range(5)}
    async with hostile_site({**hubs, "/target": html("<title>target</title>")}) as here:
        seeds = [here.url(path) for path in (*["/target"] * 5000, *hubs, *GOOD)]
        found = await crawl(tmp_path, seeds)
        assert await found.complaints(here, {here.url("/target"): DONE}) == []
        assert found.item(here.url("/target"))["title"] == "target"
        assert asked(here)["/target"] == 1
    assert (await found.counters())["discovered"] == 1 + len(hubs) + len(GOOD)

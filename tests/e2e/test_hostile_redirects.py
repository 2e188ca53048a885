"""Redirects that lead astray, credentials and cookies: rows D01 to D12 of the catalogue, through the whole engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import Crawl, crawl, crawl_site
from hostile_origin import (
    GOOD,
    HOSTILE,
    Answers,
    asked,
    hangs_up,
    head_of,
    hostile_site,
    html,
    linking,
    moved,
    page,
)

from gossamer import Page, Request, Spider
from gossamer.model.record import State
from gossamer.testing.contracts.transport import Site

ELSEWHERE = "127.0.0.2"
BOTH = ["127.0.0.1", ELSEWHERE]
REDIRECTED = (State.DONE, "redirected")


@pytest.mark.parametrize(
    ("location", "code"),
    [
        pytest.param("file:///etc/passwd", "scheme", id="D03 file"),
        pytest.param("data:text/html,<title>x", "scheme", id="D03 data"),
        pytest.param("javascript:alert(1)", "scheme", id="D03 javascript"),
        pytest.param("java\tscript:alert(1)", "scheme", id="D03 javascript with a tab"),
        pytest.param("ftp://127.0.0.1/x", "scheme", id="D03 ftp"),
        pytest.param("gopher://127.0.0.1:6379/_SET", "scheme", id="D03 gopher"),
        pytest.param("http://user:secret@127.0.0.1/", "userinfo", id="U03 credentials"),
        pytest.param("http://127.0.0.1:6379/", "port", id="U13 another service"),
        pytest.param("http://127.0.0.1:0/", "port", id="U13 port 0"),
        pytest.param("http://127.0.0.1:65536/", "bad_location", id="U13 port 65536"),
        pytest.param("http://xn--a/", "bad_location", id="U06 broken punycode"),
        pytest.param("http://{0.__class__}/", "host", id="U15 braces"),
        pytest.param("/" + "x" * 9000, "url_too_long", id="U01 9 KB"),
        pytest.param(HOSTILE, "redirect_loop", id="D01 itself"),
        pytest.param(HOSTILE + "#again", "redirect_loop", id="D01 itself with a fragment"),
    ],
)
async def test_a_redirect_to_nowhere_fails_its_page(tmp_path: Path, location: str, code: str) -> None:
    """What a redirect may not lead to is FAILED by its reason, and no request goes there."""
    async with hostile_site(moved(location)) as here:
        found = await crawl_site(tmp_path, here, allow="*")
        assert await found.wrongs(here, State.FAILED, code) == []
        assert asked(here)[HOSTILE] == 1
        assert found.ending.pages == len(GOOD)
    assert "secret" not in "".join(found.lines)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        pytest.param("/caf\u00e9".encode(), "/caf%C3%A9", id="raw UTF-8"),
        pytest.param(b"/caf\xe9", "/caf%E9", id="raw Latin-1"),
        pytest.param(b"  /blank  ", "/blank", id="blanks around"),
        pytest.param(b"/a b", "/a%20b", id="a blank inside"),
        pytest.param(b"/a\tb", "/ab", id="a tab inside"),
        pytest.param(b"\\back\\slash", "/back/slash", id="backslashes"),
        pytest.param(b"?q=<'\">", "/hostile?q=%3C%27%22%3E", id="quotes"),
        pytest.param(b"/x%0d%0aSet-Cookie:%20a=b", "/x%0d%0aSet-Cookie:%20a=b", id="encoded line break"),
    ],
)
async def test_a_location_goes_out_encoded(tmp_path: Path, location: bytes, target: str) -> None:
    """D09: odd bytes in a Location lead where a browser would go, as one request line without a split header."""
    async with hostile_site({HOSTILE: moved(location), target: html("<title>there</title>")}) as here:
        found = await crawl_site(tmp_path, here)
        ends = {here.url(HOSTILE): REDIRECTED, here.url(target): (State.DONE, "")}
        assert await found.complaints(here, ends) == []
        assert asked(here)[target] == 1
        assert not any(b"\r\nSet-Cookie" in head for head in here.requests)


@pytest.mark.parametrize("location", [b"/a\rX: b", b"/a\0b", b"/a\r\r\nX: b"])
async def test_a_location_that_could_split_a_request_is_refused(tmp_path: Path, location: bytes) -> None:
    """D09: CR and NUL in a Location end its page FAILED; nothing is asked of what stands before or behind them."""
    async with hostile_site(moved(location)) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.complaints(here, {}) == []
        state, code = await found.ended(here.url(HOSTILE)) or (None, "")
        assert (state, code in {"bad_location", "protocol"}) == (State.FAILED, True)
        assert set(asked(here)) == {"/robots.txt", HOSTILE, *GOOD}


@pytest.mark.parametrize("fields", [[], [b"Location:"], [b"Location:  \t"]], ids=["none", "empty", "blanks"])
async def test_a_redirect_without_a_location_is_an_answer(tmp_path: Path, fields: list[bytes]) -> None:
    """D10: a 302 that says nowhere is DONE(http_302), like any answer that is no page."""
    async with hostile_site(page(b"moved", *fields, status=b"302 Found")) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here, State.DONE, "http_302") == []


@pytest.mark.parametrize(
    "location", ["//127.0.0.2/", "/\\127.0.0.2/", "\\\\127.0.0.2\\", "http:\\\\127.0.0.2/"]
)
async def test_a_disguised_host_is_out_of_scope(tmp_path: Path, location: str) -> None:
    """D10: what only looks like a path is judged as the other host that it names."""
    async with hostile_site({}, host=ELSEWHERE) as there:
        location = location.replace(ELSEWHERE, f"{ELSEWHERE}:{there.port}")
        async with hostile_site(moved(location)) as here:
            found = await crawl_site(tmp_path, here, private_hosts=BOTH)
            ends = {here.url(HOSTILE): REDIRECTED, there.url("/"): None}
            assert await found.complaints(here, ends) == []
        assert (await found.counters())["refused:offsite"] == 1
        assert there.connections == 0


async def test_a_loop_that_sets_a_cookie_each_time_ends(tmp_path: Path) -> None:
    """D01: a redirect to itself that sets a cookie is repeated once with it, and FAILED(redirect_loop) the second time."""
    loop = page(b"", b"Location: " + HOSTILE.encode(), b"Set-Cookie: seen=1", status=b"302 Found")
    async with hostile_site(loop) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here, State.FAILED, "redirect_loop") == []
        assert asked(here)[HOSTILE] == 2
        assert b"seen=1" in head_of(here, HOSTILE)


async def test_a_thousand_hops_end_after_ten(tmp_path: Path) -> None:
    """D02: the eleventh hop is FAILED(redirect_limit), and the twelfth was never asked for."""
    chain = {f"/hop/{n}": moved(f"/hop/{n + 1}") for n in range(1000)}
    async with hostile_site({**chain, HOSTILE: moved("/hop/1")}) as here:
        found = await crawl_site(tmp_path, here)
        hops = {here.url(f"/hop/{n}"): REDIRECTED for n in range(1, 10)}
        ends = {here.url("/hop/10"): (State.FAILED, "redirect_limit"), here.url("/hop/11"): None}
        assert await found.complaints(here, {**hops, **ends}) == []
        assert asked(here)["/hop/11"] == 0


@pytest.mark.parametrize(
    "content", ["0", "0; url=/hostile", "0;URL='http://127.0.0.2/'", "-1; url=//127.0.0.2/"]
)
async def test_a_refreshing_page_is_no_loop_and_no_way_out(tmp_path: Path, content: str) -> None:
    """D11: a page that refreshes to itself or offsite, also inside noscript, is one DONE page, asked for once."""
    tag = f'<title>refreshed</title><meta http-equiv="refresh" content="{content}">'
    async with hostile_site(html(f"{tag}<noscript>{tag}</noscript>")) as here:
        found = await crawl_site(tmp_path, here, private_hosts=BOTH)
        assert await found.wrongs(here) == []
        assert asked(here)[HOSTILE] == 1
    assert (await found.counters())["discovered"] == 1 + len(GOOD)


# What travels along


def sending(request: Request) -> Spider:
    """A spider that asks for this, then for the good pages, and takes what any answer says."""
    spider = Spider("sender", start=[request, *(request.url.replace(HOSTILE, path) for path in GOOD)])

    @spider.page()
    def read(page: Page) -> Iterator[Any]:
        yield {"url": page.url, "title": page.title}

    return spider


async def send(folder: Path, here: Site, **options: Any) -> Crawl:
    spider = sending(Request(here.url(HOSTILE), **options))
    return await crawl(folder, spider, allow="*", private_hosts=BOTH)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"headers": {"Authorization": "Bearer secret"}}, id="D05 Authorization"),
        pytest.param({"headers": {"cookie": "sid=secret"}}, id="D06 Cookie header"),
        pytest.param({"cookies": {"sid": "secret"}}, id="D06 cookies"),
        pytest.param({"headers": {"Proxy-Authorization": "Basic secret"}}, id="D14 Proxy-Authorization"),
    ],
)
@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 See", b"307 Moved", b"308 Moved"])
async def test_credentials_do_not_cross_to_another_origin(
    tmp_path: Path, options: dict[str, Any], status: bytes
) -> None:
    """D05, D06: a redirect to another host carries none of the credentials that its request was given."""
    async with hostile_site({"/a": html("<title>target</title>")}, host=ELSEWHERE) as there:
        async with hostile_site(moved(there.url("/a"), status)) as here:
            found = await send(tmp_path, here, **options)
            ends = {here.url(HOSTILE): REDIRECTED, there.url("/a"): (State.DONE, "")}
            assert await found.complaints(here, ends) == []
            assert b"secret" in head_of(here, HOSTILE)
        assert b"secret" not in b"".join(there.requests)


async def test_credentials_for_all_do_not_leave_the_scope_for_robots(tmp_path: Path) -> None:
    """D05: where a robots.txt redirects to a host that nobody named, the task's own headers stay behind."""
    rules = b"User-agent: *\nDisallow: /private\n"
    async with hostile_site({"/robots.txt": page(rules)}, host=ELSEWHERE) as there:
        async with hostile_site({"/robots.txt": moved(there.url("/robots.txt")), HOSTILE: html()}) as here:
            headers = {"Authorization": "Bearer secret", "Cookie": "sid=secret"}
            found = await crawl_site(tmp_path, here, headers=headers, allow_net=["127.0.0.0/8"])
            assert await found.wrongs(here) == []
            assert b"secret" in head_of(here, HOSTILE)
        assert b"secret" not in b"".join(there.requests)


@pytest.mark.parametrize("status", [b"301 Moved", b"302 Found", b"303 See"])
async def test_a_posted_body_does_not_follow_a_redirect(tmp_path: Path, status: bytes) -> None:
    """D12: a POST that is sent elsewhere becomes a GET there, without its body and what was said of it."""
    async with hostile_site({"/a": html("<title>target</title>")}, host=ELSEWHERE) as there:
        async with hostile_site(hangs_up(moved(there.url("/a"), status))) as here:
            headers = {"Content-Type": "text/secret"}
            found = await send(tmp_path, here, method="POST", body=b"pin=secret", headers=headers)
            assert await found.complaints(here, {there.url("/a"): (State.DONE, "")}) == []
            told = await found.explain(here.url(HOSTILE), "POST", b"pin=secret")
            assert told is not None
            assert (told.state, told.code) == REDIRECTED
        assert head_of(there, "/a").startswith(b"GET /a HTTP/1.1\r\n")
        assert b"secret" not in b"".join(there.requests)
        assert b"Content-" not in head_of(there, "/a")


# Cookies, behind a proxy so that hosts may have real names


@asynccontextmanager
async def proxied(answers: Answers, name: str) -> AsyncIterator[tuple[Site, dict[str, Any]]]:
    """A site that plays the host of this name and all others, and the settings that lead there."""
    async with hostile_site(answers) as here:
        settings = {"proxy": here.url(""), "allow_net": ["127.0.0.0/8"], "per_host": 1}
        here.host, here.port = name, 80
        yield here, settings


@pytest.mark.parametrize(
    "domain",
    ["com", "uk", "co.uk", ".co.uk", "b.shop.co.uk", "p.co.uk", "evil.example", "127.0.0.1", "%63o.uk"],
)
async def test_a_cookie_for_a_foreign_domain_is_ignored(tmp_path: Path, domain: str) -> None:
    """D07: a host sets cookies for itself and its own domain, not for a public suffix, a sister or a stranger."""
    fields = ["own=1", "ours=2; Domain=shop.co.uk", f"evil=3; Path=/; Domain={domain}"]
    links = "".join(
        f'<a href="{url}">x</a>' for url in ("/own", "http://b.shop.co.uk/ours", "http://up.co.uk/none")
    )
    first = html(links, *(b"Set-Cookie: " + field.encode() for field in fields))
    answers = {HOSTILE: first, "/own": html(), "/ours": html(), "/none": html()}
    async with proxied(answers, "a.shop.co.uk") as (here, settings):
        found = await crawl_site(tmp_path, here, allow="*.co.uk", **settings)
        assert await found.wrongs(here) == []
        assert b"Cookie: own=1; ours=2\r\n" in head_of(here, "/own")
        assert b"Cookie: ours=2\r\n" in head_of(here, "/ours")
        assert b"Cookie" not in head_of(here, "/none")
        assert not any(b"evil" in head for head in here.requests)


async def test_cookies_without_end_are_bounded(tmp_path: Path) -> None:
    """D08: of hundreds of cookies, fat ones and illegal ones a host gets back 50 within 8 KiB, and the log stays quiet."""
    odd = [b"a b=1", b"a=\x01", b"=1", b"caf\xe9=1", b"fat=" + b"x" * 5000]
    answers = {HOSTILE: linking("/set/0", "/set/1", "/set/2"), "/after": html()}
    for n in range(3):
        many = [b"n%d-%d=%s; Path=/" % (n, m, b"y" * 200) for m in range(80)]
        answers[f"/set/{n}"] = html(
            '<a href="/after">x</a>', *(b"Set-Cookie: " + line for line in odd + many)
        )
    async with hostile_site(answers) as here:
        found = await crawl_site(tmp_path, here, per_host=1)
        assert await found.complaints(here, {here.url("/after"): (State.DONE, "")}) == []
        [sent] = [line for line in head_of(here, "/after").split(b"\r\n") if line.startswith(b"Cookie: ")]
    names = [pair.split(b"=")[0] for pair in sent.removeprefix(b"Cookie: ").split(b"; ")]
    assert 30 <= len(names) <= 50
    assert len(sent) <= 8192 + len(b"Cookie: ")
    assert all(name.startswith(b"n") for name in names)
    assert len(found.lines) < 5

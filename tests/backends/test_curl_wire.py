"""What goes over the wire through libcurl, and what is believed of what comes back."""

from __future__ import annotations

import asyncio
import gzip
import time
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pycurl
import pytest

from gossamer.backends.curl import CurlTransport
from gossamer.backends.curl.handle import Handle
from gossamer.ports.transport import Caps, Deadlines, Exchange, FetchError
from gossamer.testing.contracts.transport import Visit, always, ask, failing, once, page, site

OK = b"HTTP/1.1 200 OK\r\n"
GZIP = b"Content-Encoding: gzip"
SHORT = Deadlines(header=0.5, total=1)


@pytest.fixture
async def curl() -> AsyncIterator[CurlTransport]:
    async with CurlTransport() as transport:
        yield transport


ODD_PATHS = [
    "/a|b",
    "/a[b]",
    "/%zz",
    "/%c3%a9",
    "/%C3%A9",
    "/a^b",
    "/%00",
    "/a%0d%0aX: y".replace(" ", "%20"),
    "//a//b",
]
ODD_PATHS += [
    "/./a/../b",
    "/%2e%2e/",
    "/a;b=c",
    "/?a=b|c&d=[e]",
    "/?q='x'",
    "/?",
    "/%",
    "/~!$&'()*+,;=:@",
    "/" + "x" * 8000,
]


async def test_paths_go_out_byte_for_byte(curl: CurlTransport) -> None:
    """Odd but valid paths, and plain ones after them on the same handle, arrive as they were given."""
    async with site(page()) as here:
        for path in [*ODD_PATHS, "/plain"]:
            await curl.send(ask(here.url(path)))
    assert [head.split(b" ")[1].decode() for head in here.requests] == [*ODD_PATHS, "/plain"]
    assert here.connections == 1


@pytest.mark.parametrize(
    "url",
    [
        "http://a@b/",
        "http://a.example\\@b/",
        "http://a b/",
        "http://a/\r\nX: y",
        "http://\xe9/",
        "http://:80/",
        "http://a?b",
        "http://",
    ],
)
async def test_urls_that_two_parsers_could_read_differently_are_refused(
    curl: CurlTransport, url: str
) -> None:
    """Credentials, backslashes, blanks, line ends and missing hosts never reach libcurl's parser."""
    assert (await failing(curl, Exchange(url))).code == "url"


@pytest.mark.parametrize(
    "headers", [(("X-A", "b\r\nX-C: d"),), (("X A", "b"),), (("Host", "other"),), (("", "b"),)]
)
async def test_headers_can_not_be_smuggled_in(
    curl: CurlTransport, headers: tuple[tuple[str, str], ...]
) -> None:
    """Line ends in a value, names that are no tokens and fields of the transport are a programmer's error."""
    with pytest.raises(ValueError, match="header"):
        await curl.send(ask("http://127.0.0.1:1/", headers=headers))
    assert curl.statistics().open == 0


async def test_nothing_is_added_to_the_request(curl: CurlTransport) -> None:
    """Only Host and Accept-Encoding are sent beside the fields asked for."""
    async with site(page()) as here:
        await curl.send(ask(here.url()))
        await curl.send(ask(here.url(), headers=(("Accept", "text/html"), ("User-Agent", "me"))))
    names = [[line.split(b":")[0] for line in head.split(b"\r\n")[1:-2]] for head in here.requests]
    assert names == [[b"Host", b"Accept-Encoding"], [b"Host", b"Accept-Encoding", b"Accept", b"User-Agent"]]


FIRSTS = [{"http_version": "1.1"}, {"verify_tls": False}, {"method": "HEAD"}, {"caps": Caps(wire=9)}]


@pytest.mark.parametrize("first", FIRSTS)
async def test_a_fresh_handle_is_set_up_completely(curl: CurlTransport, first: dict[str, object]) -> None:
    """Whatever is unusual in the first exchange of a handle, it and the next one have their headers."""
    async with site(page(b"x", b"X-A: b")) as here:
        for changes in (first, {}):
            answer = await curl.send(ask(here.url(), **changes))
            assert (answer.status, answer.header("x-a")) == (200, "b")


async def test_a_handle_recovers_from_what_could_not_be_set(curl: CurlTransport) -> None:
    """An exchange that is refused while its handle is set up leaves nothing for the next one."""
    async with site(page()) as here:
        await curl.send(ask(here.url(), headers=(("X-A", "b"),)))
        with pytest.raises(ValueError, match="header"):
            await curl.send(ask(here.url(), method="PUT", body=b"x", headers=(("Host", "other"),)))
        assert (await curl.send(ask(here.url("/next")))).status == 200
    assert here.requests[1].startswith(b"GET /next HTTP/1.1\r\nHost: ")
    assert b"X-A" not in here.requests[1]


@pytest.mark.parametrize(
    ("method", "body"), [("PUT", b"x"), ("PATCH", b""), ("DELETE", None), ("OPTIONS", None), ("REPORT", b"x")]
)
async def test_any_method(curl: CurlTransport, method: str, body: bytes | None) -> None:
    """Methods go out as named, and a GET on the same handle is a GET again."""

    async def behave(visit: Visit) -> None:
        while head := await visit.request():
            await visit.reader.readexactly(1 if b"Content-Length: 1" in head else 0)
            await visit.say(page())

    async with site(behave) as here:
        await curl.send(ask(here.url(), method=method, body=body))
        await curl.send(ask(here.url(), method="HEAD"))
        await curl.send(ask(here.url()))
    assert [head.split(b" ")[0].decode() for head in here.requests] == [method, "HEAD", "GET"]


async def test_cookies_netrc_and_proxies_of_the_environment_are_ignored(
    curl: CurlTransport, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a cookie set by a site, nor ~/.netrc, nor http_proxy changes a request."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    async with site(page(b"x", b"Set-Cookie: a=b")) as here:
        for _ in range(2):
            await curl.send(ask(here.url()))
    assert not any(b"Cookie" in head or b"Authorization" in head for head in here.requests)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", "protocol"),
        (OK + b"Content-Length: 3, 5\r\n\r\nabcde", "protocol"),
        (OK + b"Content-Length: -3\r\n\r\nabc", "protocol"),
        (OK + b"Content-Length : 3\r\n\r\nabc", "protocol"),
        (OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "protocol"),
        (OK + b"no colon\r\nContent-Length: 3\r\n\r\nabc", "protocol"),
        (OK + b"X-A: b\0c\r\nContent-Length: 3\r\n\r\nabc", "protocol"),
        (b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", "protocol"),
        (b"HTTP/1.1 999 Denied\r\nContent-Length: 3\r\n\r\nabc", "protocol"),
        (b"HTTP/1.1 99 Low\r\nContent-Length: 3\r\n\r\nabc", "protocol"),
        (b"HTTP/7.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "protocol"),
        (b"ICY 200 OK\r\n\r\nabc", "protocol"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n", "protocol"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc\r\n", "protocol"),
        (OK + b"X: y\r\n", "incomplete"),
        (OK + b"".join(b"X-%d: y\r\n" % n for n in range(20_000)) + b"\r\n", "header_limit"),
        (OK + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n", "header_limit"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 2000 + b"\r\n", "header_limit"),
        (page(b"plain text", GZIP), "coding"),
        (page(gzip.compress(b"abc")[:-8] + b"12345678", GZIP), "coding"),
        (page(b"abc", b"Content-Encoding: rot13"), "coding"),
    ],
)  # fmt: skip
async def test_what_breaks_the_rules_is_refused(curl: CurlTransport, answer: bytes, code: str) -> None:
    """Framing that could be read in two ways, and headers without end, are errors; the connection is not used again."""
    async with site(once(answer)) as here:
        assert (await failing(curl, ask(here.url(), deadlines=SHORT))).code == code
        await failing(curl, ask(here.url(), deadlines=SHORT))
        assert here.connections == 2


async def test_a_storm_of_hints_ends(curl: CurlTransport) -> None:
    """Interim responses without end are cut off at the cap, not at a deadline."""

    async def storm(visit: Visit) -> None:
        await visit.request()
        while True:
            await visit.say(b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 5)
            await asyncio.sleep(0)

    async with site(storm) as here:
        error = await failing(curl, ask(here.url(), deadlines=Deadlines(header=5)))
    assert error.code == "header_limit"


@pytest.mark.parametrize(
    ("answer", "body", "truncated"),
    [
        (page(gzip.compress(b"abc") + b"\0" * 9, GZIP), b"abc", True),
        (page(gzip.compress(b"abc") + gzip.compress(b"def"), GZIP), b"abc", True),
        (page(gzip.compress(gzip.compress(b"abc")), b"Content-Encoding: gzip, gzip"), b"abc", False),
        (page(zlib.compress(b"abc")[2:-4], b"Content-Encoding: deflate"), b"abc", False),
        (page(zlib.compress(b"abc"), b"Content-Encoding: deflate"), b"abc", False),
        (page(b"abc", b"Content-Encoding: identity"), b"abc", False),
        (page(b"", GZIP), b"", False),
        (page(b"abc", b"X: folded\r\n  here"), b"abc", False),
        (b"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", b"abc", False),
        (OK + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
        (OK + b"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n", b"abc", False),
    ],
)  # fmt: skip
async def test_what_servers_really_send_is_accepted(
    curl: CurlTransport, answer: bytes, body: bytes, truncated: bool
) -> None:
    """Sloppy but clear answers are answers, and one whose tail can not be decoded says so."""
    async with site(once(answer)) as here:
        got = await curl.send(ask(here.url(), deadlines=SHORT))
    assert (got.status, got.body, got.truncated) == (200, body, truncated)


async def test_connections_are_used_again(curl: CurlTransport) -> None:
    """A site that keeps its connections open is dialled once."""
    async with site(page()) as here:
        for _ in range(5):
            await curl.send(ask(here.url()))
        assert here.connections == 1
    assert curl.statistics().connections_opened == 1


@pytest.mark.parametrize("surplus", [OK + b"Content-Length: 3\r\n\r\nabcdef", page(b"abc") + page(b"evil")])
async def test_surplus_bytes_never_answer_the_next_request(curl: CurlTransport, surplus: bytes) -> None:
    """What a server says beyond its answer is dropped together with the connection."""
    async with site(always(surplus)) as here:
        first = await curl.send(ask(here.url()))
        second = await curl.send(ask(here.url()))
    assert (first.body, second.body, here.connections) == (b"abc", b"abc", 2)


async def test_an_answer_that_nobody_asked_for_is_dropped(curl: CurlTransport) -> None:
    """A second answer that arrives while the connection is idle spoils it."""
    said = asyncio.Event()

    async def behave(visit: Visit) -> None:
        while await visit.request():
            await visit.say(page(b"abc"))
            await asyncio.sleep(0.02)
            await visit.say(page(b"evil"))
            said.set()

    async with site(behave) as here:
        await curl.send(ask(here.url()))
        await said.wait()
        await asyncio.sleep(0.01)
        assert (await curl.send(ask(here.url()))).body == b"abc"
        assert here.connections == 2


async def test_a_site_that_closes_idle_connections_is_dialled_again(curl: CurlTransport) -> None:
    """A connection closed while it was idle costs no exchange."""
    async with site(once(page(b"abc"))) as here:
        for _ in range(3):
            assert (await curl.send(ask(here.url()))).body == b"abc"


async def test_a_site_that_hangs_up_on_every_second_request(curl: CurlTransport) -> None:
    """However many pooled connections turn out dead, a GET gets its answer over a new one, and a POST is not repeated."""
    hang_up = False

    async def behave(visit: Visit) -> None:
        await visit.request()
        await visit.say(page(b"abc"))
        if await visit.request() and hang_up:
            visit.reset()

    async with site(behave) as here:
        for hang_up in (False, True):
            exchanges = [curl.send(ask(here.url())) for _ in range(20)]
            answers = await asyncio.gather(*exchanges) if not hang_up else [await one for one in exchanges]
            assert [answer.body for answer in answers] == [b"abc"] * 20
        await curl.send(ask(here.url(), method="POST", body=b"x"))
        assert sum(head.startswith(b"POST") for head in here.requests) == 1


@pytest.mark.parametrize("gap", [0.0, 0.3])
async def test_a_request_is_not_sent_again_before_its_gap(curl: CurlTransport, gap: float) -> None:
    """A site that hangs up on a kept connection may have seen the request: it gets its pause before the next one."""
    asked: list[float] = []

    async def behaviour(visit: Visit) -> None:
        if await visit.request():
            asked.append(time.monotonic())
            await visit.say(page(b"first on its connection"))
        if await visit.request():
            asked.append(time.monotonic())
            visit.reset()

    async with site(behaviour) as here:
        for _ in range(2):
            answer = await curl.send(ask(here.url(), gap=gap))
            assert answer.body == b"first on its connection"
        assert len(asked) == 3
        assert asked[2] - asked[1] >= gap - 0.01
        assert answer.seconds < 1


async def test_an_exchange_begins_again_a_few_times_at_most(
    curl: CurlTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A site that refuses each attempt without an answer costs a bounded number of requests, and then an attempt of the page."""
    monkeypatch.setattr(Handle, "_on_send", _refused)
    async with site(page()) as here:
        error = await failing(curl, ask(here.url(), gap=0.01))
    assert error.code == "reset"
    assert here.connections <= 4


def _refused(handle: Handle, ip: str, local_ip: str, port: int, local_port: int) -> int:
    handle.again = True
    return int(pycurl.PREREQFUNC_ABORT)


async def test_the_wire_cap_may_be_the_tighter_one(curl: CurlTransport) -> None:
    """A body within the decoded cap is still refused when it has too many bytes on the wire, also without an end."""
    async with site(page(b"x" * 5000)) as here:
        assert (await failing(curl, ask(here.url(), caps=Caps(wire=4999)))).code == "too_large"

    async def endless(visit: Visit) -> None:
        await visit.request()
        await visit.say(OK + b"\r\n")
        while True:
            await visit.say(b"x" * 500)
            await asyncio.sleep(0.01)

    async with site(endless) as here:
        assert (await failing(curl, ask(here.url(), caps=Caps(wire=4999)))).code == "too_large"


async def test_a_transport_outside_its_block_says_so() -> None:
    """Sending before opening or after closing is a programmer's error."""
    curl = CurlTransport()
    with pytest.raises(RuntimeError, match="async with"):
        await curl.send(ask("http://127.0.0.1/"))
    async with curl:
        pass
    with pytest.raises(RuntimeError, match="async with"):
        await curl.send(ask("http://127.0.0.1/"))


async def test_http_3_is_asked_for_only_where_it_is_built_in(curl: CurlTransport) -> None:
    """An exchange over HTTP/3 to a TCP-only port fails by a code, not by an exception of the driver."""
    async with site(page()) as here:
        with pytest.raises(FetchError):
            await curl.send(
                ask(here.url().replace("http:", "https:"), http_version="3", deadlines=Deadlines(connect=0.5))
            )

"""Servers that do not answer as they should: rows S01 to S22 of the bad-input catalogue, through the whole engine."""

from __future__ import annotations

import asyncio
import gzip
import random
import sys
import zlib
from pathlib import Path

import brotli
import pytest
from hostile_crawl import crawl, crawl_site
from hostile_origin import (
    CHUNKED,
    GOOD,
    HOSTILE,
    HTML,
    OK,
    Misbehaviour,
    asked,
    goes_on,
    goes_silent,
    hangs_up,
    hostile_site,
    html,
    in_turn,
    page,
    resets,
    zipped,
)

from gossamer.model.record import State
from gossamer.testing.contracts.transport import Visit

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZEROS = b"\0" * 20_000_000
BOMB = gzip.compress(ZEROS)
CAPTION = "<title>the page</title>"
WORDS = CAPTION + "the same words again and again " * 200
LONG = CAPTION.encode() + random.Random(7).randbytes(9_000).hex().encode()
FIELDS = b"".join(b"X-%d: y\r\n" % n for n in range(100_000))
HINT = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
FRAMED = OK + b"Content-Length: 3\r\n"


def coded(body: bytes, *codings: bytes) -> bytes:
    """A page that says it is encoded so."""
    return page(body, HTML, *(b"Content-Encoding: " + coding for coding in codings))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(goes_silent(), "timeout_header", id="S01 never answers"),
        pytest.param(goes_on(OK + b"X: ", b"y", 0.02), "timeout_header", id="S02 headers drip"),
        pytest.param(goes_on(b"", HINT, 0.2), "timeout_header", id="S02 hints drip"),
        pytest.param(goes_on(OK + b"\r\n", b"y", 0.02), "timeout_total", id="S03 body drips"),
        pytest.param(goes_on(CHUNKED, b"1\r\ny\r\n", 0.02), "timeout_total", id="S03 chunks drip"),
        pytest.param(
            goes_on(CHUNKED + b"5;", b"x" * 999), "timeout_total", id="S05 a chunk's extension without end"
        ),
    ],
)
async def test_who_takes_for_ever_is_left(tmp_path: Path, answer: Misbehaviour, code: str) -> None:
    """A site that never ends its headers or its body costs its own page alone, and no more time than the deadlines."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here, header_timeout=0.5, timeout=0.8)
        assert await found.wrongs(here, State.FAILED, code) == []
    assert found.ending.seconds < 2.5


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(hangs_up(OK + b"Content-Length: 10000000000000\r\n\r\nabc"), "too_large", id="S04 10 TB"),
        pytest.param(hangs_up(OK + b"Content-Length: 199999\r\n\r\nabc"), "incomplete", id="S04 length in the cap"),
        pytest.param(goes_on(CHUNKED, b"fff\r\n" + b"x" * 4095 + b"\r\n"), "too_large", id="S05 endless chunks"),
        pytest.param(goes_on(OK + b"\r\n", b"x" * 4096), "too_large", id="S05 endless until close"),
        pytest.param(hangs_up(CHUNKED + b"5\r\nhello\r\n"), "incomplete", id="S06 no last chunk"),
        pytest.param(coded(BOMB, b"gzip"), "too_large", id="S07 gzip bomb"),
        pytest.param(coded(gzip.compress(BOMB), b"gzip, gzip"), "too_large", id="S07 bomb in a bomb"),
        pytest.param(coded(zlib.compress(ZEROS), b"deflate"), "too_large", id="S07 deflate bomb"),
        pytest.param(coded(brotli.compress(ZEROS, quality=1), b"br"), "too_large", id="S08 brotli bomb"),
        pytest.param(coded(zstd.compress(ZEROS), b"zstd"), "too_large", id="S08 zstd bomb"),
        pytest.param(coded(b"x", b", ".join([b"gzip"] * 50)), "coding", id="S09 50 codings"),
        pytest.param(coded(b"x", *[b"br"] * 50), "coding", id="S09 50 codings in 50 fields"),
        pytest.param(zipped(ZEROS, status=b"302 Found"), "too_large", id="S10 bomb behind a 302"),
        pytest.param(zipped(ZEROS, status=b"404 Not Found"), "too_large", id="S10 bomb behind a 404"),
        pytest.param(coded(b"plain text", b"gzip"), "coding", id="S11 plain for gzip"),
        pytest.param(coded(gzip.compress(b"abc")[:-8] + b"12345678", b"gzip"), "coding", id="S11 wrong checksum"),
        pytest.param(coded(b"\xff" * 500, b"br"), "coding", id="S11 garbage for brotli"),
        pytest.param(coded(b"abc", b"rot13"), "coding", id="S11 unknown coding"),
        pytest.param(OK + FIELDS + b"\r\n", "header_limit", id="S12 100,000 fields"),
        pytest.param(goes_on(OK, b"X: y\r\n" * 50), "header_limit", id="S12 fields without end"),
        pytest.param(OK + b"X: " + b"y" * 10_000_000 + b"\r\n\r\n", "header_limit", id="S12 10 MB in a field"),
        pytest.param(goes_on(CHUNKED + b"0\r\n", b"X: y\r\n" * 50), "header_limit", id="S13 trailers without end"),
        pytest.param(goes_on(b"", HINT * 20), "header_limit", id="S14 hints without end"),
        pytest.param(goes_on(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 20), "header_limit", id="S14 100 without end"),
    ],
)  # fmt: skip
async def test_what_is_too_much_ends_with_its_cause(
    tmp_path: Path, answer: bytes | Misbehaviour, code: str
) -> None:
    """Bodies, codings and headers beyond the caps, or cut short, are FAILED by their own code and never a page."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here, State.FAILED, code) == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(hangs_up(b"<html>no status line</html>"), id="HTTP 0.9"),
        pytest.param(hangs_up(b"\x16\x03\x01\x02\x00 not for you"), id="garbage"),
        pytest.param(b"HTTP/1.1 999 Denied\r\nContent-Length: 3\r\n\r\nabc", id="status 999"),
        pytest.param(b"HTTP/1.1 -20 OK\r\nContent-Length: 3\r\n\r\nabc", id="status -20"),
        pytest.param(b"HTTP/1.1 2\xb20 OK\r\nContent-Length: 3\r\n\r\nabc", id="a status of odd digits"),
        pytest.param(b"HTTP/1.1 2000 OK\r\nContent-Length: 3\r\n\r\nabc", id="a status of four digits"),
        pytest.param(
            hangs_up(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nabc"), id="a switch of protocols"
        ),
        pytest.param(hangs_up(CHUNKED + b"3\r\nabcXX0\r\n\r\n"), id="a chunk longer than it says"),
        pytest.param(b"HTTP/9.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", id="HTTP 9"),
        pytest.param(OK + b"Content-Length: 3\r\nContent-Length: 5\r\n\r\nabcde", id="two lengths"),
        pytest.param(OK + b"Content-Length: 3, 5\r\n\r\nabcde", id="two lengths in one"),
        pytest.param(OK + b"Content-Length: +3\r\n\r\nabc", id="length with a sign"),
        pytest.param(OK + b"Content-Length: -3\r\n\r\nabc", id="negative length"),
        pytest.param(OK + b"Content-Length: 0x3\r\n\r\nabc", id="length in hex"),
        pytest.param(OK + b"Content-Length : 3\r\n\r\nabc", id="blank before the colon"),
        pytest.param(
            FRAMED + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", id="length and chunks"
        ),
        pytest.param(FRAMED + b" Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="framing in a folded line"),
        pytest.param(FRAMED + b"no colon\r\n\r\nabc", id="no colon"),
        pytest.param(FRAMED + b"X: a\0b\r\n\r\nabc", id="NUL in a field"),
        pytest.param(FRAMED + b"X: a\rSet-Cookie: b=c\r\n\r\nabc", id="bare CR in a field"),
        pytest.param(b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", id="bare LF"),
        pytest.param(hangs_up(CHUNKED + b"zz\r\nabc\r\n0\r\n\r\n"), id="a chunk of size zz"),
        pytest.param(hangs_up(CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n"), id="a chunk of negative size"),
        pytest.param(hangs_up(CHUNKED + b"fffffffffffffffff\r\nabc\r\n"), id="a chunk of enormous size"),
    ],
)
async def test_what_is_not_http_is_a_breach_of_protocol(tmp_path: Path, answer: bytes | Misbehaviour) -> None:
    """S15: answers that two parsers could read in two ways are FAILED(protocol), and none of them is an item."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here, State.FAILED, "protocol") == []
        assert here.url(HOSTILE) not in [item["url"] for item in found.items]


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        pytest.param(FRAMED + b"\r\nabcdef", None, id="S06 body longer than declared"),
        pytest.param(html(CAPTION) + html("<title>evil</title>"), "the page", id="S16 second answer"),
        pytest.param(coded(gzip.compress(WORDS.encode()) + b"\0" * 99, b"gzip"), "the page", id="S11 tail of zeros"),
        pytest.param(coded(gzip.compress(WORDS.encode()) + b"junk", b"gzip"), "the page", id="S11 garbage tail"),
        pytest.param(coded(gzip.compress(CAPTION.encode()) * 2, b"gzip"), "the page", id="S11 two members"),
        pytest.param(page(CAPTION.encode(), HTML, b"X: folded\r\n\there"), "the page", id="S15 folded field"),
        pytest.param(page(CAPTION.encode(), HTML, b"Content-Length: %d" % len(CAPTION)), "the page", id="S15 length said twice"),
        pytest.param(html(""), None, id="S19 empty"),
        pytest.param(html(" \r\n\t\n" * 99), None, id="S19 blanks"),
        pytest.param(html("<!-- nothing -->"), None, id="S19 only a comment"),
        pytest.param(html("<!-- never ends" + "-" * 9999), None, id="S19 a comment without end"),
        pytest.param(page(b"", HTML, status=b"204 No Content"), None, id="S19 204"),
        pytest.param(b"HTTP/1.1 204 No Content\r\nContent-Length: 5000\r\n\r\n", None, id="S19 204 with a length"),
        pytest.param(page(CAPTION.encode(), HTML, b"Referrer-Policy: os.system"), "the page", id="D13 Referrer-Policy"),
    ],
)  # fmt: skip
async def test_what_is_sloppy_but_clear_is_a_page(tmp_path: Path, answer: bytes, title: str | None) -> None:
    """Odd answers with one meaning end DONE with what they hold; what follows them is not the answer to the next page."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here, per_host=1)
        assert await found.wrongs(here) == []
        assert found.item(here.url(HOSTILE))["title"] == title


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(coded(gzip.compress(LONG)[:-4000], b"gzip"), id="gzip"),
        pytest.param(coded(gzip.compress(LONG)[:10], b"gzip"), id="only the head of gzip"),
        pytest.param(coded(zlib.compress(LONG)[:-4000], b"deflate"), id="deflate"),
        pytest.param(coded(brotli.compress(LONG)[:-4000], b"br"), id="brotli"),
        pytest.param(coded(zstd.compress(LONG)[:-4000], b"zstd"), id="zstd"),
    ],
)
async def test_half_of_a_coded_body_is_not_taken_for_all_of_it(tmp_path: Path, answer: bytes) -> None:
    """S06, S11: where the coded data breaks off its page is DONE with what came, and counted: never silently."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here) == []
        assert (await found.counters())["truncated"] == 1


async def test_trailers_are_no_headers(tmp_path: Path) -> None:
    """S13: fields behind the body neither set cookies nor redirect, also where there is no body."""
    fields = b"0\r\nSet-Cookie: evil=1; Path=/\r\nLocation: /evil\r\nContent-Length: 3\r\n\r\n"
    answers = {HOSTILE: CHUNKED + fields, "/too": CHUNKED + b"3\r\nabc\r\n" + fields}
    async with hostile_site(answers) as here:
        urls = [here.url(path) for path in (HOSTILE, "/too", *GOOD)]
        found = await crawl(tmp_path, urls, per_host=1)
        assert await found.complaints(here, dict.fromkeys(urls[:2], (State.DONE, ""))) == []
        assert not any(b"evil" in head for head in here.requests)


@pytest.mark.parametrize(
    ("answer", "state", "code"),
    [
        pytest.param(page(b"part", status=b"206 Partial Content"), State.FAILED, "http_206", id="206"),
        pytest.param(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n", State.DONE, "http_304", id="304"),
        pytest.param(page(b"moved", status=b"300 Multiple Choices"), State.DONE, "http_300", id="300"),
        pytest.param(page(b"x", status=b"451 Unavailable"), State.DONE, "http_451", id="451"),
        pytest.param(page(b"x", status=b"520 Odd"), State.FAILED, "http_520", id="520"),
    ],
)  # fmt: skip
async def test_statuses_that_nobody_asked_for(tmp_path: Path, answer: bytes, state: State, code: str) -> None:
    """S19: a part, a 304 with a length and rare statuses end at once with the status as their code, without an item."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here, state, code) == []
        assert len(found.items) == 3


@pytest.mark.parametrize(
    ("breaks", "code"),
    [
        pytest.param(resets(OK + b"Content-Length: 9999\r\n\r\nabc"), "reset", id="reset in the body"),
        pytest.param(resets(), "reset", id="reset before the headers"),
        pytest.param(hangs_up(), "incomplete", id="closed before the headers"),
        pytest.param(hangs_up(OK + b"X: y\r\n"), "incomplete", id="closed in the headers"),
    ],
)
async def test_broken_connections_are_tried_again_and_never_a_page(
    tmp_path: Path, breaks: Misbehaviour, code: str
) -> None:
    """S17: a page whose connection breaks every time burns its retries, one by one, and then is FAILED."""
    async with hostile_site(breaks) as here:
        found = await crawl_site(tmp_path, here, retries=2)
        assert await found.wrongs(here, State.FAILED, code) == []
        told = await found.explain(here.url(HOSTILE))
        assert told is not None
        assert told.retries == 2
        assert asked(here)[HOSTILE] >= 3  # and once more for each idle connection that it broke


@pytest.mark.parametrize("status", [b"500 Oops", b"503 Later", b"408 Slow", b"425 Early"])
async def test_who_recovers_is_done_once(tmp_path: Path, status: bytes) -> None:
    """S22: two failures and then a page is one DONE record with one item after three attempts."""
    bad = page(b"no", b"Connection: close", status=status)
    async with hostile_site(in_turn(bad, bad, html(CAPTION, b"Connection: close"))) as here:
        found = await crawl_site(tmp_path, here, retries=4)
        assert await found.wrongs(here) == []
        assert found.item(here.url(HOSTILE))["title"] == "the page"
        told = await found.explain(here.url(HOSTILE))
        assert told is not None
        assert (told.retries, asked(here)[HOSTILE]) == (2, 3)


async def test_an_answer_in_the_idle_time_is_not_the_next_page(tmp_path: Path) -> None:
    """S16: what a site says unasked on an idle connection is dropped with it, and every page has its own title."""

    async def says_more(visit: Visit) -> None:
        await visit.say(html(CAPTION))
        await asyncio.sleep(0.05)
        await visit.say(html("<title>evil</title>") * 3)
        await visit.left()

    async with hostile_site(says_more) as here:
        found = await crawl_site(tmp_path, here, per_host=1, delay=0.1)
        assert await found.wrongs(here) == []
        assert "evil" not in [item["title"] for item in found.items]

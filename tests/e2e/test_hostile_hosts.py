"""Hosts that cannot be trusted as a whole: waiting times (S20, S22), TLS (S17, S18) and HTTP/2 (S21)."""

from __future__ import annotations

import ssl
import subprocess
import warnings
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import Crawl, crawl
from hostile_origin import GOOD, HOSTILE, OK, Misbehaviour, asked, goes_on, hostile_site, html, page

from gossamer.model.record import State
from gossamer.testing.contracts.transport import Site, Visit, always, site
from gossamer.testing.web.certificate import server_tls, write_certificate

ELSEWHERE = "127.0.0.2"  # hostile hosts have an address of their own, so that their parking is theirs alone
SETTINGS: dict[str, Any] = {"private_hosts": ["127.0.0.1", ELSEWHERE], "host_patience": 0.3}


async def crawl_both(folder: Path, good: Site, bad: Site, **settings: Any) -> Crawl:
    """The hostile page of the one host and the good pages of the other, in one crawl."""
    urls = [bad.url(HOSTILE), *(good.url(path) for path in GOOD)]
    return await crawl(folder, urls, **{**SETTINGS, **settings})


def wait(status: bytes, retry_after: str) -> bytes:
    return page(b"later", b"Retry-After: " + retry_after.encode("latin-1"), status=status)


@pytest.mark.parametrize("asks", ["1000000000", "99999999999999999999", "4000", formatdate(9e9, usegmt=True)])
@pytest.mark.parametrize("status", [b"429 Too Many Requests", b"503 Later"])
async def test_an_absurd_wait_is_clamped_to_an_hour(tmp_path: Path, status: bytes, asks: str) -> None:
    """S20: Retry-After of thirty years parks the host for an hour, in its stored row, and nobody else waits for it."""
    async with hostile_site({}) as good, hostile_site(wait(status, asks), host=ELSEWHERE) as bad:
        found = await crawl_both(tmp_path, good, bad, max_minutes=0.005, retries=4)
        cancelled = {bad.url(HOSTILE): (State.CANCELLED, "max_minutes")}
        assert await found.complaints(good, cancelled) == []
        told = await found.explain(bad.url(HOSTILE))
        assert told is not None
        assert 3500 < told.host.parked_for <= 3600
        assert (told.retries, asked(bad)[HOSTILE]) == (0, 1)


@pytest.mark.parametrize(
    "asks",
    ["-5", "abc", "0", "", "1.5", "0x9", "9" * 5000, formatdate(0, usegmt=True), "Sun, 99 Nov 0 99:99:99"],
)
async def test_a_wait_that_means_nothing_does_not_undo_the_parking(tmp_path: Path, asks: str) -> None:
    """S20, S22: 429 to every request burns no attempt, parks the host, and ends with its patience, not before."""
    always = wait(b"429 Too Many Requests", asks)
    async with hostile_site({}) as good, hostile_site(always, host=ELSEWHERE) as bad:
        found = await crawl_both(tmp_path, good, bad)
        assert await found.complaints(good, {bad.url(HOSTILE): (State.FAILED, "http_429")}) == []
        told = await found.explain(bad.url(HOSTILE))
        assert told is not None
        assert told.retries == 0
        assert asked(bad)[HOSTILE] == 2
    assert found.ending.seconds >= SETTINGS["host_patience"]


# TLS


def expired(folder: Path) -> ssl.SSLContext:
    """A certificate for the right address that ran out, and its key."""
    make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=old -keyout key.pem -out new.pem"
    age = "openssl x509 -in new.pem -signkey key.pem -days -1 -out ca.pem"
    for words in ([*make.split(), "-addext", f"subjectAltName=IP:{ELSEWHERE}"], age.split()):
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


def old_tls() -> ssl.SSLContext:
    context = server_tls()
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(action="ignore"):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    return context


async def in_the_clear(visit: Visit) -> None:
    """Answers whatever is said with a page without TLS."""
    await visit.reader.read(1)
    await visit.say(html("<title>trust me</title>"))


@pytest.mark.parametrize("kind", ["unknown issuer", "wrong name", "expired", "TLS 1.1", "no TLS"])
@pytest.mark.parametrize("robots", [True, False])
async def test_tls_that_proves_nothing_is_refused(tmp_path: Path, kind: str, robots: bool) -> None:
    """S18: the host's pages are FAILED(tls), whether robots.txt or a page meets it first, and no request is sent."""
    trust = {"ca_file": str(write_certificate(tmp_path))}
    address, behaviour, tls = ELSEWHERE, always(html()), server_tls()
    match kind:
        case "unknown issuer":
            trust = {}
        case "wrong name":
            address = "127.0.0.77"
        case "expired":
            tls = expired(tmp_path)
        case "TLS 1.1":
            tls = old_tls()
        case "no TLS":
            behaviour, tls = in_the_clear, None
    async with hostile_site({}) as good, site(behaviour, host=address, tls=tls) as bad:
        bad.scheme = "https"
        settings = {"robots": robots, "private_hosts": ["127.0.0.1", address], **trust}
        found = await crawl_both(tmp_path, good, bad, **settings)
        assert await found.complaints(good, {bad.url(HOSTILE): (State.FAILED, "tls")}) == []
        assert bad.requests == []


async def test_verification_is_given_up_only_in_so_many_words(tmp_path: Path) -> None:
    """S18: with `verify_tls` off the page of an unknown issuer is DONE, and the choice is kept with the task."""
    async with (
        hostile_site({}) as good,
        hostile_site(html("<title>?</title>"), host=ELSEWHERE, tls=server_tls()) as bad,
    ):
        found = await crawl_both(tmp_path, good, bad, verify_tls=False)
        assert await found.complaints(good, {bad.url(HOSTILE): (State.DONE, "")}) == []
        assert found.item(bad.url(HOSTILE))["title"] == "?"
    assert b'"verify_tls":false' in await found.settings()


async def test_a_tls_connection_that_just_ends_is_not_the_end_of_a_page(tmp_path: Path) -> None:
    """S17: a body of unknown length that is cut off without TLS's own farewell is FAILED, not half a page."""

    async def cut(visit: Visit) -> None:
        await visit.say(OK + b"\r\n<title>half a page")
        visit.writer.transport.abort()

    trust = {"ca_file": str(write_certificate(tmp_path))}
    async with hostile_site({}) as good, hostile_site(cut, host=ELSEWHERE, tls=server_tls()) as bad:
        found = await crawl_both(tmp_path, good, bad, **trust)
        assert await found.complaints(good, {bad.url(HOSTILE): (State.FAILED, "reset")}) == []


# HTTP/2

HEADERS, RESET, TERMS, PING, GO_AWAY, CONTINUATION = 1, 3, 4, 6, 7, 9
END_HEADERS = 4
STATUS_200 = b"\x88"  # the eighth entry of the static table
LONG_FIELD = (
    b"\x40\x01a\x7f\xa1\x1e" + b"x" * 4000
)  # goes into the dynamic table, where one byte stands for it
BEGUN = (HEADERS, 0, 1, STATUS_200)


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


def speaking_http_2(said: bytes, for_ever: bytes) -> Misbehaviour:
    async def behave(visit: Visit) -> None:
        await visit.reader.readexactly(24)
        await visit.say(frame(TERMS, 0, 0, b"") + said)
        if for_ever:
            await goes_on(b"", for_ever * 50, 0.001)(visit)
        await visit.left()

    return behave


@pytest.mark.parametrize(
    ("said", "for_ever", "codes"),
    [
        pytest.param(frame(*BEGUN), frame(CONTINUATION, 0, 1, b"\x40\x01a\x01b" * 2000), {"header_limit", "protocol", "reset"}, id="continuations"),
        pytest.param(frame(*BEGUN), frame(CONTINUATION, 0, 1, b""), {"protocol", "reset"}, id="empty continuations"),
        pytest.param(frame(*BEGUN) + frame(RESET, 0, 1, b"\0\0\0\x02"), b"", {"protocol", "reset"}, id="reset"),
        pytest.param(frame(GO_AWAY, 0, 0, b"\0\0\0\0\0\0\0\x0b"), b"", {"protocol", "reset"}, id="go away"),
        pytest.param(b"", frame(RESET, 0, 1, b"\0\0\0\x08"), {"protocol", "reset"}, id="resets"),
        pytest.param(b"", frame(PING, 0, 0, b"12345678"), {"timeout_header", "protocol"}, id="pings"),
        pytest.param(b"", frame(TERMS, 0, 0, b""), {"timeout_header", "protocol"}, id="settings"),
        pytest.param(frame(HEADERS, END_HEADERS, 1, STATUS_200 + LONG_FIELD + b"\xbe" * 12_000), b"", {"header_limit"}, id="HPACK bomb"),
        pytest.param(b"what is this?" * 9, b"", {"protocol"}, id="no frames"),
    ],
)  # fmt: skip
async def test_http_2_that_breaks_its_rules(
    tmp_path: Path, said: bytes, for_ever: bytes, codes: set[str]
) -> None:
    """S21: floods, bombs and resets end their own page, soon."""
    trust = {"ca_file": str(write_certificate(tmp_path))}
    tls = server_tls()
    tls.set_alpn_protocols(["h2"])
    async with (
        hostile_site({}) as good,
        site(speaking_http_2(said, for_ever), host=ELSEWHERE, tls=tls) as bad,
    ):
        found = await crawl_both(tmp_path, good, bad, robots=False, header_timeout=0.5, **trust)
        assert await found.complaints(good, {}) == []
        state, code = await found.ended(bad.url(HOSTILE)) or (None, "")
        assert state is State.FAILED
        assert code in codes

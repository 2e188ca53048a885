"""TLS and HTTP/2 through libcurl."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gossamer.backends.curl import CurlTransport
from gossamer.backends.curl.trust import find_ca_file
from gossamer.ports.transport import Deadlines
from gossamer.testing.contracts.transport import Visit, ask, failing, page, site

COMMAND = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=test -keyout key.pem -out cert.pem"


def certificate(folder: Path, names: str, days: int = 30) -> Path:
    """A throw-away certificate; the file holds its key too."""
    command = [*COMMAND.split(), "-days", "30", "-addext", f"subjectAltName={names}"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    if days < 0:  # `req` makes no past, `x509` does
        again = f"openssl x509 -in cert.pem -signkey key.pem -days {days} -out cert.pem"
        subprocess.run(again.split(), cwd=folder, check=True, capture_output=True)
    both = folder / "both.pem"
    both.write_bytes((folder / "cert.pem").read_bytes() + (folder / "key.pem").read_bytes())
    return both


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("good"), "IP:127.0.0.1", 30)


@pytest.fixture(scope="module")
def misnamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("other"), "DNS:other.example", 30)


@pytest.fixture(scope="module")
def expired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certificate(tmp_path_factory.mktemp("old"), "IP:127.0.0.1", -1)


def server(chain: Path, *alpn: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    if alpn:
        context.set_alpn_protocols(alpn)
    return context


@pytest.fixture
async def trusting(good: Path) -> AsyncIterator[CurlTransport]:
    async with CurlTransport(ca_file=good) as transport:
        yield transport


async def test_a_trusted_certificate(trusting: CurlTransport, good: Path) -> None:
    """With the right authority the page arrives, and the connection is used again."""
    async with site(page(b"safe"), tls=server(good)) as here:
        for _ in range(3):
            assert (await trusting.send(ask(here.url()))).body == b"safe"
        assert here.connections == 1


async def test_an_unknown_authority_is_refused(good: Path) -> None:
    """A self-signed certificate is refused unless the exchange says otherwise, and its connection is not shared."""
    async with CurlTransport() as curl, site(page(b"?"), tls=server(good)) as here:
        error = await failing(curl, ask(here.url()))
        assert error.code == "tls"
        assert "certificate" in error.detail
        assert (await curl.send(ask(here.url(), verify_tls=False))).body == b"?"
        assert (await failing(curl, ask(here.url()))).code == "tls"
        assert len(here.requests) == 1


@pytest.mark.parametrize("kind", ["misnamed", "expired"])
async def test_a_wrong_certificate_is_refused(kind: str, request: pytest.FixtureRequest) -> None:
    """A certificate for another name, or one that ran out, is refused although its issuer is trusted."""
    chain = request.getfixturevalue(kind)
    async with CurlTransport(ca_file=chain) as curl, site(page(), tls=server(chain)) as here:
        assert (await failing(curl, ask(here.url()))).code == "tls"
        assert here.requests == []


async def test_old_tls_is_refused(trusting: CurlTransport, good: Path) -> None:
    """TLS 1.1 is not spoken."""
    context = server(good)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLS"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with site(page(), tls=context) as here:
        assert (await failing(trusting, ask(here.url()))).code == "tls"


async def test_no_tls_where_it_was_expected(trusting: CurlTransport) -> None:
    """An answer in the clear to a TLS greeting is an error of TLS; silence is one of connecting."""
    async with site(page()) as here:

        async def plain(visit: Visit) -> None:
            await visit.reader.read(1)
            await visit.say(page())

        here._behaviour = plain
        url = here.url().replace("http:", "https:")
        assert (await failing(trusting, ask(url))).code == "tls"

        async def silent(visit: Visit) -> None:
            await visit.left()

        here._behaviour = silent
        assert (await failing(trusting, ask(url, deadlines=Deadlines(connect=0.2)))).code == "timeout_connect"


async def test_an_end_without_a_notice_is_not_an_end(trusting: CurlTransport, good: Path) -> None:
    """A body of unknown length that ends by a broken TLS connection may be cut short, and is refused."""

    async def cut(visit: Visit) -> None:
        await visit.request()
        await visit.say(b"HTTP/1.1 200 OK\r\n\r\nhalf a page")
        await asyncio.sleep(0.05)
        visit.writer.transport.abort()

    async with site(cut, tls=server(good)) as here:
        assert (await failing(trusting, ask(here.url()))).code in ("reset", "incomplete", "tls")


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


async def speak_http_2(visit: Visit) -> None:
    """Answer every request with status 200 and its stream's number, in as few frames as HTTP/2 allows."""
    await visit.reader.readexactly(24)
    await visit.say(frame(4, 0, 0, b""))
    while True:
        head = await visit.reader.readexactly(9)
        await visit.reader.readexactly(int.from_bytes(head[:3], "big"))
        stream = int.from_bytes(head[5:], "big")
        if head[3] == 1:
            await visit.say(frame(1, 4, stream, b"\x88") + frame(0, 1, stream, b"stream %d" % stream))
        elif head[3] == 4 and not head[4] & 1:
            await visit.say(frame(4, 1, 0, b""))


async def test_http_2_is_spoken_where_it_is_offered(trusting: CurlTransport, good: Path) -> None:
    """By ALPN a site gets HTTP/2, on one connection, unless the exchange asks for 1.1."""
    async with site(speak_http_2, tls=server(good, "h2")) as here:
        first = await trusting.send(ask(here.url()))
        second = await trusting.send(ask(here.url()))
        assert [(a.http_version, a.status, a.body) for a in (first, second)] == [
            ("2", 200, b"stream 1"),
            ("2", 200, b"stream 3"),
        ]
        assert here.connections == 1
    async with site(page(), tls=server(good, "h2", "http/1.1")) as here:
        assert (await trusting.send(ask(here.url(), http_version="1.1"))).http_version == "1.1"


async def test_http_2_streams_that_break(trusting: CurlTransport, good: Path) -> None:
    """A stream that is reset, a flood of continuations and bytes that are no frames end in an error, soon."""

    said = [
        frame(1, 0, 1, b"\x88") + frame(3, 0, 1, b"\0\0\0\x02"),
        frame(1, 0, 1, b"\x88") + frame(9, 0, 1, b"\x40\x01a\x01b" * 2000) * 200,
        b"what is this?" * 9,
    ]

    async def behave(visit: Visit) -> None:
        await visit.reader.readexactly(24)
        await visit.say(frame(4, 0, 0, b"") + said[here.connections - 1])
        await visit.left()

    async with site(behave, tls=server(good, "h2")) as here:
        for _ in said:
            error = await failing(trusting, ask(here.url(), deadlines=Deadlines(header=2)))
            assert error.code in ("protocol", "reset", "incomplete", "header_limit")


def test_the_bundle_is_found(monkeypatch: pytest.MonkeyPatch, good: Path) -> None:
    """The one asked for comes first, then SSL_CERT_FILE, then the system's or certifi's; a wrong name is an error."""
    monkeypatch.setenv("SSL_CERT_FILE", str(good))
    assert find_ca_file() == str(good)
    assert find_ca_file("/dev/../etc/hosts") == "/dev/../etc/hosts"
    monkeypatch.setenv("SSL_CERT_FILE", "/not/there.pem")
    with pytest.raises(FileNotFoundError, match="SSL_CERT_FILE"):
        find_ca_file()
    with pytest.raises(FileNotFoundError, match="ca_file"):
        find_ca_file("/nor/there.pem")
    monkeypatch.delenv("SSL_CERT_FILE")
    assert Path(find_ca_file()).is_file()
    monkeypatch.setattr("gossamer.backends.curl.trust._SYSTEM_BUNDLES", ())
    assert "certifi" in find_ca_file()

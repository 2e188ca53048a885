"""HTTP/3 over QUIC, against a real server of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pycurl
import pytest
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import ProtocolNegotiated
from msgspec import structs

from gossamer.backends.curl import CurlTransport
from gossamer.ports.transport import Caps, Deadlines, FetchError
from gossamer.testing.contracts.transport import ask
from gossamer.testing.web.certificate import write_certificate

BODY = b"<title>over QUIC</title>" * 3_000
pytestmark = pytest.mark.skipif(
    not pycurl.version_info()[4] & pycurl.VERSION_HTTP3, reason="this libcurl was built without HTTP/3"
)


class Site(QuicConnectionProtocol):
    """Answers every request with the same page, or never."""

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._h3: H3Connection | None = None

    def quic_event_received(self, event: Any) -> None:
        if isinstance(event, ProtocolNegotiated):
            self._h3 = H3Connection(self._quic)
        for http in self._h3.handle_event(event) if self._h3 is not None else ():
            if isinstance(http, HeadersReceived):
                self._answer(http.stream_id, dict(http.headers))
        self.transmit()

    def _answer(self, stream: int, fields: dict[bytes, bytes]) -> None:
        assert self._h3 is not None
        if fields[b":path"] == b"/silent":
            return
        head = [
            (b":status", b"200"),
            (b"content-type", b"text/html"),
            (b"x-agent", fields.get(b"user-agent", b"")),
        ]
        self._h3.send_headers(stream, head)
        self._h3.send_data(stream, BODY, end_stream=True)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[str]:
    write_certificate(tmp_path)
    configuration = QuicConfiguration(is_client=False, alpn_protocols=H3_ALPN)
    configuration.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    server = await serve("127.0.0.1", 0, configuration=configuration, create_protocol=Site)
    port = server._transport.get_extra_info("sockname")[1]
    yield f"https://127.0.0.1:{port}"
    server.close()


@pytest.fixture
async def curl(tmp_path: Path) -> AsyncIterator[CurlTransport]:
    async with CurlTransport(ca_file=tmp_path / "ca.pem") as transport:
        yield transport


async def test_pages_come_over_quic(site: str, curl: CurlTransport) -> None:
    """Asked for HTTP/3, a page comes whole with its fields over one connection, its certificate checked."""
    answers = [
        await curl.send(ask(f"{site}/{n}", http_version="3", headers=(("User-Agent", "Gossamer"),)))
        for n in range(3)
    ]
    for answer in answers:
        assert (answer.status, answer.http_version, answer.body) == (200, "3", BODY)
        assert (answer.header("x-agent"), answer.address) == ("Gossamer", "127.0.0.1")
    assert curl.statistics().connections_opened == 1


async def test_many_streams_at_once(site: str, curl: CurlTransport) -> None:
    """Exchanges that are open together share the connection, and each gets its own page."""
    answers = await asyncio.gather(*(curl.send(ask(f"{site}/{n}", http_version="3")) for n in range(30)))
    assert {answer.body for answer in answers} == {BODY}


@pytest.mark.parametrize(
    ("path", "more", "code"),
    [
        ("/silent", {"deadlines": Deadlines(header=0.3)}, "timeout_header"),
        ("/", {"caps": Caps(wire=10_000, decoded=10_000)}, "too_large"),
        ("/", {"allow_private": False}, "blocked_address"),
    ],
)
async def test_deadlines_caps_and_guard_hold(
    site: str, curl: CurlTransport, path: str, more: dict[str, Any], code: str
) -> None:
    """What bounds an exchange bounds it over QUIC too."""
    with pytest.raises(FetchError) as caught:
        await curl.send(structs.replace(ask(f"{site}{path}", http_version="3"), **more))
    assert caught.value.code == code


async def test_a_certificate_that_is_not_trusted_is_refused(site: str) -> None:
    """TLS is verified over QUIC as over TCP."""
    async with CurlTransport() as stranger:
        with pytest.raises(FetchError) as caught:
            await stranger.send(ask(f"{site}/", http_version="3"))
    assert caught.value.code in {"tls", "connect"}

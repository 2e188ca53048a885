"""Addresses and proxies: where libcurl may connect, and who gets to see what."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

import pycurl
import pytest

from gossamer.backends.curl import CurlTransport
from gossamer.backends.curl.handle import Handle
from gossamer.backends.curl.trust import find_ca_file
from gossamer.model.addresses import AddressGuard
from gossamer.ports.transport import Exchange
from gossamer.testing.contracts.transport import Site, Visit, always, ask, failing, once, page, site
from gossamer.testing.web.certificate import server_tls

SECRET = "hush"


@pytest.fixture
async def curl() -> AsyncIterator[CurlTransport]:
    async with CurlTransport() as transport:
        yield transport


@pytest.fixture
async def near() -> AsyncIterator[CurlTransport]:
    """A transport to which one loopback address is as good as public."""
    async with CurlTransport(allow_net=["127.0.0.1/32"]) as transport:
        yield transport


@pytest.fixture
async def proxied() -> AsyncIterator[CurlTransport]:
    """A transport that may dial a proxy on 127.0.0.9, and no other inner address."""
    async with CurlTransport(allow_net=["127.0.0.9/32"]) as transport:
        yield transport


def resolving(transport: CurlTransport, where: Site, *addresses: str) -> str:
    """Make a name resolve to these addresses for the next exchange, and give its URL."""
    assert transport._engine is not None
    handle = Handle(transport._guard, transport._ca_file, transport._engine.spoiled)
    handle.curl.setopt(pycurl.RESOLVE, [f"name.example:{where.port}:{','.join(addresses)}"])
    transport._idle.append(handle)
    return f"http://name.example:{where.port}/"


async def test_allow_net_opens_a_network(near: CurlTransport) -> None:
    """An address in an allowed network is dialled without a permission of the exchange."""
    async with site(page()) as here:
        url = resolving(near, here, "127.0.0.1")
        assert (await near.send(Exchange(url))).address == "127.0.0.1"


@pytest.mark.parametrize(
    "addresses", [("127.0.0.2", "127.0.0.1"), ("10.0.0.1", "127.0.0.1"), ("169.254.169.254", "127.0.0.1")]
)
async def test_a_name_with_mixed_addresses_is_refused(
    near: CurlTransport, addresses: tuple[str, ...]
) -> None:
    """When one address tried was refused, the good one among them gets no request either."""
    async with site(page()) as here:
        error = await failing(near, Exchange(resolving(near, here, *addresses)))
        assert (error.code, here.requests) == ("blocked_address", [])
    assert not any(address in str(error) for address in addresses)
    assert near.statistics().addresses_blocked == 1


async def test_a_name_that_turns_inward_is_refused_at_the_dial(near: CurlTransport) -> None:
    """Rebinding: the address that is dialled is judged, not the one of an earlier exchange."""
    async with site(always(page(b"", b"Connection: close"))) as here:
        await near.send(Exchange(resolving(near, here, "127.0.0.1")))
        error = await failing(near, Exchange(resolving(near, here, "127.0.0.3")))
        assert (error.code, len(here.requests)) == ("blocked_address", 1)


async def test_a_pooled_connection_is_judged_again(curl: CurlTransport) -> None:
    """A connection dialled with permission carries no exchange without one, and stays good for those with."""
    async with site(page()) as here:
        await curl.send(ask(here.url()))
        error = await failing(curl, Exchange(here.url()))
        assert (error.code, len(here.requests)) == ("blocked_address", 1)
        await curl.send(ask(here.url()))
        assert len(here.requests) == 2


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "[::]", "0.0.0.0", "[::1]"]
)
async def test_odd_notations_of_loopback_are_refused(curl: CurlTransport, host: str) -> None:
    """However an inner address is written, it is the dialled one that counts."""
    async with site(page()) as here:
        error = await failing(curl, Exchange(f"http://{host}:{here.port}/"))
        assert (error.code, here.connections) == ("blocked_address", 0)


class TestProxies:
    async def test_a_proxy_gets_the_whole_url_and_its_credentials(self, near: CurlTransport) -> None:
        """A plain page goes through with its URL in absolute form, escapes untouched, and the proxy's own login."""
        async with site(page(b"via")) as proxy:
            route = f"http://me:{SECRET}@{proxy.host}:{proxy.port}"
            answer = await near.send(ask("http://name.example/a%c3?b", proxy=route))
        assert answer.body == b"via"
        head = proxy.requests[0]
        assert head.startswith(b"GET http://name.example/a%c3?b HTTP/1.1\r\nHost: name.example\r\n")
        assert b"Proxy-Authorization: Basic " + base64.b64encode(f"me:{SECRET}".encode()) in head

    async def test_credentials_stay_with_their_side(self, near: CurlTransport) -> None:
        """Through a tunnel the site never sees the proxy's login, nor the proxy the fields for the site."""

        async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(65_536):
                writer.write(data)
            writer.close()

        async with site(page(b"through"), tls=server_tls()) as target:

            async def tunnel(visit: Visit) -> None:
                await visit.request()
                reader, writer = await asyncio.open_connection(target.host, target.port)
                await visit.say(b"HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n")
                await asyncio.gather(pump(reader, visit.writer), pump(visit.reader, writer))

            async with site(tunnel) as proxy:
                route = f"http://me:{SECRET}@{proxy.host}:{proxy.port}"
                cookie = (("Cookie", "for-the-site"),)
                url = f"https://name.example:{target.port}/"
                answer = await near.send(ask(url, proxy=route, headers=cookie, verify_tls=False))
        assert (answer.body, answer.header("X-Proxy")) == (b"through", None)
        assert proxy.requests[0].startswith(b"CONNECT name.example:")
        assert b"Proxy-Authorization" in proxy.requests[0]
        assert b"for-the-site" not in proxy.requests[0]
        assert b"for-the-site" in target.requests[0]
        assert b"Authorization" not in target.requests[0]

    @pytest.mark.parametrize(
        "answer",
        [
            page(status=b"407 Proxy Authentication Required"),
            page(status=b"502 Bad Gateway"),
            b"HTTP/1.1 200 no blank line\r\n",
        ],
    )
    async def test_a_proxy_that_refuses(self, near: CurlTransport, answer: bytes) -> None:
        """A tunnel that is not granted is the proxy's failure, and its error holds no login and no address."""
        async with site(once(answer)) as proxy:
            route = f"http://me:{SECRET}@{proxy.host}:{proxy.port}"
            error = await failing(near, ask("https://name.example/", proxy=route))
        assert error.code == "proxy"
        assert SECRET not in repr(error)
        assert proxy.host not in str(error)

    @pytest.mark.parametrize("scheme", ["http", "https", "socks5", "socks5h"])
    async def test_a_proxy_that_is_not_there(self, near: CurlTransport, scheme: str) -> None:
        """An unreachable proxy is told from an unreachable site."""
        async with site(page()) as gone:
            route = f"{scheme}://me:{SECRET}@{gone.host}:{gone.port}"
        error = await failing(near, ask("http://1.1.1.1/", proxy=route))
        assert error.code == "proxy"
        assert SECRET not in repr(error)

    async def test_socks(self, near: CurlTransport) -> None:
        """socks5h hands the name over to the proxy unresolved."""
        asked = bytearray()

        async def socks(visit: Visit) -> None:
            await visit.reader.readexactly(3)
            await visit.say(b"\x05\x00")
            asked.extend(await visit.reader.readexactly(5 + len("name.example") + 2))
            await visit.say(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
            await visit.request()
            await visit.say(page(b"socks"))

        async with site(socks) as proxy:
            answer = await near.send(
                ask("http://name.example/", proxy=f"socks5h://{proxy.host}:{proxy.port}")
            )
        assert (answer.body, b"name.example" in asked) == (b"socks", True)

    @pytest.mark.parametrize(
        "host",
        ["10.0.0.1", "127.1", "[::1]", "169.254.169.254", "localhost", "a.localhost", "0x7f.1", "127.0.0.1."],
    )
    async def test_literal_targets_are_judged_before_the_proxy_sees_them(
        self, proxied: CurlTransport, host: str
    ) -> None:
        """An inner address is not asked of a proxy, which might reach it."""
        async with site(page(), host="127.0.0.9") as proxy:
            error = await failing(proxied, Exchange(f"http://{host}/", proxy=proxy.url()))
            assert (error.code, proxy.connections) == ("blocked_address", 0)
            await proxied.send(Exchange("http://1.1.1.1/", proxy=proxy.url()))

    async def test_the_proxy_itself_is_judged(self, curl: CurlTransport) -> None:
        """A proxy on a private address needs a permission like any other host."""
        async with site(page()) as proxy:
            error = await failing(curl, Exchange("http://name.example/", proxy=proxy.url()))
            assert (error.code, proxy.connections) == ("blocked_address", 0)

    async def test_an_unknown_kind_of_proxy(self, near: CurlTransport) -> None:
        """The error names the kinds there are, and not the login."""
        error = await failing(near, ask("http://name.example/", proxy=f"ftp://me:{SECRET}@proxy.example"))
        assert error.code == "proxy"
        assert "socks5h" in error.detail
        assert SECRET not in repr(error)


def test_a_zone_is_never_dialled() -> None:
    """An IPv6 address with a scope is refused when it is dialled, however it was resolved."""
    handle = Handle(AddressGuard(["fe80::/10"]), find_ca_file(), set())
    address = pycurl.CurlSockAddr(10, 1, 6, ("fe80::1", 80, 0, 2))
    assert handle._on_dial(0, address) == pycurl.SOCKET_BAD
    assert handle.blocked

    async def test_a_private_proxy_is_not_opened_by_the_name_of_its_target(self, curl: CurlTransport) -> None:
        """That the site was named at the keyboard says nothing of the proxy: its network has to be named too."""
        async with site(page()) as proxy:
            route = f"http://{proxy.host}:{proxy.port}"
            error = await failing(curl, ask("http://1.1.1.1/", proxy=route))
        assert error.code == "blocked_address"
        assert "proxy" in error.detail
        assert proxy.requests == []

"""What every transport promises, as tests against its port alone.

A backend's test module inherits `TransportContract` and gives it a fixture `transport`, opened. The sites that it
talks to are raw sockets on loopback which say exactly what a test wants them to say, rules or not.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from gossamer.ports.transport import FETCH_CODES, Answer, Caps, Deadlines, Exchange, FetchError, Transport

Behaviour = Callable[["Visit"], Awaitable[None]]


class Visit:
    """One connection to a site, seen from the site."""

    def __init__(self, site: Site, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.site = site
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next request's head, as it came; empty when there is none."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            return b""
        self.site.requests.append(head)
        self.site.asked.release()
        return head

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def left(self) -> None:
        """Wait until the other side has closed."""
        with suppress(ConnectionError):
            while await self.reader.read(65_536):
                pass
        self.site.departures += 1
        self.site.departed.set()

    def reset(self) -> None:
        """Break the connection: the other side gets RST, not the usual end."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Site:
    """A server on loopback with a behaviour, and what it saw."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._visits: set[asyncio.Task[None]] = set()
        self.requests: list[bytes] = []
        self.asked = asyncio.Semaphore(0)
        self.connections = 0
        self.departures = 0
        self.departed = asyncio.Event()
        self.host = ""
        self.port = 0
        self.scheme = "http"

    def url(self, path: str = "/") -> str:
        return f"{self.scheme}://{self.host}:{self.port}{path}"

    async def visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._visits.add(task)
            task.add_done_callback(self._visits.discard)
        self.connections += 1
        with suppress(ConnectionError, asyncio.CancelledError):
            await self._behaviour(Visit(self, reader, writer))
        writer.close()

    async def end(self) -> None:
        for task in self._visits:
            task.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)


@asynccontextmanager
async def site(
    behaviour: Behaviour | bytes, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Site]:
    """A site with a behaviour; mere bytes are the answer to each request on each connection."""
    here = Site(always(behaviour) if isinstance(behaviour, bytes) else behaviour)
    server = await asyncio.start_server(here.visited, host, 0, ssl=tls, limit=1 << 20)
    here.host, here.port = server.sockets[0].getsockname()[:2]
    here.scheme = "https" if tls else "http"
    try:
        yield here
    finally:
        server.close()
        await here.end()


def always(answer: bytes) -> Behaviour:
    """Give the same answer to every request, on connections that stay open."""

    async def behave(visit: Visit) -> None:
        while await visit.request():
            await visit.say(answer)

    return behave


def once(answer: bytes) -> Behaviour:
    """Answer one request and close."""

    async def behave(visit: Visit) -> None:
        if await visit.request():
            await visit.say(answer)

    return behave


def then_silence(answer: bytes = b"") -> Behaviour:
    """Say something and nothing more, until the other side leaves."""

    async def behave(visit: Visit) -> None:
        if await visit.request():
            await visit.say(answer)
            await visit.left()

    return behave


def endlessly(head: bytes, chunk: bytes, pause: float = 0.0) -> Behaviour:
    """Say the head once and the chunk for ever."""

    async def behave(visit: Visit) -> None:
        if await visit.request():
            await visit.say(head)
            while True:
                await visit.say(chunk)
                await asyncio.sleep(pause)

    return behave


def page(body: bytes = b"hello", *fields: bytes, status: bytes = b"200 OK") -> bytes:
    """A well-formed answer."""
    lines = [b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def ask(url: str, **changes: object) -> Exchange:
    """An exchange with a loopback site, which must be allowed to be private."""
    return Exchange(url, allow_private=True, **changes)  # type: ignore[arg-type] # tests name real fields


async def failing(transport: Transport, exchange: Exchange) -> FetchError:
    """The error of an exchange that has to fail."""
    with pytest.raises(FetchError) as caught:
        await transport.send(exchange)
    assert caught.value.code in FETCH_CODES
    return caught.value


class TransportContract:
    """Answers, refusals, deadlines, caps and ends. Needs an open `transport`."""

    async def test_an_answer_has_all_that_was_sent(self, transport: Transport) -> None:
        """Status, fields in their order, body and times reach the caller as the site gave them."""
        fields = (b"Content-Type: text/html", b"X-One: 1", b"x-two:\t 2 ", b"X-One: 3", b"X-Latin: \xe9")
        before = time.monotonic()
        async with site(page(b"<p>hello", *fields)) as here:
            answer = await transport.send(ask(here.url()))
        assert (answer.status, answer.body, answer.wire_bytes) == (200, b"<p>hello", 8)
        got = [(name.lower(), value) for name, value in answer.headers]
        wanted = [
            ("content-type", "text/html"),
            ("x-one", "1"),
            ("x-two", "2"),
            ("x-one", "3"),
            ("x-latin", "\xe9"),
        ]
        assert got[:5] == wanted
        assert answer.header("X-TWO") == "2"
        assert before <= answer.sent_at <= time.monotonic()
        assert 0 <= answer.latency <= answer.seconds < 5
        assert (answer.address, answer.http_version, answer.truncated) == ("127.0.0.1", "1.1", False)

    @pytest.mark.parametrize(
        "status", [b"404 Not Found", b"500 Oops", b"429 Too Many Requests", b"206 Partial Content"]
    )
    async def test_every_status_is_an_answer(self, transport: Transport, status: bytes) -> None:
        """A page that says no is an answer with a body, not an error."""
        async with site(page(b"sorry", status=status)) as here:
            answer = await transport.send(ask(here.url()))
        assert (answer.status, answer.body) == (int(status[:3]), b"sorry")

    async def test_redirects_are_not_followed(self, transport: Transport) -> None:
        """A redirect comes back as it is, and its target sees no request."""
        async with site(page(b"there")) as target:
            location = b"Location: " + target.url("/x").encode()
            async with site(page(b"", location, status=b"302 Found")) as here:
                answer = await transport.send(ask(here.url()))
            assert (answer.status, answer.header("location")) == (302, target.url("/x"))
            assert target.requests == []

    @pytest.mark.parametrize(
        ("method", "status"), [("HEAD", b"200 OK"), ("GET", b"204 No Content"), ("GET", b"304 Not Modified")]
    )
    async def test_answers_without_a_body_do_not_hang(
        self, transport: Transport, method: str, status: bytes
    ) -> None:
        """HEAD, 204 and 304 end with their headers, even when a length is declared."""
        head = b"HTTP/1.1 " + status + b"\r\nContent-Length: 5000\r\nX-End: yes\r\n\r\n"
        async with site(then_silence(head)) as here:
            answer = await transport.send(ask(here.url(), method=method, deadlines=Deadlines(total=1)))
        assert (answer.status, answer.body, answer.header("x-end")) == (int(status[:3]), b"", "yes")

    async def test_the_request_is_what_was_asked_for(self, transport: Transport) -> None:
        """Method, path, fields in order and body go out, and nothing of one exchange stays for the next."""

        async def behave(visit: Visit) -> None:
            while head := await visit.request():
                body = await visit.reader.readexactly(4) if b"POST" in head else b""
                await visit.say(page(body))

        async with site(behave) as here:
            fields = (("User-Agent", "gossamer"), ("X-B", "1"), ("X-A", "caf\xe9"), ("X-Empty", ""))
            answer = await transport.send(
                ask(here.url("/a?b=c"), method="POST", body=b"\x00\xff\r\n", headers=fields)
            )
            assert answer.body == b"\x00\xff\r\n"
            await transport.send(ask(here.url("/plain")))
        first, second = here.requests
        assert first.startswith(b"POST /a?b=c HTTP/1.1\r\n")
        assert b"User-Agent: gossamer\r\nX-B: 1\r\nX-A: caf\xe9\r\nX-Empty:" in first
        assert b"Content-Length: 4\r\n" in first
        assert second.startswith(b"GET /plain HTTP/1.1\r\n")
        assert b"X-B" not in second
        assert b"Content-" not in second

    async def test_gzip_is_undone(self, transport: Transport) -> None:
        """A coded body is decoded, and the bytes on the wire are counted as they came."""
        plain = b"the same words again " * 500
        coded = gzip.compress(plain)
        async with site(page(coded, b"Content-Encoding: gzip")) as here:
            answer = await transport.send(ask(here.url()))
        assert answer.body == plain
        assert answer.wire_bytes == len(coded)

    async def test_many_at_once_keep_apart(self, transport: Transport) -> None:
        """Exchanges under way together each get their own answer."""

        async def echo(visit: Visit) -> None:
            while head := await visit.request():
                await visit.say(page(head.split(b" ")[1]))

        async with site(echo) as here:
            answers = await asyncio.gather(*(transport.send(ask(here.url(f"/{n}"))) for n in range(50)))
        assert [answer.body for answer in answers] == [b"/%d" % n for n in range(50)]

    @pytest.mark.parametrize(
        ("deadlines", "behaviour", "code"),
        [
            (Deadlines(header=0.2), then_silence(), "timeout_header"),
            (Deadlines(header=0.3), endlessly(b"HTTP/1.1 200 OK\r\nX: ", b"x", 0.02), "timeout_header"),
            (Deadlines(header=0.2), endlessly(b"", b"HTTP/1.1 103 Hint\r\n\r\n", 0.15), "timeout_header"),
            (Deadlines(total=0.3), endlessly(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 99, 0.02), "timeout_total"),
            (Deadlines(min_rate=999, min_rate_window=0.2), endlessly(b"HTTP/1.1 200 OK\r\n\r\n", b"x", 0.02), "too_slow"),
            (Deadlines(total=0.2, header=9), then_silence(), "timeout_total"),
        ],
        ids=["never answers", "slow headers", "slow hints", "endless body", "dripping body", "total first"],
    )  # fmt: skip
    async def test_deadlines(
        self, transport: Transport, deadlines: Deadlines, behaviour: Behaviour, code: str
    ) -> None:
        """Each deadline ends the exchange by its own code, soon after it has passed."""
        async with site(behaviour) as here:
            start = time.monotonic()
            error = await failing(transport, ask(here.url(), deadlines=deadlines))
        assert error.code == code
        assert time.monotonic() - start < 1.0

    @pytest.mark.parametrize("status", [b"200 OK", b"302 Found", b"404 Not Found"])
    async def test_bodies_are_cut_at_the_cap(self, transport: Transport, status: bytes) -> None:
        """An endless body ends at the cap, whatever the status."""
        behaviour = endlessly(b"HTTP/1.1 " + status + b"\r\n\r\n", b"x" * 60_000)
        async with site(behaviour) as here:
            error = await failing(transport, ask(here.url(), caps=Caps(wire=10**6, decoded=10**6)))
        assert error.code == "too_large"

    async def test_a_cap_may_cut_instead(self, transport: Transport) -> None:
        """Where the beginning is enough, an endless, a too long and a coded body are cut at the cap and said to be cut."""
        caps = Caps(wire=50_000, decoded=50_000, cut=True)
        coded = page(gzip.compress(b"x" * 900_000), b"Content-Encoding: gzip")
        for behaviour in (
            endlessly(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 60_000),
            page(b"x" * 900_000),
            coded,
        ):
            async with site(behaviour) as here:
                answer = await transport.send(ask(here.url(), caps=caps))
            assert (answer.body, answer.truncated) == (b"x" * 50_000, True)

    @pytest.mark.parametrize("status", [b"200 OK", b"302 Found", b"404 Not Found"])
    async def test_bombs_stop_at_the_decoded_cap(self, transport: Transport, status: bytes) -> None:
        """A small coded body that decodes to a huge one is cut off while it is decoded."""
        bomb = gzip.compress(b"\0" * 30_000_000)
        async with site(page(bomb, b"Content-Encoding: gzip", status=status)) as here:
            error = await failing(transport, ask(here.url(), caps=Caps(decoded=100_000)))
        assert error.code == "too_large"

    @pytest.mark.parametrize(
        ("answer", "code"),
        [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 10000000\r\n\r\n0123456789", "incomplete"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", "incomplete"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999999\r\n\r\n0123456789", "too_large"),
            (b"", "incomplete"),
            (b"<html>no status line</html>", "protocol"),
            (b"HTTP/1.1 99x what\r\n\r\n", "protocol"),
            (page(b"x" * 9, b"Content-Encoding: gzip, gzip, gzip"), "coding"),
            (page(b"x", *(b"X-%d: y" % n for n in range(101))), "header_limit"),
            (page(b"x", b"X: " + b"y" * 70_000), "header_limit"),
            (b"HTTP/1.1 100 Continue\r\n\r\n" * 9 + page(), "header_limit"),
        ],
        ids=["short", "no last chunk", "absurd length", "nothing", "0.9", "bad status", "codings", "fields", "header bytes", "interim"],
    )  # fmt: skip
    async def test_broken_answers(self, transport: Transport, answer: bytes, code: str) -> None:
        """An answer that is cut short, too much or not HTTP is an error with its own code, never a page."""
        async with site(once(answer)) as here:
            assert (await failing(transport, ask(here.url()))).code == code

    async def test_caps_let_pass_what_they_allow(self, transport: Transport) -> None:
        """Exactly as many fields, hints and bytes as the caps name are accepted."""
        hints = b"HTTP/1.1 103 Early Hints\r\n\r\n" * 8
        answer = hints + page(b"x" * 1000, *(b"X-%d: y" % n for n in range(99)))
        async with site(answer) as here:
            got = await transport.send(ask(here.url(), caps=Caps(wire=1000, decoded=1000)))
        assert (got.status, len(got.headers), len(got.body)) == (200, 100, 1000)

    async def test_a_reset_is_not_a_page(self, transport: Transport) -> None:
        """A connection that is reset in the middle of a body is an error."""

        async def behave(visit: Visit) -> None:
            await visit.request()
            await visit.say(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\nhello")
            await asyncio.sleep(0.05)
            visit.reset()

        async with site(behave) as here:
            assert (await failing(transport, ask(here.url()))).code in ("reset", "incomplete")

    async def test_nobody_there(self, transport: Transport) -> None:
        """A port where nobody listens is told from a site that is slow."""
        async with site(page()) as gone:
            url = gone.url()
        assert (await failing(transport, ask(url))).code == "connect"

    async def test_unknown_names(self, transport: Transport) -> None:
        """A name that can not exist is a failure of name resolution."""
        assert (await failing(transport, Exchange("http://nowhere.invalid/"))).code == "dns"

    @pytest.mark.parametrize(
        ("url", "code"),
        [
            ("ftp://example.com/", "scheme"),
            ("file:///etc/passwd", "scheme"),
            ("http://user:pass@example.com/", "url"),
            ("http:///path", "url"),
        ],
    )
    async def test_urls_that_are_refused(self, transport: Transport, url: str, code: str) -> None:
        """Other schemes, credentials in the URL and missing hosts are refused before anything is dialled."""
        error = await failing(transport, Exchange(url))
        assert error.code == code
        assert "pass" not in error.detail

    async def test_private_addresses_need_a_permission(self, transport: Transport) -> None:
        """Without permission no connection is made, and the error does not tell the address."""
        async with site(page()) as here:
            error = await failing(transport, Exchange(here.url()))
            named = await failing(transport, Exchange(f"http://localhost:{here.port}/"))
            assert here.connections == 0
        assert error.code == named.code == "blocked_address"
        assert "127.0.0.1" not in str(named)
        assert str(error) == str(named)

    async def test_metadata_services_stay_closed(self, transport: Transport) -> None:
        """The address where clouds give out credentials is refused even with permission."""
        error = await failing(transport, ask("http://169.254.169.254/latest/"))
        assert error.code == "blocked_address"

    async def test_cancelling_closes_first(self, transport: Transport) -> None:
        """When a cancelled send has ended, its connection is closed already."""
        async with site(then_silence(b"HTTP/1.1 200 OK\r\n\r\nhello")) as here:
            task = asyncio.create_task(transport.send(ask(here.url())))
            await here.asked.acquire()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert transport.statistics().open == 0
            await asyncio.wait_for(here.departed.wait(), 1)

    async def test_closing_ends_what_is_open(self, transport: Transport) -> None:
        """Closing the transport cancels its open exchanges and closes their connections; twice is once."""
        async with site(then_silence()) as here:
            tasks = [asyncio.create_task(transport.send(ask(here.url()))) for _ in range(3)]
            for _ in tasks:
                await here.asked.acquire()
            await transport.aclose()
            results = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 1)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
            await asyncio.wait_for(here.departed.wait(), 1)
        await transport.aclose()

    async def test_statistics_count_what_happened(self, transport: Transport) -> None:
        """Answers, failures and open exchanges are counted."""
        async with site(page()) as here:
            for _ in range(3):
                answer = await transport.send(ask(here.url()))
                assert isinstance(answer, Answer)
        await failing(transport, Exchange("ftp://example.com/"))
        counts = transport.statistics()
        assert (counts.open, counts.answered, counts.failed, counts.wire_bytes) == (0, 3, 1, 15)

"""One easy handle of libcurl, used for one exchange after another.

Setting an option costs as much as parsing a header, so a handle remembers what it was set to: for the next page
of the same kind only the URL is new.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from math import inf
from time import monotonic

import pycurl

from gossamer.backends.curl.decoding import Decoder, coded
from gossamer.backends.curl.request import (
    check_exchange,
    check_literal,
    check_url,
    header_lines,
    set_for_ever,
    set_method,
    set_route,
    set_target,
)
from gossamer.backends.curl.response import Head, count_fields, most_lines, read_head
from gossamer.model.addresses import AddressGuard
from gossamer.ports.transport import Answer, Caps, Exchange, FetchError

_NOTHING = Exchange(url="", method="", caps=Caps(decoded=-1))
"""Equal to no exchange that can be sent, so the first one sets everything."""
_BROKEN = (pycurl.E_GOT_NOTHING, pycurl.E_SEND_ERROR, pycurl.E_RECV_ERROR)


class Handle:
    """An easy handle and what is known of the exchange it carries now."""

    head: Head | None
    refusal: FetchError | None
    future: asyncio.Future[None] | None
    _decoder: Decoder | None
    started: float
    rounds: int

    def __init__(self, guard: AddressGuard, ca_file: str, spoiled: set[tuple[str, int]]) -> None:
        self._guard = guard
        self._spoiled = spoiled
        self._known = _NOTHING
        self._chunks: list[bytes] = []
        self._targeted = False
        self._insists = False
        self._most = 0
        self.curl = curl = pycurl.Curl()
        set_for_ever(curl, ca_file)
        curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_dial)
        curl.setopt(pycurl.PREREQFUNCTION, self._on_send)
        self.lines: deque[bytes] = deque(maxlen=0)
        self.release()
        self._forget(_NOTHING)

    def load(self, exchange: Exchange) -> None:
        """Make ready for one exchange; raises `FetchError` or `ValueError` for one that can not be sent."""
        check_url(exchange.url)
        if exchange.proxy is not None:
            check_literal(exchange, self._guard)
        self._forget(exchange)
        try:
            self._set(exchange)
        except BaseException:
            self._known = _NOTHING  # half of the options are set
            raise
        self._known = exchange

    def answer(self) -> Answer:
        """What came, once libcurl has said that the exchange is over and well."""
        exchange, lines = self.exchange, self.lines
        head = self.head
        if head is None:
            head = read_head(lines, exchange.caps)
        elif lines[-1] != b"\r\n" or len(lines) > exchange.caps.header_fields:
            count_fields(lines, sum(map(len, lines)), exchange.caps)
        getinfo = self.curl.getinfo
        chunks = self._chunks
        return Answer(
            head.status,
            head.headers,
            chunks[0] if len(chunks) == 1 else b"".join(chunks),
            self.sent_at,
            max(0.0, getinfo(pycurl.STARTTRANSFER_TIME) - getinfo(pycurl.PRETRANSFER_TIME)),
            monotonic() - self.started,
            self.received,
            head.http_version,
            self.address,
            self._capped or (self._decoder is not None and not self._decoder.whole),
        )

    def release(self) -> None:
        """Let go of the exchange, so that an idle handle holds no page in memory."""
        self._chunks.clear()
        self.lines.clear()
        self.head = self.refusal = self._decoder = None
        self.future = None

    def met_a_dead_connection(self) -> bool:
        """Whether the exchange may begin again, because all that failed is a connection from the pool.

        Either nothing was sent, or the site had given it up: nothing came back. libcurl itself tries only a few.
        """
        if self.again:
            return True
        reused = not self.connections and not self.lines
        return self.result in _BROKEN and reused and not self._insists and not self.blocked

    def insist_on_a_new_one(self, after: float = 0.0) -> None:
        """Begin again on a fresh connection, after a pause that its deadlines do not count."""
        self.started += after
        self.curl.setopt(pycurl.FRESH_CONNECT, 1)
        self._insists = True
        self.again = False
        self.result = 0
        self.rounds += 1
        self.sent_at = inf
        deadlines = self.exchange.deadlines
        self.next_look = min(monotonic() + deadlines.connect, self.started + deadlines.total)

    def is_cut(self) -> bool:
        """Whether the exchange was ended here, because nothing that is wanted was still to come."""
        return self._capped or (self._decoder is not None and self._decoder.cut)

    def headers_ended(self) -> bool:
        if self.head is not None:
            return True
        lines = self.lines
        if not lines or lines[-1].strip():
            return False
        status_line = next((line for line in reversed(lines) if line.startswith(b"HTTP/")), b"")
        return status_line.split(b" ", 2)[1:2] >= [b"2"]

    def _forget(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self._named = (
            exchange.allow_private and exchange.proxy is None
        )  # it was the host that was named, no proxy
        self.blocked = False
        self.again = False
        self.rounds = 0
        self.connections = 0
        self.address = ""
        self.result = 0
        self.text = ""
        self.sent_at = inf
        self.started = now = monotonic()
        self.next_look = now + min(exchange.deadlines.connect, exchange.deadlines.total)
        self.window_start = inf
        self.window_bytes = 0
        self.received = 0
        self._capped = False

    def _set(self, exchange: Exchange) -> None:
        curl, known = self.curl, self._known
        curl.setopt(pycurl.URL, exchange.url)
        # libcurl sends again what met a dead connection of its pool. A body may not be sent twice, so it gets its own.
        if self._insists is not (exchange.body is not None):
            self._insists = not self._insists
            curl.setopt(pycurl.FRESH_CONNECT, int(self._insists))
        if self._targeted or "%" in exchange.url:
            self._targeted = set_target(curl, exchange, always=self._targeted)
        if exchange.method != known.method or exchange.body is not None or known.body is not None:
            check_exchange(exchange)
            set_method(curl, exchange)
            curl.setopt(pycurl.HTTPHEADER, header_lines(exchange))
        elif exchange.headers != known.headers:
            curl.setopt(pycurl.HTTPHEADER, header_lines(exchange))
        if (
            exchange.caps != known.caps
            or exchange.proxy != known.proxy
            or exchange.http_version != known.http_version
            or exchange.verify_tls is not known.verify_tls
        ):
            check_exchange(exchange)
            set_route(curl, exchange)
            most = most_lines(exchange.caps)
            if most != self.lines.maxlen:
                self.lines = deque(maxlen=most)
                curl.setopt(pycurl.HEADERFUNCTION, self.lines.append)

    def _on_body(self, chunk: bytes) -> int | None:
        """Keep what came. What breaks a rule or a cap ends the exchange and its connection here."""
        try:
            if self.head is None:
                self._begin_body()
            self.received += len(chunk)
            if self.received > self._most:
                chunk = self._within_cap(chunk)
            if self._decoder is not None:
                chunk = self._decoder.feed(chunk)
        except FetchError as error:
            self.refusal = error
            return 0
        self._chunks.append(chunk)
        return 0 if self.is_cut() else None

    def _begin_body(self) -> None:
        exchange = self.exchange
        caps = exchange.caps
        self.head = head = read_head(self.lines, caps)
        if head.codings:
            self._decoder = coded(head.codings, caps.decoded, cuts=caps.cut)
        self._most = caps.wire if self._decoder is not None else min(caps.wire, caps.decoded)
        self.window_start = now = monotonic()
        self.next_look = min(self.next_look, now + exchange.deadlines.min_rate_window)

    def _within_cap(self, chunk: bytes) -> bytes:
        """What may still be kept of the chunk with which the body passes its cap."""
        if not self.exchange.caps.cut:
            raise FetchError("too_large", f"more than {self._most} bytes")
        self._capped = True
        return chunk[: self._most - self.received]

    def _on_dial(self, _purpose: int, address: pycurl.CurlSockAddr) -> _Dialled | int:
        ip, scope = address.addr[0], address.addr[3] if len(address.addr) > 3 else 0
        if scope or not self._guard.permits(ip, allow_private=self._named):
            self.blocked = True
            return int(pycurl.SOCKET_BAD)
        try:
            dialled = _Dialled(socket.socket(address.family, address.socktype, address.protocol).detach())
        except OSError:  # no such family here, or no descriptor left: libcurl then says "connect"
            return int(pycurl.SOCKET_BAD)
        self.connections += 1
        return dialled

    def _on_send(self, ip: str, local_ip: str, _port: int, local_port: int) -> int:
        """The connection stands and the request is about to leave.

        Judged again, since the connection may come from the pool, where an exchange with more freedom left it. One
        refused address among those tried is enough: a name that points inside *and* outside is not answered.
        """
        if self.blocked or not self._guard.permits(ip, allow_private=self._named):
            self.blocked = True
            return int(pycurl.PREREQFUNC_ABORT)
        if self._spoiled and (local_ip, local_port) in self._spoiled:
            self._spoiled.discard((local_ip, local_port))
            self.again = True  # libcurl drops this connection, and the transport tries another
        if self.exchange.gap and self.sent_at != inf:
            self.again = True  # libcurl would send it a second time at once, and the site wants its pause
        if self.again:
            return int(pycurl.PREREQFUNC_ABORT)
        self.address = ip
        self.sent_at = now = monotonic()
        self.next_look = min(self.next_look, now + self.exchange.deadlines.header)
        return int(pycurl.PREREQFUNC_OK)


class _Dialled:
    """A fresh socket on its way to libcurl, which takes a duplicate and drops this one."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)

"""The fetching transport on libcurl: one multi handle on the event loop, easy handles used again and again."""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Iterable
from contextlib import suppress
from math import inf
from typing import Self

import pycurl

from gossamer.backends.curl.engine import Engine
from gossamer.backends.curl.failures import failure
from gossamer.backends.curl.handle import Handle
from gossamer.backends.curl.trust import find_ca_file
from gossamer.backends.curl.watch import Watch
from gossamer.model.addresses import AddressGuard, Network
from gossamer.ports.transport import Answer, Exchange, FetchError, TransportStatistics

_IDLE_HANDLES = 256
_ROUNDS = 2  # times that an exchange begins again by itself; more attempts are the caller's


class CurlTransport:
    """Carries exchanges by libcurl; see `gossamer.ports.transport.Transport` for what is promised.

    Every dialled address passes the guard, that of a proxy too: name a proxy's network in `allow_net` if it is not a
    public one. Behind a proxy a target can be judged only if it is a literal; a name is resolved for the proxy (socks5)
    or by it (all others), out of the guard's sight. Idle connections are kept up to `idle_connections`, whatever their hosts.
    """

    def __init__(
        self,
        *,
        allow_net: Iterable[str | Network] = (),
        ca_file: str | os.PathLike[str] | None = None,
        idle_connections: int = 512,
    ) -> None:
        self._guard = AddressGuard(allow_net)
        self._ca_file = find_ca_file(ca_file)
        self._idle_connections = idle_connections
        self._idle: list[Handle] = []
        self._open: dict[pycurl.Curl, Handle] = {}
        self._engine: Engine | None = None
        self._closed = False
        self._sent = self._answered = self._failed = self._cancelled = 0
        self._connections = self._blocked = self._wire_bytes = 0

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        raise_descriptor_limit()
        self._loop = loop
        self._engine = Engine(loop, self._on_end, self._idle_connections)
        self._watch = Watch(loop, self._open.values, self._abort)
        return self

    async def __aexit__(self, *_error: object) -> None:
        await self.aclose()

    async def send(self, exchange: Exchange) -> Answer:
        if self._engine is None or self._closed:
            raise RuntimeError("the transport is not open: use it inside `async with`")
        handle = self._idle.pop() if self._idle else Handle(self._guard, self._ca_file, self._engine.spoiled)
        try:
            handle.load(exchange)
            self._sent += 1
            await self._begin(handle)
            while handle.rounds < _ROUNDS and handle.met_a_dead_connection():
                # The site may have seen it, and wants its pause.
                gap = exchange.gap if handle.sent_at != inf else 0.0
                await asyncio.sleep(gap)
                handle.insist_on_a_new_one(gap)
                await self._begin(handle)
            answer = self._answer(handle)
        except FetchError:
            self._failed += 1
            raise
        except asyncio.CancelledError:
            self._cancelled += 1
            self._detach(handle)
            raise
        finally:
            self._recycle(handle)
        self._answered += 1
        self._wire_bytes += answer.wire_bytes
        return answer

    def statistics(self) -> TransportStatistics:
        return TransportStatistics(
            open=len(self._open),
            sent=self._sent,
            answered=self._answered,
            failed=self._failed,
            cancelled=self._cancelled,
            connections_opened=self._connections,
            addresses_blocked=self._blocked,
            wire_bytes=self._wire_bytes,
        )

    async def aclose(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._engine is None:
            return
        self._watch.close()
        for handle in tuple(self._open.values()):
            self._detach(handle)
            if handle.future is not None:
                handle.future.cancel()
        await self._engine.close()
        for handle in self._idle:
            handle.curl.close()
        self._idle.clear()

    def _begin(self, handle: Handle) -> asyncio.Future[None]:
        """Put an exchange under way; the future ends with it."""
        engine = self._engine
        if engine is None:
            raise RuntimeError("the transport is not open")
        handle.future = future = self._loop.create_future()
        self._open[handle.curl] = handle
        self._watch.wake()
        engine.add(handle.curl)
        return future

    def _answer(self, handle: Handle) -> Answer:
        if handle.blocked:
            self._blocked += 1
            what = "host" if handle.exchange.proxy is None else "proxy"
            raise FetchError("blocked_address", f"the {what}'s address is not a public one")
        if handle.refusal is not None:
            raise handle.refusal
        if handle.again:
            raise FetchError("reset", "the site hangs up on every connection")
        # Zeros or a second member behind a complete gzip body, or a body that may be cut: the beginning is an answer.
        if handle.result and not handle.is_cut():
            raise failure(handle.result, handle.text, proxied=handle.exchange.proxy is not None)
        return handle.answer()

    def _on_end(self, curl: pycurl.Curl, result: int, text: str) -> None:
        """libcurl is through with an exchange, and the engine has taken its handle out."""
        handle = self._open.pop(curl)
        handle.result, handle.text = result, text
        if handle.future is not None and not handle.future.done():
            handle.future.set_result(None)

    def _abort(self, handle: Handle, error: FetchError) -> None:
        self._detach(handle)
        if handle.future is not None and not handle.future.done():
            handle.future.set_exception(error)

    def _detach(self, handle: Handle) -> None:
        if self._engine is not None and self._open.pop(handle.curl, None) is not None:
            self._engine.remove(handle.curl)

    def _recycle(self, handle: Handle) -> None:
        self._connections += handle.connections
        handle.release()
        if self._closed or len(self._idle) >= _IDLE_HANDLES:
            handle.curl.close()
        else:
            self._idle.append(handle)


def raise_descriptor_limit() -> None:
    """Let this process have as many descriptors as the system allows it: thousands of exchanges need them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard or soft == resource.RLIM_INFINITY:
        # Some systems name a limit they do not grant. The soft one then holds, and too many sockets say so.
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))

"""Drives one libcurl multi handle on the running event loop, plain asyncio or uvloop.

libcurl tells which sockets it waits for and when it wants to be woken; nothing here knows what is being fetched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

import pycurl

from gossamer.backends.curl.readiness import open_readiness

_CLOSE_WITHIN = 1.0

OnEnd = Callable[[pycurl.Curl, int, str], None]


class Engine:
    """Owns the multi handle, its sockets and its timer. Used from its own loop only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_end: OnEnd, idle_connections: int) -> None:
        self._loop = loop
        self._on_end = on_end
        self._multi = pycurl.CurlMulti()
        self._sockets = open_readiness()
        self.spoiled = self._sockets.spoiled
        self._kick: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, idle_connections)
        loop.add_reader(self._sockets.fileno(), self._on_ready)

    def add(self, curl: pycurl.Curl) -> None:
        self._multi.add_handle(curl)

    def remove(self, curl: pycurl.Curl) -> None:
        """Take a handle out. If its transfer is not over, its connection (or its HTTP/2 stream) ends right here."""
        self._multi.remove_handle(curl)

    async def close(self) -> None:
        """Close every connection; those of open exchanges were closed when their handles were removed.

        Idle ones are closed last, behind name lookups that the system does not give up, so the wait has a bound.
        """
        self._loop.remove_reader(self._sockets.fileno())
        for handle in (self._kick, self._timer):
            if handle is not None:
                handle.cancel()
        closed = asyncio.Event()
        # libcurl joins its resolver threads here, and a dead name server holds them for many seconds. The thread is
        # a daemon so that they do not hold the process either.
        Thread(target=self._close_multi, args=(closed,), name="gossamer-curl-close", daemon=True).start()
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_WITHIN):
                await closed.wait()
        self._sockets.close()

    def _close_multi(self, closed: asyncio.Event) -> None:
        self._multi.close()
        with suppress(RuntimeError):  # the loop did not wait for us
            self._loop.call_soon_threadsafe(closed.set)

    def _on_socket(self, what: int, fd: int, _multi: pycurl.CurlMulti, _state: object) -> None:
        if what & pycurl.POLL_INOUT:
            self._sockets.watch(fd, what & pycurl.POLL_INOUT)
        else:
            self._sockets.rest(fd)

    def _on_timer(self, milliseconds: int) -> None:
        if milliseconds == 0:
            # Every add_handle says "now"; one turn serves all that were added in this tick.
            if self._kick is None:
                self._kick = self._loop.call_soon(self._on_kick)
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if milliseconds > 0:
            self._timer = self._loop.call_later(milliseconds / 1000, self._on_due)

    def _on_due(self) -> None:
        self._timer = None
        self._on_kick()

    def _on_kick(self) -> None:
        self._kick = None
        self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
        self._drain()

    def _on_ready(self) -> None:
        self._sockets.serve(self._multi.socket_action)
        self._drain()

    def _drain(self) -> None:
        _, done, failed = self._multi.info_read()
        for curl in done:
            self._multi.remove_handle(curl)
            self._on_end(curl, 0, "")
        for curl, code, text in failed:
            self._multi.remove_handle(curl)
            self._on_end(curl, code, text)

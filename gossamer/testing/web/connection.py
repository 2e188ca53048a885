"""One client's connection to the test web: HTTP/1.1 with keep-alive and pipelining on a bare asyncio protocol.

Requests of one connection are answered strictly in order: while an answer is late, hanging or waiting for the client
to read, what arrives is kept and read no further than a small bound.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, cast

from gossamer.testing.web.log import ConnectionRecord, Visit
from gossamer.testing.web.reply import Ending, Reply, Request, header_in, plain

if TYPE_CHECKING:
    from gossamer.testing.web.origin import Origin

HEAD_LIMIT = 64 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER with no time: closing sends RST


class Connection(asyncio.Protocol):
    """Reads requests, asks the site, sends its replies in the manner they want, and tells the log."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._number = 0
        self._host = ""
        self._buffer = b""
        self._busy = False
        self._full = False
        self._gone = False
        self._visit: Visit | None = None
        self._line: ConnectionRecord | None = None
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        address = transport.get_extra_info("sockname")
        self._host = f"{address[0]}:{address[1]}"
        self._number = self._origin.joined(self)
        if self._origin.counting:
            self._line = self._origin.log.opened(self._number, self._host)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        self._read()

    def _read(self) -> None:
        buffer, place = self._buffer, 0
        while not self._busy and not self._full and not self._gone:
            end = buffer.find(b"\r\n\r\n", place)
            if end < 0:
                break
            head = buffer[place:end]
            after = self._after_body(head, end + 4, len(buffer))
            if after < 0:
                break
            place = after
            self._begin(head)
        self._buffer = buffer[place:] if place < len(buffer) else b""
        self._bound()

    def _after_body(self, head: bytes, start: int, have: int) -> int:
        """Where the next request begins, or -1 while the body of this one is still on its way."""
        if head.startswith((b"GET ", b"HEAD ")):
            return start
        length = header_in(head, "content-length")
        end = start + (int(length) if length.isdigit() else 0)
        return end if end <= have else -1

    def _bound(self) -> None:
        if len(self._buffer) <= HEAD_LIMIT:
            return
        if self._busy or self._full:
            self._transport.pause_reading()
        else:
            self._send(plain(431, "this request is too long for the test web\n"), Ending.CLOSE)

    def _begin(self, head: bytes) -> None:
        origin = self._origin
        try:
            request = Request(self._host, head)
        except ValueError:
            self._send(plain(400, "this is not a request line\n"), Ending.CLOSE)
            return
        attempt = 1
        if origin.counting:
            attempt = origin.attempt(self._host, request.target)
            self._visit = origin.log.started(
                self._number, self._host, request.method, request.target, attempt
            )
        reply = origin.site.answer(request, attempt)
        if request.method == "HEAD":
            reply = Reply(reply.status, reply.head, (), reply.delay, reply.ending)
        ending = reply.ending
        if ending is Ending.KEEP and b"connection: close" in head.lower():
            ending = Ending.CLOSE
        if reply.delay:
            self._busy = True
            self._timer = origin.loop.call_later(reply.delay, self._send, reply, ending)
        else:
            self._send(reply, ending)

    def _send(self, reply: Reply, ending: Ending) -> None:
        was_late, self._busy, self._timer = self._busy, ending is Ending.SILENCE, None
        if self._busy:
            return
        if self._visit:
            self._visit.status = reply.status
            self._visit.retry_after = reply.retry_after
        if reply.head:
            self._transport.writelines((reply.head, *reply.body))
        if ending is not Ending.KEEP:
            self._gone = True
        if ending is Ending.RESET:
            self._reset()
        elif not self._full:
            self._end()
        if ending is Ending.CLOSE:
            self._transport.close()
        if was_late and not self._gone:
            self._continue()

    def _reset(self) -> None:
        self._end()
        carrier = cast("socket.socket", self._transport.get_extra_info("socket"))
        carrier.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._transport.abort()

    def _end(self, *, aborted: bool = False) -> None:
        if self._visit:
            self._origin.log.ended(self._visit, aborted=aborted)
            self._visit = None

    def _continue(self) -> None:
        self._transport.resume_reading()
        self._read()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        """The client has read: only now is a visit with a long body over."""
        self._full = False
        if not self._busy:
            self._end()
        if not self._gone:
            self._continue()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, _cause: Exception | None) -> None:
        self._gone = True
        if self._timer:
            self._timer.cancel()
        self._end(aborted=True)
        if self._line:
            self._origin.log.closed(self._line)
        self._origin.left(self)

    def drop(self) -> None:
        """Ends the connection at once, when the origin stops."""
        self._transport.abort()

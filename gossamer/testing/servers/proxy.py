"""A TCP proxy between a program and a server, which can be told to misbehave while connections are open.

It runs on a thread with a loop of its own, so that a test may talk to it from anywhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any

CHUNK = 65536


class FaultProxy:
    """`port` leads to `target`. `partition` keeps connections and passes nothing; `cut` resets them; `refuse` takes no more."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.delay = 0.0  # seconds that each piece waits, in both directions
        self._passing = asyncio.Event()
        self._refusing = False
        self._writers: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)

    def start(self) -> FaultProxy:
        self._thread.start()
        self._do(self._listen())
        return self

    def stop(self) -> None:
        self.cut()
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def partition(self) -> None:
        """Nothing passes, in neither direction; nobody is told."""
        self._loop.call_soon_threadsafe(self._passing.clear)

    def refuse(self) -> None:
        """Reset what is open, and take nothing new."""
        self._refusing = True
        self.cut()

    def heal(self) -> None:
        self._refusing, self.delay = False, 0.0
        self._loop.call_soon_threadsafe(self._passing.set)

    def cut(self) -> None:
        """Reset all connections: an answer that is on its way is lost."""
        self._do(self._cut())

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self) -> None:
        self._passing.set()
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _cut(self) -> None:
        for writer in list(self._writers):
            sock: socket.socket | None = writer.get_extra_info("socket")
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refusing:
            writer.close()
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, back}
        pumps = [asyncio.ensure_future(self._pump(*ends)) for ends in ((reader, back), (there, writer))]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        for one in (writer, back):
            self._writers.discard(one)
            one.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self._passing.wait()
                if self.delay:
                    await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()

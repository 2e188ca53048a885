"""The origin: a running server of one site on one or several loopback addresses, with its log and its memory.

    async with serve(site) as origin:
        ...  # origin.url, origin.seeds, origin.hosts, origin.log

It runs on the loop of the caller, so a test may keep it beside its crawler; `child.py` runs it in a process of its own.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gossamer.testing.web.connection import Connection
from gossamer.testing.web.log import OriginLog
from gossamer.testing.web.site import Site

BACKLOG = 4096
PORT_TRIES = 50


class Origin:
    """What a site is while it is served: addresses, open connections, attempts per URL, and the log."""

    def __init__(self, site: Site, log: OriginLog | None, tls: ssl.SSLContext | None) -> None:
        self.site = site
        self.scheme = "https" if tls else "http"
        self.counting = site.counted or log is not None
        self.log = log if log is not None else OriginLog()
        self.log.scheme = self.scheme
        self.loop = asyncio.get_running_loop()
        self.port = 0
        self._tls = tls
        self._servers: list[asyncio.Server] = []
        self._connections: set[Connection] = set()
        self._joined = 0
        self._attempts: Counter[tuple[str, str]] = Counter()

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.hosts[0]}/"

    @property
    def hosts(self) -> list[str]:
        """The host:port of each host that belongs to the site."""
        return list(self.site.hosts)

    @property
    def seeds(self) -> list[str]:
        return list(self.site.seeds)

    def attempt(self, host: str, path: str) -> int:
        """Counts this request; the first one for a URL is number 1."""
        key = (host, path)
        self._attempts[key] += 1
        return self._attempts[key]

    def reset(self) -> None:
        """Forgets how often anything was asked, so that every flaky page fails again."""
        self._attempts.clear()

    def joined(self, connection: Connection) -> int:
        self._connections.add(connection)
        self._joined += 1
        return self._joined

    def left(self, connection: Connection) -> None:
        self._connections.discard(connection)

    async def start(self, port: int) -> None:
        """Listens on one port on all addresses; with port 0 on any port that is free on all of them."""
        for tries_left in reversed(range(PORT_TRIES)):
            try:
                await self._listen(port)
                break
            except OSError:
                await self._close_servers()
                if port or not tries_left:
                    raise
        self.site.bind([f"{address}:{self.port}" for address in self.site.addresses], self.scheme)

    async def _listen(self, port: int) -> None:
        self.port = port
        for address in self.site.addresses:
            server = await self.loop.create_server(
                lambda: Connection(self), address, self.port, ssl=self._tls, backlog=BACKLOG
            )
            self._servers.append(server)
            self.port = server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        for connection in list(self._connections):
            connection.drop()
        await self._close_servers()
        self.log.close()

    async def _close_servers(self) -> None:
        for server in self._servers:
            server.close()
        for server in self._servers:
            await server.wait_closed()
        self._servers.clear()


@asynccontextmanager
async def serve(
    site: Site, *, port: int = 0, log: OriginLog | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[Origin]:
    """Serves the site until the block ends. Without a log, a site that is counted gets one in memory."""
    origin = Origin(site, log, tls)
    try:
        await origin.start(port)
        yield origin
    finally:
        await origin.stop()

"""A host that cannot be reached is told as soon as it is known: until it is given up there is nothing else to see."""

from __future__ import annotations

import logging
from typing import Self

from gossamer.model.host import HostView
from gossamer.model.parking import STRANGE, patience
from gossamer.ports.transport import Answer, Exchange, FetchError, Transport, TransportStatistics
from gossamer.services import figures
from gossamer.services.meanings import meaning

log = logging.getLogger("gossamer")

MOST = 1_000
"""Hosts that are remembered; those met later have their errors in the summary only."""


class Telling:
    """A transport that says once of a host that its name, its door or its certificate is wrong."""

    def __init__(self, transport: Transport, host_patience: float) -> None:
        self._transport = transport
        self._patience = host_patience
        self._known: set[str] = set()  # hosts that have answered or were told of already

    async def send(self, exchange: Exchange) -> Answer:
        try:
            answer = await self._transport.send(exchange)
        except FetchError as error:
            if error.code in STRANGE:
                self._tell(exchange.url, error.code)
            raise
        if len(self._known) < MOST:
            self._known.add(host_in(exchange.url))
        return answer

    def _tell(self, url: str, code: str) -> None:
        host = host_in(url)
        if host in self._known or len(self._known) >= MOST:
            return
        self._known.add(host)
        limit = patience(HostView(host=host), code, self._patience)
        log.warning("%s: %s; trying again for up to %s", host, meaning(code), figures.duration(limit))

    def statistics(self) -> TransportStatistics:
        return self._transport.statistics()

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._transport.__aexit__(*error)


def host_in(url: str) -> str:
    """Host and port as they stand in a URL, which an author's middleware may have changed into anything."""
    return url.partition("://")[2].partition("/")[0].rpartition("@")[2][:253]

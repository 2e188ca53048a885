"""What an origin serves: a pure function from a request and the number of its attempt to a reply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.testing.web.reply import Reply, Request


class Site(Protocol):
    """A made-up site over one or several hosts. It holds no state that a request changes.

    How often a URL was asked is counted by the origin and handed in, so that a site can be built twice (here and in
    a child process) and means the same.
    """

    @property
    def addresses(self) -> Sequence[str]:
        """The loopback addresses to listen on, one per host; all hosts get the same port."""
        ...

    @property
    def counted(self) -> bool:
        """Whether attempts are counted and logged; a site that is only fast says no."""
        ...

    @property
    def hosts(self) -> Sequence[str]:
        """The host:port of each host that belongs to the site; known after `bind`."""
        ...

    @property
    def seeds(self) -> Sequence[str]:
        """Where a crawl starts; known after `bind`."""
        ...

    def bind(self, hosts: Sequence[str], scheme: str = "http") -> None:
        """Tells the site which host:port each of its addresses became."""
        ...

    def answer(self, request: Request, attempt: int) -> Reply: ...


def loopback(count: int, first: int = 1) -> list[str]:
    """127.0.0.first and the addresses after it."""
    if not 1 <= first <= first + count - 1 <= 65_000:
        raise ValueError(f"{count} loopback addresses from 127.0.0.{first} on: 1 to 65,000 are possible")
    return [f"127.0.{number >> 8}.{number & 255}" for number in range(first, first + count)]

"""Middlewares: small functions around fetching and around handling.

`@spider.fetching` surrounds the fetch of a request: `async def f(request, call_next) -> answer`, where an answer has
status, headers and body. `@spider.handling` surrounds the handler: `async def f(page, call_next) -> effects`. Each may
change what goes in, what comes out, or answer by itself. The lowest `order` is outermost; a request names in `without` those that must not see it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from gossamer.model.errors import SpiderError
from gossamer.spiders.calling import must_be_async, name_of

CallNext = Callable[[Any], Awaitable[Any]]


class Middleware(NamedTuple):
    """One function in a chain, known by its name."""

    name: str
    call: Callable[[Any, CallNext], Awaitable[Any]]
    order: int = 0


class Middlewares:
    """An ordered chain of them."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._chain: tuple[Middleware, ...] = ()

    def add(self, function: Callable[..., Any], name: str | None = None, order: int = 0) -> None:
        name = name or name_of(function)
        must_be_async(function, self._what)
        if any(known.name == name for known in self._chain):
            raise SpiderError(f"Two middlewares are called {name!r}", hint="give one of them another name=")
        self.extend([Middleware(name, function, order)])

    def extend(self, others: Iterable[Middleware]) -> None:
        """Take in others, each in its place; equals stay in the order they came."""
        self._chain = tuple(sorted([*self._chain, *others], key=attrgetter("order")))

    def around(self, innermost: CallNext, without: tuple[str, ...] = ()) -> CallNext:
        """`innermost` as the chain lets it appear, leaving out those named."""
        call = innermost
        for middleware in reversed(self._chain):
            if middleware.name not in without:
                call = _link(middleware, call)
        return call

    @property
    def pairs(self) -> list[tuple[str, Callable[[Any, CallNext], Awaitable[Any]]]]:
        """(name, function) in order, the outermost first."""
        return [(middleware.name, middleware.call) for middleware in self._chain]

    @property
    def names(self) -> list[str]:
        """In order, the outermost first."""
        return [middleware.name for middleware in self._chain]

    def __len__(self) -> int:
        return len(self._chain)


def _link(middleware: Middleware, call_next: CallNext) -> CallNext:
    return lambda passed: middleware.call(passed, call_next)

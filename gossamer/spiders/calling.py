"""Functions of an author, however they are written: plain or async, returning or yielding.

All of them are calls whose results come one by one: the returned value, or each value of a generator. A function that
awaits nothing is run to its end on the spot; only what really has to be awaited costs a coroutine.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from types import GeneratorType
from typing import Any

from gossamer.model.errors import SpiderError

Take = Callable[[Any], None]


def is_async(function: Callable[..., Any]) -> bool:
    """True if calling it gives something to await or to iterate with `async for`."""
    called = function if inspect.isroutine(function) else getattr(function, "func", type(function).__call__)
    return inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)


def must_be_async(function: Callable[..., Any], what: str) -> None:
    if not inspect.iscoroutinefunction(function):
        raise SpiderError(
            f"{name_of(function)} is not async", where=what, hint=f"write `async def {name_of(function)}(…)`"
        )


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", None) or type(function).__name__


def drain(result: Any, take: Take) -> Awaitable[None] | None:
    """Hand each result to `take`. What cannot be had without awaiting is returned, to be awaited."""
    if type(result) is GeneratorType or isinstance(result, Iterator):
        for value in result:
            take(value)
        return None
    if isinstance(result, AsyncIterator):
        return _drain_async(result, take)
    if inspect.isawaitable(result):
        return _drain_awaited(result, take)
    if result is not None:
        take(result)
    return None


async def _drain_async(results: AsyncIterator[Any], take: Take) -> None:
    try:
        async for value in results:
            take(value)
    finally:
        # Left to the garbage collector, its `finally` blocks would run at some other time, or never.
        if isinstance(results, AsyncGenerator):
            await results.aclose()


async def _drain_awaited(result: Awaitable[Any], take: Take) -> None:
    rest = drain(await result, take)
    if rest is not None:
        await rest

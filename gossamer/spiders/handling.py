"""From a page to what its handler asks for.

`handle_now` runs a handler that awaits nothing to its end and returns its effects: most handlers are plain generators,
and a task for each would cost more than they do. Where something has to be awaited, it returns what to await instead.
`handle` is the same for those who can await anyway.

If the handler raises, `HandlerFailed` is raised and its effects are gone. Time limits are the engine's.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from gossamer.model.url import canonical
from gossamer.spiders.calling import drain, name_of
from gossamer.spiders.effects import Effects
from gossamer.spiders.failing import HandlerFailed
from gossamer.spiders.hooks import Failure
from gossamer.spiders.page import Page
from gossamer.spiders.recording import Recorder
from gossamer.spiders.routes import Route

if TYPE_CHECKING:
    from gossamer.spiders.spider import Spider

__all__ = ["Failure", "HandlerFailed", "call_hook", "handle", "handle_failure", "handle_now"]

# An author's sys.exit() must not end the worker; what ends the worker itself (cancellation, Ctrl-C) passes through.
_CAUGHT = (Exception, SystemExit)


def handle_now(spider: Spider, page: Page, *, keep: bool = False) -> Effects | Awaitable[Effects]:
    """The effects of the page's handler, or what to await for them. With `keep` they hold the yielded objects too."""
    found = spider.routes.find(page.url, page.label)
    if found is None:
        return Effects()
    route, params = found
    if len(spider.around_handling):
        return _surrounded(spider, route, params, page, keep)
    return _run(spider, route, params, page, keep)


async def handle(spider: Spider, page: Page, *, keep: bool = False) -> Effects:
    """The effects of the page's handler."""
    effects = handle_now(spider, page, keep=keep)
    return effects if isinstance(effects, Effects) else await effects


async def call_hook(
    spider: Spider, functions: list[Callable[..., Any]], *given: Any, base: str | None = None
) -> Effects:
    """Call the functions of a hook one after the other; what they return or yield is recorded as for a handler.

    A text that they yield is a URL, absolute or relative to `base`.
    """
    recorder = Recorder(
        spider.rules,
        spider.routes,
        lambda url: canonical(url, base),
        cleaners=spider.cleaners,
        texts_are_urls=True,
    )
    for function in functions:
        try:
            rest = drain(function(*given), recorder.take)
            if rest is not None:
                await rest
        except _CAUGHT as error:
            raise _failed(name_of(function), error) from error
    return recorder.finish()


async def handle_failure(spider: Spider, failure: Failure) -> Effects:
    """What `@spider.failed` asks for when this URL is given up."""
    return await call_hook(spider, spider.hooks.failed, failure, base=failure.url)


def _run(
    spider: Spider, route: Route, params: dict[str, Any], page: Page, keep: bool
) -> Effects | Awaitable[Effects]:
    recorder = Recorder(
        route.rules or spider.rules, spider.routes, page.join, cleaners=spider.cleaners, keep=keep
    )
    recorder.effects.route = route.name
    try:
        rest = drain(route.call(page, params), recorder.take)
        if rest is None:
            return recorder.finish(page)
    except _CAUGHT as error:
        raise _failed(route.name, error) from error
    return _finish_later(rest, route, recorder, page)


async def _finish_later(rest: Awaitable[None], route: Route, recorder: Recorder, page: Page) -> Effects:
    try:
        await rest
        return recorder.finish(page)
    except _CAUGHT as error:
        raise _failed(route.name, error) from error


async def _surrounded(
    spider: Spider, route: Route, params: dict[str, Any], page: Page, keep: bool
) -> Effects:
    async def innermost(passed: Page) -> Effects:
        effects = _run(spider, route, params, passed, keep)
        return await effects if inspect.isawaitable(effects) else effects

    try:
        effects = await spider.around_handling.around(innermost, page.request.without)(page)
        if not isinstance(effects, Effects):
            raise TypeError(
                f"a handling middleware returned {type(effects).__name__}, not what call_next gave it"
            )
    except HandlerFailed:
        raise
    except _CAUGHT as error:
        raise _failed("handling", error) from error
    return effects


def _failed(function: str, error: BaseException) -> HandlerFailed:
    return error if isinstance(error, HandlerFailed) else HandlerFailed(function, error)

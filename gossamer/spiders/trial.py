"""A page handled offline: the handler's answer, with no network, no store and no engine."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Mapping
from typing import Any

import msgspec

from gossamer.model.errors import UsageError
from gossamer.model.request import Request
from gossamer.model.url import canonical
from gossamer.spiders.effects import OWN, Dropped, Effects
from gossamer.spiders.handling import handle_now
from gossamer.spiders.page import Fetch, Page
from gossamer.spiders.spider import Spider

_HTML = {"Content-Type": "text/html; charset=utf-8"}


class Trial(msgspec.Struct, frozen=True):
    """What a handler asked for."""

    items: list[Any]
    """The items as the handler yielded them (after cleaning)."""
    written: list[dict[str, Any]]
    """The same items as they would be stored: their JSON."""
    requests: list[Request]
    """All links to follow, each with the depth it would have."""
    counts: dict[str, int]
    """The author's own counters."""
    dropped: list[Dropped]
    """Items that were dropped or invalid, with the reason."""
    handler: str | None
    """The name of the function that took the page; None: no route did, or the status was not one it asks for."""

    @property
    def urls(self) -> list[str]:
        """The URLs to follow."""
        return [request.url for request in self.requests]


def try_page(
    spider: Spider,
    url: str,
    html: str | bytes = "",
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    label: str | None = None,
    meta: dict[str, Any] | None = None,
    pages: Mapping[str, str | bytes] | None = None,
    args: Mapping[str, Any] | None = None,
) -> Trial:
    """Route and handle this page as a crawl would. `pages` are the answers to `page.fetch`, by URL.

    Works in plain code and in an async test alike: an async handler gets a loop of its own.
    """
    request = Request(canonical(url), label=label, meta=meta or {})
    page = _page(request, html, status, headers, _answers(pages or {}))
    return contextvars.copy_context().run(_try, spider, page, args)


def _try(spider: Spider, page: Page, args: Mapping[str, Any] | None) -> Trial:
    if args:
        spider.use_args(args)  # ends with the context that this runs in
    if not spider.wants(page):
        return _trial(Effects(), page)
    effects = handle_now(spider, page, keep=True)
    return _trial(effects if isinstance(effects, Effects) else _await(effects), page)


def _trial(effects: Effects, page: Page) -> Trial:
    follows = [[f] if isinstance(f, Request) else list(f) for f in effects.follows]
    return Trial(
        items=effects.values,
        written=[msgspec.json.decode(item.data) for item in effects.items],
        requests=[request.changed(depth=page.depth + 1) for some in follows for request in some],
        counts={name.removeprefix(OWN): n for name, n in effects.counts.items() if name.startswith(OWN)},
        dropped=effects.dropped,
        handler=effects.route,
    )


def _page(
    request: Request, body: str | bytes, status: int, headers: Mapping[str, str] | None, fetch: Fetch | None
) -> Page:
    data = body.encode() if isinstance(body, str) else body
    if headers is None:
        headers = _HTML if isinstance(body, str) else {}  # of bytes the page itself says what they are
    return Page(request, status=status, headers=headers, body=data, fetch=fetch)


def _answers(pages: Mapping[str, str | bytes]) -> Fetch:
    known = {canonical(url): body for url, body in pages.items()}

    async def fetch(request: Request) -> Page:
        if request.url not in known:
            raise UsageError(
                "The handler fetches a page that the test does not give",
                where=request.url,
                hint="add it: try_page(…, pages={url: html})",
            )
        return _page(request, known[request.url], 200, None, fetch)

    return fetch


def _await(effects: Awaitable[Effects]) -> Effects:
    async def awaited() -> Effects:
        return await effects

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(awaited())
    # A loop runs already (an async test, a notebook) and cannot be entered again: another thread has none.
    return _in_thread(awaited)


def _in_thread(awaited: Any) -> Effects:
    results: list[Effects] = []
    errors: list[BaseException] = []
    context = contextvars.copy_context()

    def work() -> None:
        try:
            results.append(context.run(asyncio.run, awaited()))
        except BaseException as error:  # noqa: BLE001  (handed to the caller, who is another thread)
            errors.append(error)

    thread = threading.Thread(target=work, name="try_page")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]

"""Around every fetch: an ordered chain of small functions, from the settings and from the author.

A middleware is `async def f(request, call_next) -> answer`. The standard ones give default headers and the user agent, keep
cookies, and serve a development cache. Where only static headers apply, the chain says so (`plain`), and nothing is called.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import structs

from gossamer.model.cookies import CookieJar
from gossamer.model.errors import SpiderError
from gossamer.model.request import Request
from gossamer.model.settings import Settings
from gossamer.model.url import fingerprint, host_key
from gossamer.ports.transport import Answer
from gossamer.spiders.page import Page
from gossamer.spiders.spider import Spider

Send = Callable[[Request], Awaitable[Answer]]
Surround = Callable[[Request, Send], Awaitable[Answer]]

JARS = 10_000  # hosts whose cookies are kept at once


class AnswerCache(Protocol):
    """Answers kept for development, by fingerprint."""

    async def get(self, key: bytes) -> Answer | None: ...

    async def put(self, key: bytes, answer: Answer) -> None: ...


class Chain:
    """The middlewares of one task, in their order."""

    def __init__(self, headers: tuple[tuple[str, str], ...], links: list[tuple[str, Surround]], *, cookies: Cookies | None) -> None:
        self.headers = headers
        self._links = links
        self._cookies = cookies

    @property
    def plain(self) -> bool:
        """True while nothing but the static headers applies."""
        return not self._links and (self._cookies is None or self._cookies.empty)

    def notice(self, request: Request, answer: Answer) -> None:
        """An answer that came without the chain: it may be the first to set a cookie."""
        if self._cookies is not None and "cookies" not in request.without:
            self._cookies.keep(request, answer)

    async def send(self, request: Request, send: Send) -> Answer:
        """The answer as the chain lets it appear."""
        call = self._innermost(send)
        for name, surround in reversed(self._links):
            if name not in request.without:
                call = _link(surround, call)
        return await call(request)

    def _innermost(self, send: Send) -> Send:
        async def innermost(request: Request) -> Answer:
            headers = {} if "headers" in request.without else dict(self.headers)
            own = {name.lower() for name in request.headers}
            headers = {name: value for name, value in headers.items() if name.lower() not in own} | request.headers
            cookie = self._cookie_header(request)
            if cookie:
                headers["Cookie"] = cookie
            answer = await send(request.changed(headers=headers))
            self.notice(request, answer)
            return answer

        return innermost

    def _cookie_header(self, request: Request) -> str:
        kept = None
        if self._cookies is not None and "cookies" not in request.without:
            kept = self._cookies.header(request.url)
        own = "; ".join(f"{name}={value}" for name, value in request.cookies.items())
        return "; ".join(part for part in (kept, own) if part)


class Cookies:
    """One bounded jar for each host."""

    def __init__(self) -> None:
        self._jars: OrderedDict[str, CookieJar] = OrderedDict()

    @property
    def empty(self) -> bool:
        return not self._jars

    def keep(self, request: Request, answer: Answer) -> None:
        lines = [value for name, value in answer.headers if name.lower() == "set-cookie"]
        if lines:
            jar = self._jars.setdefault(host_key(request.url), CookieJar())
            jar.store(request.url, lines, time.time())
            if len(self._jars) > JARS:
                self._jars.popitem(last=False)

    def header(self, url: str) -> str | None:
        jar = self._jars.get(host_key(url))
        return jar.header_for(url, time.time()) if jar is not None else None


def plan(settings: Settings, spider: Spider, cache: AnswerCache | None = None) -> Chain:
    """The chain of a task: the author's own outside, then the development cache, then headers and cookies."""
    headers = {"User-Agent": settings.user_agent, "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
    headers = {name: value for name, value in headers.items() if name.lower() not in {n.lower() for n in settings.headers}}
    links: list[tuple[str, Surround]] = []
    if len(spider.around_fetching):
        links.append(("", _authors(spider)))
    if cache is not None:
        links.append(("cache", _cached(cache)))
    return Chain(tuple((headers | settings.headers).items()), links, cookies=Cookies() if settings.cookies else None)


def _authors(spider: Spider) -> Surround:
    """The author's own middlewares see pages; what they return stands for the answer."""

    async def surround(request: Request, call_next: Send) -> Answer:
        last: Answer | None = None

        async def innermost(passed: Request) -> Page:
            nonlocal last
            last = await call_next(passed)
            return Page(passed, status=last.status, headers=last.headers, body=last.body)

        page = await spider.around_fetching.around(innermost, request.without)(request)
        if not isinstance(page, Page):
            raise SpiderError(
                f"A fetching middleware returned {type(page).__name__}", hint="return a page: what call_next gave, or your own"
            )
        made = Answer(
            page.status, list(page.headers.items()), page.body, time.monotonic(), 0.0, 0.0, 0, "", ""
        )
        return made if last is None else structs.replace(last, status=page.status, headers=made.headers, body=page.body)

    return surround


def _cached(cache: AnswerCache) -> Surround:
    async def surround(request: Request, call_next: Send) -> Answer:
        if request.method != "GET" or request.body:
            return await call_next(request)
        key = fingerprint("GET", request.url)
        kept = await cache.get(key)
        if kept is not None:
            return kept
        answer = await call_next(request)
        if answer.status < 400:
            await cache.put(key, answer)
        return answer

    return surround


def _link(surround: Surround, call_next: Send) -> Send:
    async def link(request: Request) -> Any:
        return await surround(request, call_next)

    return link

"""Around every fetch: an ordered chain of small functions, from the author and from the settings.

A middleware is `async def f(request, call_next) -> answer`. From the outside in: the author's own by their order, the
development cache, then (as plain functions, not coroutines, for nearly every request of a crawl passes them)
headers, user agent and cookies, then the transport. A request names in `without` the ones that must not see it: the
author's by their names, ours as `cache`, `headers`, `user_agent`, `cookies`.

The hot path: while only the static headers apply, `plain` is true, the caller sends `headers` and calls `notice` with the
answer. While there are cookies but no coroutines to run, `quick` is true, and `headers_for` replaces `headers`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any

from msgspec import structs

from gossamer.model.cookies import CookieJar
from gossamer.model.errors import SpiderError
from gossamer.model.request import Request
from gossamer.model.retry import cause_of, code_of
from gossamer.model.settings import Settings
from gossamer.model.url import fingerprint, host_key, origin_of
from gossamer.ports.cache import AnswerCache
from gossamer.ports.transport import Answer, FetchError
from gossamer.spiders.headers import Headers
from gossamer.spiders.spider import Spider

Send = Callable[[Request], Awaitable[Answer]]
Surround = Callable[[Request, Send], Awaitable[Answer]]
Fields = tuple[tuple[str, str], ...]

CACHE, HEADERS, USER_AGENT, COOKIES = "cache", "headers", "user_agent", "cookies"
CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization"})
STANDARD = frozenset({CACHE, HEADERS, USER_AGENT, COOKIES})
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


class MiddlewareFailed(FetchError):  # noqa: N818  (a fact, like the error that it stands beside)
    """An author's middleware raised, or returned what is no answer: the page ends FAILED(middleware_error)."""

    def __init__(self, detail: str) -> None:
        super().__init__("middleware_error", detail)  # type: ignore[arg-type]


class Chain:
    """The middlewares of one task, in their order."""

    def __init__(
        self,
        headers: Fields,
        links: Sequence[tuple[str, Surround]] = (),
        *,
        jar: CookieJar | None = None,
        home: Collection[str] = (),
    ) -> None:
        self.headers = headers
        """What every request carries: the default headers and the user agent."""
        self.headers_of_robots = tuple(field for field in headers if field[0].lower() not in CREDENTIALS)
        """The same for a robots.txt, which is the same for everybody."""
        self.quick = not links
        self._links = tuple(links)
        self._names = tuple((name, value, name.lower()) for name, value in headers)
        self._home = home
        self._guarded = self.headers_of_robots != headers
        self._jar = jar
        self._baked = False  # the jar has ever had a cookie

    @property
    def plain(self) -> bool:
        """True while nothing but the static headers applies to a request that says nothing of its own."""
        return self.quick and not self._baked

    def notice(self, request: Request, answer: Answer) -> None:
        """Keep the cookies of an answer that came without the chain."""
        jar = self._jar
        if jar is None:
            return
        lines = [value for name, value in answer.headers if len(name) == 10 and name.lower() == "set-cookie"]
        if lines and COOKIES not in request.without:
            jar.store(request.url, lines, time.time())
            self._baked = True

    def headers_for(self, request: Request) -> Fields:
        """The static headers, replaced by the request's own of the same name, and the cookies: its own before the jar's."""
        own, without = request.headers, request.without
        cookie = self._cookie(request)
        abroad = self._guarded and not self._is_home(request.url)
        if not own and not without:
            headers = self.headers_of_robots if abroad else self.headers
            return (*headers, ("Cookie", cookie)) if cookie else headers
        replaced = {name.lower() for name in own} | (CREDENTIALS if abroad else set())
        fields = [
            (name, value)
            for name, value, lower in self._names
            if lower not in replaced and (USER_AGENT if lower == "user-agent" else HEADERS) not in without
        ]
        fields += own.items()
        if cookie and not any(name.lower() == "cookie" for name in own):
            fields.append(("Cookie", cookie))
        return tuple(fields)

    async def send(self, request: Request, send: Send) -> Answer:
        """The answer as the chain lets it appear. `send` gets the request with all its headers."""

        async def innermost(passed: Request) -> Answer:
            if passed.url != request.url and host_key(passed.url) != host_key(request.url):
                # The lease is for one host: another's limits would not be kept.
                raise MiddlewareFailed(
                    "a middleware changed the host of a request; yield a new request instead"
                )
            answer = await send(structs.replace(passed, headers=dict(self.headers_for(passed))))
            self.notice(passed, answer)
            return answer

        call: Send = innermost
        for name, surround in reversed(self._links):
            if name not in request.without:
                call = _link(surround, call)
        return await call(request)

    def _is_home(self, url: str) -> bool:
        """Whether this is an origin that the crawl starts from: the credentials among its headers are for no other."""
        return origin_of(url).prefix in self._home

    def _cookie(self, request: Request) -> str | None:
        kept = None
        if self._baked and self._jar is not None and COOKIES not in request.without:
            kept = self._jar.header_for(request.url, time.time())
        if not request.cookies:
            return kept
        own = _pairs(request.cookies)
        if not kept:
            return own
        others = [pair for pair in kept.split("; ") if pair.partition("=")[0] not in request.cookies]
        return "; ".join([own, *others])


def plan(
    settings: Settings, spider: Spider, cache: AnswerCache | None = None, home: Collection[str] = ()
) -> Chain:
    """The chain of a task whose seeds are on these hosts. Raises UsageError or SpiderError for headers or names that cannot be."""
    headers = static_headers(settings)
    # It may ask again, and what it does besides has a handler's time.
    most = 3 * settings.timeout + settings.handler_soft
    links: list[tuple[str, Surround]] = [
        (name, _authors(name, call, most)) for name, call in spider.around_fetching.pairs
    ]
    for name, _ in links:
        if name in STANDARD:
            raise SpiderError(
                f"A middleware is called {name!r}, as one of ours", hint="give it another name="
            )
    if cache is not None:
        links.append((CACHE, _cached(cache)))
    return Chain(headers, links, jar=CookieJar() if settings.cookies else None, home=frozenset(home))


def static_headers(settings: Settings) -> Fields:
    """What every request of a task carries; the settings' own headers replace ours."""
    ours = {"User-Agent": settings.user_agent, "Accept": ACCEPT}
    named = {name.lower() for name in settings.headers}
    headers = {name: value for name, value in ours.items() if name.lower() not in named} | settings.headers
    Request("http://settings.invalid/", headers=headers)  # refuses what could split a request
    return tuple(headers.items())


def _authors(name: str, call: Callable[[Any, Any], Awaitable[Any]], limit: float) -> Surround:
    """An author's function: it may answer by itself with anything that has status, headers and body."""

    async def surround(request: Request, call_next: Send) -> Answer:
        try:
            async with asyncio.timeout(limit):
                given = await call(request, call_next)
            return given if type(given) is Answer else _answer(given)
        except FetchError:
            raise
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # we are a task
                raise
            raise MiddlewareFailed(f"the middleware {name} waited for a task that was cancelled") from None
        except TimeoutError:
            raise MiddlewareFailed(f"the middleware {name} took more than {limit:g} s") from None
        except Exception as error:
            raise MiddlewareFailed(f"the middleware {name} raised {type(error).__name__}: {error}") from error

    return surround


def _answer(given: Any) -> Answer:
    """An answer of the author's own making. Nothing was sent, so politeness does not count it."""
    status, headers, body = given.status, given.headers, given.body
    if isinstance(headers, Headers):
        headers = headers.fields()
    fields = list(headers.items() if isinstance(headers, Mapping) else headers)
    body = body.encode() if isinstance(body, str) else bytes(body)
    return Answer(int(status), fields, body, 0.0, 0.0, 0.0, 0, "", "")


def _cached(cache: AnswerCache) -> Surround:
    """Serve what was answered before; keep what another attempt would not change."""

    async def surround(request: Request, call_next: Send) -> Answer:
        if request.method != "GET" or request.body:
            return await call_next(request)
        key = _cache_key(request)
        kept = await cache.get(key)
        if kept is not None:
            # Sent before time began: the host's next turn is not moved by what was never sent.
            return structs.replace(kept, sent_at=0.0, latency=0.0, seconds=0.0, wire_bytes=0)
        answer = await call_next(request)
        code = code_of(answer.status)
        if not (code and cause_of(code).failed):
            await cache.put(key, answer)
        return answer

    return surround


def _cache_key(request: Request) -> bytes:
    """Two requests that differ in what they say of themselves may be answered differently."""
    said = sorted((name.lower(), value) for name, value in request.headers.items()) + sorted(
        request.cookies.items()
    )
    return fingerprint("GET", request.url, repr(said).encode() if said else None)


def _pairs(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def _link(surround: Surround, call_next: Send) -> Send:
    return lambda request: surround(request, call_next)

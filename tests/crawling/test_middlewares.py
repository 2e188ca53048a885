"""Every request passes the chain in one order, and a plain one passes nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from gossamer.crawling.middlewares import ACCEPT, Chain, MiddlewareFailed, plan
from gossamer.model.errors import SpiderError, UsageError
from gossamer.model.request import Request
from gossamer.model.settings import USER_AGENT, Settings
from gossamer.ports.transport import Answer, FetchError
from gossamer.spiders.page import Page
from gossamer.spiders.spider import Spider

URL = "https://shop.example/a"


def answer(status: int = 200, *headers: tuple[str, str], body: bytes = b"from the wire") -> Answer:
    return Answer(status, list(headers), body, time.monotonic(), 0.1, 0.2, len(body), "1.1", "192.0.2.1")


class Wire:
    """Stands for the transport: remembers what was sent."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.sent: list[Request] = []

    async def __call__(self, request: Request) -> Answer:
        self.sent.append(request)
        return self.answers.pop(0) if self.answers else answer()


class Cache:
    """A development cache in memory."""

    def __init__(self) -> None:
        self.kept: dict[bytes, Answer] = {}

    async def get(self, key: bytes) -> Answer | None:
        return self.kept.get(key)

    async def put(self, key: bytes, answer: Answer) -> None:
        self.kept[key] = answer


def spider() -> Spider:
    return Spider("shop", start=URL)


def chain(**settings: Any) -> Chain:
    return plan(Settings(**settings), spider())


def test_static_headers_are_made_once():
    """The user agent and Accept, replaced by the settings' own headers whatever their case."""
    assert chain().headers == (("User-Agent", USER_AGENT), ("Accept", ACCEPT))
    own = chain(headers={"accept": "text/plain", "X-Key": "1"}, user_agent="Bot/1").headers
    assert own == (("User-Agent", "Bot/1"), ("accept", "text/plain"), ("X-Key", "1"))


@pytest.mark.parametrize("headers", [{"X": "a\r\nEvil: 1"}, {"Bad Name": "x"}, {"Host": "elsewhere"}])
def test_headers_that_would_split_a_request_are_refused(headers: dict[str, str]):
    """Settings cannot smuggle a header line, nor write what is the transport's to write."""
    with pytest.raises(UsageError):
        chain(headers=headers)


def test_a_user_agent_cannot_hold_a_line_break():
    """The user agent is a header like any other."""
    with pytest.raises(UsageError):
        chain(user_agent="Bot\nEvil: 1")


def test_a_plain_chain_stays_plain_until_a_cookie_comes():
    """The hot path needs no call at all; the first Set-Cookie ends it, and then only for the cookies' sake."""
    made = chain()
    assert made.plain
    assert made.quick
    made.notice(Request(URL), answer(200, ("Content-Type", "text/html")))
    assert made.plain
    made.notice(Request(URL), answer(200, ("Set-Cookie", "a=1")))
    assert not made.plain
    assert made.quick
    assert ("Cookie", "a=1") in made.headers_for(Request(URL))
    assert made.headers_for(Request("https://other.example/")) == made.headers


def test_without_cookies_nothing_is_kept():
    """`cookies = false` keeps the chain plain for ever."""
    made = chain(cookies=False)
    made.notice(Request(URL), answer(200, ("Set-Cookie", "a=1")))
    assert made.plain


def test_a_requests_own_headers_win():
    """They replace static ones of the same name in any case; the others stay."""
    fields = dict(chain().headers_for(Request(URL, headers={"user-agent": "Me", "X": "1"})))
    assert fields == {"Accept": ACCEPT, "user-agent": "Me", "X": "1"}


def test_each_standard_part_can_be_switched_off():
    """`without` takes away the user agent, the default headers or the jar, each alone."""
    made = chain()
    made.notice(Request(URL), answer(200, ("set-cookie", "a=1")))

    def names(*without: str) -> list[str]:
        return [name for name, _ in made.headers_for(Request(URL, without=without))]

    assert names() == ["User-Agent", "Accept", "Cookie"]
    assert names("user_agent") == ["Accept", "Cookie"]
    assert names("headers") == ["User-Agent", "Cookie"]
    assert names("cookies") == ["User-Agent", "Accept"]
    assert names("user_agent", "headers", "cookies") == []


def test_an_answer_to_a_request_without_cookies_sets_none():
    """What must not see the jar does not fill it either."""
    made = chain()
    made.notice(Request(URL, without=("cookies",)), answer(200, ("Set-Cookie", "a=1")))
    assert made.plain


def test_a_requests_own_cookies_stand_before_the_jars():
    """They are sent even without the jar, replace the jar's of that name, and give way to a Cookie header."""
    made = chain()
    made.notice(Request(URL), answer(200, ("Set-Cookie", "a=jar"), ("Set-Cookie", "b=jar")))

    def cookie(**request: Any) -> str | None:
        return dict(made.headers_for(Request(URL, **request))).get("Cookie")

    assert cookie() == "a=jar; b=jar"
    assert cookie(cookies={"a": "mine", "c": "mine"}) == "a=mine; c=mine; b=jar"
    assert cookie(cookies={"a": "mine"}, without=("cookies",)) == "a=mine"
    assert cookie(headers={"Cookie": "all=mine"}, cookies={"a": "mine"}) == "all=mine"


async def test_the_chain_sends_all_headers_and_keeps_cookies():
    """Through `send` a request arrives with its headers, and the answer's cookies come back with the next."""
    wire, made = Wire(answer(200, ("Set-Cookie", "sid=7; Path=/"))), chain()
    got = await made.send(Request(URL, headers={"X": "1"}), wire)
    await made.send(Request(URL), wire)
    assert got.body == b"from the wire"
    assert wire.sent[0].headers == {"User-Agent": USER_AGENT, "Accept": ACCEPT, "X": "1"}
    assert wire.sent[1].headers["Cookie"] == "sid=7"


async def test_the_authors_functions_surround_in_their_order():
    """The lowest order is outermost; each may change the request and the answer; a request may leave one out."""
    own, seen = spider(), []

    def tracing(name: str) -> Callable[..., Awaitable[Answer]]:
        async def trace(request: Request, call_next: Callable[[Request], Awaitable[Answer]]) -> Answer:
            seen.append(f">{name}")
            got = await call_next(request.changed(headers={**request.headers, f"X-{name}": "1"}))
            seen.append(f"<{name}")
            return got

        return trace

    own.fetching(tracing("inner"), name="inner", order=5)
    own.fetching(tracing("outer"), name="outer", order=1)
    made, wire = plan(Settings(), own), Wire()
    assert not made.plain
    assert not made.quick
    await made.send(Request(URL), wire)
    assert seen == [">outer", ">inner", "<inner", "<outer"]
    assert {"X-inner", "X-outer"} <= set(wire.sent[0].headers)
    seen.clear()
    await made.send(Request(URL, without=("outer",)), wire)
    assert seen == [">inner", "<inner"]


async def test_an_author_may_answer_alone():
    """A page, or anything with status, headers and body, stands for an answer, and nothing is sent."""
    own = spider()

    async def offline(request: Request, call_next: Any) -> Page:
        return Page(request, status=203, headers=[("X", "1"), ("X", "2")], body=b"made")

    own.fetching(offline)
    wire = Wire()
    got = await plan(Settings(), own).send(Request(URL), wire)
    assert (got.status, got.headers, got.body, got.wire_bytes, got.sent_at) == (
        203,
        [("X", "1"), ("X", "2")],
        b"made",
        0,
        0.0,
    )
    assert wire.sent == []


@pytest.mark.parametrize("given", [None, "text", 5, object()])
async def test_a_wrong_answer_fails_the_page_alone(given: object):
    """What is no answer is FAILED(middleware_error), with the name of the culprit."""
    own = spider()

    async def wrong(request: Request, call_next: Any) -> object:
        return given

    own.fetching(wrong)
    with pytest.raises(MiddlewareFailed, match="wrong") as caught:
        await plan(Settings(), own).send(Request(URL), Wire())
    assert caught.value.code == "middleware_error"


async def test_a_raising_function_fails_the_page_alone():
    """An exception of the author's becomes a failed fetch; one of the transport passes as it is."""
    own = spider()

    async def raising(request: Request, call_next: Any) -> Answer:
        await call_next(request)
        raise ValueError("oops")

    own.fetching(raising)

    async def broken(request: Request) -> Answer:
        raise FetchError("dns")

    with pytest.raises(MiddlewareFailed, match="raising raised ValueError: oops"):
        await plan(Settings(), own).send(Request(URL), Wire())
    with pytest.raises(FetchError) as caught:
        await plan(Settings(), own).send(Request(URL), broken)
    assert caught.value.code == "dns"


async def test_a_middleware_keeps_to_its_host():
    """The lease is for one host: a request that was turned to another is not sent; another path is."""
    own = spider()

    async def elsewhere(request: Request, call_next: Any) -> Any:
        return await call_next(request.changed(url="https://other.example/"))

    own.fetching(elsewhere)
    wire = Wire()
    with pytest.raises(MiddlewareFailed, match="host"):
        await plan(Settings(), own).send(Request(URL), wire)
    assert wire.sent == []
    await plan(Settings(), own).send(Request("https://other.example/x"), wire)
    assert wire.sent[0].url == "https://other.example/"


def test_our_names_are_reserved():
    """`without=("cookies",)` always means ours."""
    own = spider()

    async def cookies(request: Request, call_next: Any) -> Any:
        return await call_next(request)

    own.fetching(cookies)
    with pytest.raises(SpiderError, match="cookies"):
        plan(Settings(), own)


async def test_the_cache_asks_once():
    """The second time nothing is sent, the answer is the same, and politeness is not charged for it."""
    wire = Wire(answer(404, ("X", "1")))
    made = plan(Settings(), spider(), Cache())
    assert not made.plain
    first = await made.send(Request(URL), wire)
    second = await made.send(Request(URL), wire)
    assert len(wire.sent) == 1
    assert (second.status, second.headers, second.body) == (first.status, first.headers, first.body)
    assert (second.sent_at, second.wire_bytes) == (0.0, 0)


@pytest.mark.parametrize("status", [500, 503, 429, 408, 206])
async def test_what_another_attempt_may_change_is_not_cached(status: int):
    """A cached 503 would be a 503 for ever."""
    wire, made = Wire(answer(status), answer(200)), plan(Settings(), spider(), Cache())
    await made.send(Request(URL), wire)
    assert (await made.send(Request(URL), wire)).status == 200


@pytest.mark.parametrize(
    "other",
    [
        Request(URL, method="POST"),
        Request(URL, method="POST", body=b"x"),
        Request(URL + "?b"),
        Request(URL, headers={"Accept-Language": "zh"}),
        Request(URL, cookies={"a": "1"}),
        Request(URL, without=("cache",)),
    ],
)
async def test_the_cache_does_not_mix_requests(other: Request):
    """Another method, URL, header or cookie is another request, and one may leave the cache out."""
    wire, made = Wire(), plan(Settings(), spider(), Cache())
    await made.send(Request(URL), wire)
    await made.send(other, wire)
    assert len(wire.sent) == 2


def test_credentials_of_the_settings_are_for_the_hosts_of_the_start() -> None:
    """Authorization and Cookie given for all requests go to no origin that the crawl was only led to, nor to its own host in
    clear text; other headers do."""
    settings = Settings(headers={"Authorization": "Bearer s3cret", "Cookie": "id=1", "X-Team": "a"})
    made = plan(settings, spider(), home=("https://shop.example", "https://shop.example:8443"))

    def names(url: str, **more: Any) -> set[str]:
        return {name.lower() for name, _ in made.headers_for(Request(url, **more))}

    for at_home in ("https://shop.example/a", "https://shop.example:8443/"):
        assert {"authorization", "cookie", "x-team"} <= names(at_home)
    for abroad in ("https://other.example/", "https://shop.example:9000/", "http://shop.example/"):
        assert not {"authorization", "cookie"} & names(abroad)
        assert "x-team" in names(abroad)
    assert "authorization" in names("https://other.example/", headers={"Authorization": "the request's own"})
    assert not {"authorization", "cookie"} & {name.lower() for name, _ in made.headers_of_robots}


async def test_a_middleware_that_never_answers_is_left() -> None:
    """It has its time, like a handler; then the page ends FAILED(middleware_error), and its slot is free."""
    author = spider()

    @author.fetching
    async def forever(request: Request, call_next: Any) -> Any:
        await asyncio.sleep(3600)

    made = plan(Settings(timeout=0.02, handler_soft=0.02), author)
    with pytest.raises(MiddlewareFailed, match="took more than"):
        await made.send(Request(URL), Wire())

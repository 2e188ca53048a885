"""Middlewares around fetching and around handling."""

from __future__ import annotations

import pytest

from gossamer.model.errors import SpiderError
from gossamer.model.request import Request
from gossamer.spiders.handling import HandlerFailed, handle, handle_now
from gossamer.spiders.page import Page
from gossamer.spiders.spider import Spider

URL = "https://shop.example/"


async def test_the_lowest_order_is_outermost_and_equals_keep_their_order():
    """Each wraps the next; what goes in and comes out passes through all of them."""
    spider, said = Spider("x"), []

    @spider.fetching(order=5)
    async def inner(request, call_next):
        said.append("inner")
        return await call_next(request.changed(headers={"X-In": "1"}))

    @spider.fetching
    async def outer(request, call_next):
        said.append("outer")
        return f"<{await call_next(request)}>"

    @spider.fetching(name="also outer")
    async def third(request, call_next):
        said.append("third")
        return await call_next(request)

    async def send(request):
        return f"{request.url} {request.headers}"

    answer = await spider.around_fetching.around(send)(Request(URL))
    assert said == ["outer", "third", "inner"]
    assert answer == f"<{URL} {{'X-In': '1'}}>"
    assert (
        spider.around_fetching.names
        == [name for name, _ in spider.around_fetching.pairs]
        == ["outer", "also outer", "inner"]
    )


async def test_a_request_names_those_that_must_not_see_it():
    """`without` switches single middlewares off."""
    spider = Spider("x")

    @spider.fetching
    async def refuses(request, call_next):
        return "refused"

    async def send(request):
        return "sent"

    assert await spider.around_fetching.around(send)(Request(URL)) == "refused"
    assert await spider.around_fetching.around(send, ("refuses",))(Request(URL)) == "sent"


async def test_handling_is_surrounded_too():
    """It sees the page, may look at the effects, and is left out where the request says so."""
    spider = Spider("x")

    @spider.handling
    async def note(page, call_next):
        effects = await call_next(page)
        effects.count("own:noted", len(effects.items))
        return effects

    spider.page()(lambda page: {"n": 1})

    effects = await handle(spider, Page(Request(URL)))
    assert effects.counts == {"own:noted": 1}
    assert (await handle(spider, Page(Request(URL, without=("note",))))).counts == {}


async def test_async_handlers_are_surrounded_alike():
    """The middleware awaits whatever the handler is."""
    spider = Spider("x")

    @spider.handling
    async def through(page, call_next):
        return await call_next(page)

    @spider.page()
    async def handler(page):
        yield {"n": 1}

    assert len((await handle(spider, Page(Request(URL)))).items) == 1


async def test_failures_around_handling_are_handler_failures():
    """A middleware that raises, or forgets to return, fails the page; the handler's own failure keeps its place."""
    forgets, raises, passes = Spider("a"), Spider("b"), Spider("c")

    @forgets.handling
    async def forget(page, call_next):
        await call_next(page)

    @raises.handling
    async def broken(page, call_next):
        raise RuntimeError("no")

    @passes.handling
    async def through(page, call_next):
        return await call_next(page)

    for spider in (forgets, raises):
        spider.page()(lambda page: None)
    passes.page()(lambda page: 1 / 0)

    for spider, said in (
        (forgets, "returned NoneType"),
        (raises, "RuntimeError: no"),
        (passes, "<lambda> raised ZeroDivisionError"),
    ):
        with pytest.raises(HandlerFailed, match=said):
            await handle(spider, Page(Request(URL)))


def test_mistakes_are_told_when_the_middleware_is_declared():
    """One that is not async, or has the name of another, or cleaning that is async."""
    spider = Spider("x")

    @spider.fetching
    async def auth(request, call_next): ...

    with pytest.raises(SpiderError, match="not async"):
        spider.fetching(lambda request, call_next: None)
    with pytest.raises(SpiderError, match="Two middlewares are called 'auth'"):
        spider.fetching(auth)
    with pytest.raises(SpiderError, match="cleaning is not"):
        spider.cleaning(auth)


def test_a_page_without_a_route_is_not_surrounded():
    """Nobody handles it, so nothing surrounds that."""
    spider = Spider("x")

    @spider.handling
    async def never(page, call_next):
        raise AssertionError

    assert handle_now(spider, Page(Request(URL))).route is None  # type: ignore[union-attr]

"""From a page to its effects, however the handler is written."""

from __future__ import annotations

import asyncio
import dataclasses
import sys

import msgspec
import pytest

from gossamer.model.errors import GossamerError
from gossamer.model.request import Request
from gossamer.spiders import recording
from gossamer.spiders.effects import Effects
from gossamer.spiders.follow import Follow
from gossamer.spiders.handling import Failure, HandlerFailed, handle, handle_failure, handle_now
from gossamer.spiders.page import Page
from gossamer.spiders.recording import Drop
from gossamer.spiders.spider import Spider

URL = "https://shop.example/list"
HTML = b"<h1>Hi</h1><a href=/a>a</a><a href=/b>b</a>"


def page(**request) -> Page:
    return Page(Request(URL, **request), body=HTML)


def data(effects: Effects) -> list[bytes]:
    return [item.data for item in effects.items]


def plain_value(page):
    return {"n": 1}


def plain_list(page):
    return [{"n": 1}, page.follow("a")]


def generator(page):
    yield {"n": 1}
    yield page.follow("a")


def returns_generator(page):
    return (item for item in [{"n": 1}, page.follow("a")])


async def async_value(page):
    await asyncio.sleep(0)
    return {"n": 1}


async def async_generator(page):
    yield {"n": 1}
    await asyncio.sleep(0)
    yield page.follow("a")


async def returns_async_generator(page):
    return async_generator(page)


@pytest.mark.parametrize(
    "handler",
    [
        plain_value,
        plain_list,
        generator,
        returns_generator,
        async_value,
        async_generator,
        returns_async_generator,
    ],
)
async def test_every_kind_of_handler_gives_the_same_effects(handler):
    """Plain or async, returning or yielding: the engine sees no difference."""
    spider = Spider("x")
    spider.page()(handler)

    effects = await handle(spider, page())
    assert data(effects) == [b'{"n":1}']
    assert effects.route == handler.__name__
    assert [f.urls for f in effects.follows] in ([], [["https://shop.example/a", "https://shop.example/b"]])
    assert effects.urls() in (0, 2)


@pytest.mark.parametrize("handler", [plain_value, plain_list, generator, returns_generator])
def test_a_handler_that_awaits_nothing_needs_no_loop(handler):
    """The engine saves a task for the handlers that nearly all authors write."""
    spider = Spider("x")
    spider.page()(handler)
    assert isinstance(handle_now(spider, page()), Effects)


def test_a_page_that_no_route_takes_has_no_effects():
    """The engine sees by `route` that nobody was asked."""
    assert handle_now(Spider("x"), page()) == Effects()


def test_everything_a_handler_may_yield_is_understood():
    """Items of all kinds, requests, links, lists and iterators of these, and None."""

    @dataclasses.dataclass
    class Book:
        n: int

    class Struct(msgspec.Struct):
        n: int

    spider = Spider("x")

    @spider.page()
    def handler(page):
        yield None
        yield [{"n": 1}, Book(2)]
        yield (Struct(3), Request("rel?x#y", label="l"))
        yield (Request(f"/{n}") for n in range(2))
        yield page.follow("a")
        yield page.follow(".absent")

    effects = handle_now(spider, page())
    assert data(effects) == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
    assert [f.url for f in effects.follows[:3]] == [
        "https://shop.example/rel?x",
        "https://shop.example/0",
        "https://shop.example/1",
    ]
    assert effects.follows[0].label == "l"
    assert isinstance(effects.follows[3], Follow)
    assert len(effects.follows) == 4


def test_a_request_that_leads_nowhere_costs_only_itself():
    """A bad link of a page is counted by reason and the page goes on."""
    spider = Spider("x")
    spider.page()(lambda page: [Request("mailto:a@b.example"), Request("/ok"), {"n": 1}])
    effects = handle_now(spider, page())

    assert effects.refused == {"scheme": 1}
    assert [f.url for f in effects.follows] == ["https://shop.example/ok"]
    assert len(effects.items) == 1


def test_invalid_items_are_counted_with_a_sample_and_never_lose_the_page():
    """What is valid is kept; reasons are counted; the first few are shown; the hook can see them."""
    spider = Spider("x")

    @spider.page()
    def handler(page):
        yield {"good": 1}
        yield from [{"price": float("nan")}] * 7
        yield "a text"
        yield page.css("h1")

    effects = handle_now(spider, page())
    assert data(effects) == [b'{"good":1}']
    assert effects.counts == {"invalid:not_json": 8, "invalid:not_an_item": 1}
    assert len([s for s in effects.samples if s[0] == "invalid:not_json"]) == 5
    assert "'price'" in effects.samples[0][1]
    assert all(len(sample) <= 300 and "\n" not in sample for _, sample in effects.samples)
    assert effects.dropped[-2].item == "a text"


def test_counters_and_drops_settle_with_the_page():
    """The author's counters have a name space of their own; drops are counted by reason."""
    spider = Spider("x")

    @spider.page()
    def handler(page):
        page.count("seen", 2)
        page.count("pages")
        page.drop({"a": 1}, "no  price\n")
        return {"n": 1}

    effects = handle_now(spider, page())
    assert effects.counts == {"own:seen": 2, "own:pages": 1, "dropped:no price": 1}
    assert [(d.item, d.reason) for d in effects.dropped] == [({"a": 1}, "no price")]


def test_reasons_that_vary_do_not_become_counters_without_end():
    """A reason with a number in it fills a bounded number of counters; the rest are counted together."""
    spider = Spider("x")

    @spider.page()
    def handler(page):
        for n in range(500):
            page.drop({}, f"reason {n}")

    effects = handle_now(spider, page())
    assert len(effects.counts) <= 101
    assert sum(effects.counts.values()) == 500
    assert len(effects.dropped) == 100


def test_cleaning_changes_and_drops_items_in_order():
    """Each step sees what the one before returned; None and Drop leave the item out."""
    spider = Spider("x")

    @spider.cleaning
    def cheap(item):
        if item["n"] > 2:
            raise Drop("too much")
        return item

    @spider.cleaning
    def double(item):
        return {"n": item["n"] * 2} if item["n"] else None

    spider.page()(lambda page: [{"n": n} for n in range(4)])
    effects = handle_now(spider, page())

    assert data(effects) == [b'{"n":2}', b'{"n":4}']
    assert effects.counts == {"dropped:double": 1, "dropped:too much": 1}


def test_a_route_may_have_its_own_schema_and_key():
    """They stand over those of the spider, each by itself."""

    class Book(msgspec.Struct):
        id: int

    spider = Spider("x", key="id")
    spider.page("/list", item=Book)(lambda page: [{"id": 1}, {"id": "x"}])
    spider.page()(lambda page: {"id": "free", "more": 1})

    effects = handle_now(spider, page())
    assert [(i.data, i.key) for i in effects.items] == [(b'{"id":1}', "1")]
    assert effects.counts == {"invalid:schema": 1}
    other = handle_now(spider, Page(Request("https://shop.example/other")))
    assert other.items[0].key == "free"


async def raises_later(page):
    yield {"n": 1}
    page.count("x")
    await asyncio.sleep(0)
    raise ValueError("on\ntwo lines")


def raises_now(page):
    yield {"n": 1}
    int("seven")


@pytest.mark.parametrize(
    ("handler", "said"),
    [(raises_later, "ValueError: on two lines"), (raises_now, "ValueError: invalid literal")],
)
async def test_a_handler_that_raises_leaves_nothing_but_one_line(handler, said):
    """The line names the error and the innermost line of the author's own code; the cause is chained."""
    spider = Spider("x")
    spider.page()(handler)
    with pytest.raises(HandlerFailed) as caught:
        await handle(spider, page())

    assert said in str(caught.value)
    assert (
        f"test_spider_handling.py:{handler.__code__.co_firstlineno + (4 if handler is raises_later else 2)}"
        in str(caught.value)
    )
    assert "\n" not in str(caught.value)
    assert caught.value.error == "ValueError"
    assert isinstance(caught.value.__cause__, ValueError)


def test_the_place_is_the_author_s_line_even_where_a_library_raised():
    """Frames of Gossamer and of installed packages are passed over."""
    spider = Spider("x")

    def handler(page):
        return page.css("a[[")

    spider.page()(handler)
    with pytest.raises(HandlerFailed, match=r'in handler: return page\.css\("a\[\["\)'):
        handle_now(spider, page())


def test_leaving_the_program_is_only_a_failure_of_the_page():
    """sys.exit() in a handler does not end the worker; an interrupt of the person does."""
    spider, other = Spider("x"), Spider("y")
    spider.page()(lambda page: sys.exit(3))

    @other.page()
    def interrupted(page):
        raise KeyboardInterrupt

    with pytest.raises(HandlerFailed, match="SystemExit"):
        handle_now(spider, page())
    with pytest.raises(KeyboardInterrupt):
        handle_now(other, page())


async def test_cancellation_passes_through_and_closes_the_generator():
    """A soft limit is the engine's: the handler's `finally` runs, and the cancellation is not called a failure."""
    spider, closed = Spider("x"), []

    @spider.page()
    async def waits(page):
        try:
            yield {"n": 1}
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await handle(spider, page())
    assert closed == [True]


@pytest.mark.parametrize(
    ("bound", "value"), [("MAX_ITEMS", {"n": 1}), ("MAX_ITEM_BYTES", {"n": 1}), ("MAX_URLS", Request("/x"))]
)
def test_a_handler_that_never_ends_is_stopped(monkeypatch, bound, value):
    """A generator without end fails its page instead of filling the memory."""
    monkeypatch.setattr(recording, bound, 50)
    spider = Spider("x")

    @spider.page()
    def endless(page):
        while True:
            yield value

    with pytest.raises(HandlerFailed, match=r"loop ends|more than"):
        handle_now(spider, page())


def test_too_many_counters_fail_the_page():
    """Names of counters are labels; a name for every item is a mistake."""
    spider = Spider("x")
    spider.page()(lambda page: [page.count(f"n{n}") for n in range(200)])
    with pytest.raises(HandlerFailed, match="200 names"):
        handle_now(spider, page())


async def test_the_failure_handler_is_told_everything_and_may_ask_for_more():
    """It gets URL, code, detail, request and attempts, and yields items and URLs relative to the one that failed."""
    spider = Spider("x")

    @spider.failed
    def failed(failure):
        yield {
            "url": failure.url,
            "code": failure.code,
            "n": failure.attempts,
            "label": failure.label,
            **failure.meta,
        }
        yield "/instead"

    @spider.failed
    async def second(failure):
        return Request("../up", label="up")

    failure = Failure(
        url=URL, code="dns", detail="no such host", request=Request(URL, label="l", meta={"m": 1}), attempts=5
    )
    effects = await handle_failure(spider, failure)

    assert data(effects) == [b'{"url":"https://shop.example/list","code":"dns","n":5,"label":"l","m":1}']
    assert [f.url for f in effects.follows] == ["https://shop.example/instead", "https://shop.example/up"]
    assert spider.handles_failures


async def test_other_hooks_are_called_in_order_with_what_they_need():
    """started, idle and ended; a relative URL has no page to be relative to."""
    spider, said = Spider("x"), []
    spider.started(lambda: said.append("started"))
    spider.idle(lambda: ["https://shop.example/more", "relative"])
    spider.ended(said.append)

    await spider.call("started")
    more = await spider.call("idle")
    await spider.call("ended", {"pages": 3})

    assert said == ["started", {"pages": 3}]
    assert [f.url for f in more.follows] == ["https://shop.example/more"]
    assert sum(more.refused.values()) == 1
    assert spider.has_idle_hook


async def test_a_hook_that_raises_is_a_failed_handler():
    """The engine treats it like a page's handler."""
    spider = Spider("x")

    @spider.idle
    async def idle():
        raise RuntimeError("broken")

    with pytest.raises(HandlerFailed, match="idle raised RuntimeError"):
        await spider.call("idle")


async def test_dropped_items_are_announced_when_the_engine_says_so():
    """Not while the handler may still fail."""
    spider, seen = Spider("x"), []
    spider.dropped(lambda item, reason: seen.append((item, reason)))
    spider.page()(lambda page: [5, page.drop({"a": 1}, "dull")])
    effects = await handle(spider, page())

    assert seen == []
    await spider.announce_dropped(effects)
    assert seen == [(5, "invalid:not_an_item"), ({"a": 1}, "dull")]


def test_handler_failed_is_an_error_of_gossamer():
    """One `except` catches all that Gossamer says about its own work."""
    assert issubclass(HandlerFailed, GossamerError)

"""Which handler takes a page, and what it is called with."""

from __future__ import annotations

import functools

import pytest

from gossamer.model.errors import SpiderError
from gossamer.spiders.spider import Spider

SITE = "https://books.example"


def taker(spider: Spider, path: str, label: str | None = None) -> str | None:
    found = spider.routes.find(SITE + path, label)
    return found[0].name if found else None


def test_the_most_specific_pattern_takes_the_page_whatever_the_order():
    """Order matters only between equals, where the first one written wins."""
    spider = Spider("x")

    @spider.page()
    def rest(page): ...

    @spider.page("/{any:path}")
    def everything(page): ...

    @spider.page("/book/{slug}")
    def book(page): ...

    @spider.page("/book/new")
    def new(page): ...

    @spider.page("/{kind}/a")
    def first(page): ...

    @spider.page("/{other}/a")
    def second(page): ...

    assert taker(spider, "/book/new") == "new"
    assert taker(spider, "/book/x") == "book"
    assert taker(spider, "/film/a") == "first"
    assert taker(spider, "/x/y/z") == "everything"


def test_a_label_wins_over_every_pattern():
    """A page asked for with a label goes to the routes of that label; among them patterns choose."""
    spider = Spider("x")

    @spider.page("/book/{slug}")
    def book(page): ...

    @spider.page(label="special")
    def special(page): ...

    @spider.page("/book/{slug}/reviews", label="special")
    def reviews(page): ...

    assert taker(spider, "/book/x") == "book"
    assert taker(spider, "/book/x", "special") == "special"
    assert taker(spider, "/book/x/reviews", "special") == "reviews"
    assert taker(spider, "/other") is None
    assert taker(spider, "/book/x", "unknown") == "book"


def test_placeholders_reach_the_parameters_that_ask_for_them():
    """By name; what nobody asks for is in page.params; **names takes all."""
    spider = Spider("x")

    @spider.page("/{kind}/{n:int}")
    def some(page, n, extra="default"):
        return {"n": n, "extra": extra, "params": page.params}

    @spider.page("/all/{kind}/{n:int}")
    def everything(page, **values):
        return values

    assert spider.try_page(SITE + "/a/7").items == [
        {"n": 7, "extra": "default", "params": {"kind": "a", "n": 7}}
    ]
    assert spider.try_page(SITE + "/all/a/7").items == [{"kind": "a", "n": 7}]


def test_handlers_may_be_any_callable():
    """Methods, partials and objects with __call__ are handlers like functions."""

    class Shop:
        def page(self, page):
            return {"by": "method"}

        def __call__(self, page, n):
            return {"by": "object", "n": n}

    spider, shop = Spider("x"), Shop()
    spider.page("/m")(shop.page)
    spider.page("/o/{n:int}")(shop)
    spider.page("/p")(functools.partial(lambda by, page: {"by": by}, "partial"))

    assert spider.try_page(SITE + "/m").items == [{"by": "method"}]
    assert spider.try_page(SITE + "/o/1").items == [{"by": "object", "n": 1}]
    assert spider.try_page(SITE + "/p").items == [{"by": "partial"}]


def test_mistakes_are_told_when_the_handler_is_declared():
    """A parameter that nothing fills, no page, two handlers for the same, forgotten brackets."""
    spider = Spider("x")
    spider.page()(lambda page: None)
    spider.page(label="a")(lambda page: None)

    with pytest.raises(SpiderError, match="'slug' that its pattern does not fill"):
        spider.page("/{name}")(lambda page, slug: None)
    with pytest.raises(SpiderError, match="takes no page"):
        spider.page("/x")(lambda: None)
    with pytest.raises(SpiderError, match="both take the pages with no pattern"):
        spider.page()(lambda page: None)
    with pytest.raises(SpiderError, match="label 'a'"):
        spider.page(label="a")(lambda page: None)
    with pytest.raises(SpiderError, match="brackets"):
        spider.page(lambda page: None)  # type: ignore[arg-type]


def test_a_misspelt_label_fails_the_page_with_the_right_one():
    """A link that would go to the wrong handler is told at once; without label routes any label is welcome."""
    strict, free = Spider("strict"), Spider("free")
    for spider in (strict, free):
        spider.page()(lambda page: page.follow(urls=["/a"], label="boook"))
    strict.page(label="book")(lambda page: None)

    with pytest.raises(Exception, match="did you mean 'book'"):
        strict.try_page(SITE)
    assert free.try_page(SITE).requests[0].label == "boook"

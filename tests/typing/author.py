"""What an author writes, as a strict type checker sees it. Checked by mypy, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, assert_type

from gossamer import Failure, Follow, Node, Nodes, Page, Request, Spider


@dataclass
class Book:
    title: str
    price: str | None


books = Spider(
    "books", start="https://books.example/", allow="books.example", item=Book, key="title", per_host=2
)


@books.page("/catalogue/{slug}/index.html")
def book(page: Page, slug: str) -> Iterator[Book]:
    yield Book(page.css("h1").one().text, page.css(".price_color").text)


@books.page(label="list", any_status=True)
async def listing(page: Page) -> AsyncIterator[Follow | Request]:
    yield page.follow("li.next a", label="list", priority=1, meta={"page": 2})
    other = await page.fetch("/other")
    yield Request.form(other.url, {"q": "x"})


@books.failed
def failed(failure: Failure) -> dict[str, Any]:
    return {"url": failure.url, "code": failure.code}


@books.cleaning
def clean(item: Book) -> Book | None:
    return item if item.price else None


def types_of(page: Page) -> None:
    """The types that completion in an editor rests on."""
    assert_type(page.css("h1"), Nodes)
    assert_type(page.css("h1").text, str | None)
    assert_type(page.css("h1")[0], Node)
    assert_type(page.css("h1")[:2], Nodes)
    assert_type(page.css("h1")[0].text, str)
    assert_type(page.css("a").attr("href"), str | None)
    assert_type(page.css("a").texts, list[str])
    assert_type(page.links, list[str])
    assert_type(page.follow("a"), Follow)
    assert_type(page.headers.get("x"), str | None)
    assert_type(page.xpath("//a").get(), str | None)
    assert_type(books.try_page("https://books.example/").urls, list[str])
    assert_type(Request("https://books.example/").changed(priority=2), Request)
    for node in page.css("a"):
        assert_type(node, Node)


def mistakes(page: Page) -> None:
    """What must not pass: an unused ignore is an error of its own."""
    page.follow("a", lable="list")  # type: ignore[call-arg]
    page.follow("a", priority="high")  # type: ignore[arg-type]
    page.css("h1").text.upper()  # type: ignore[union-attr]
    Request("https://books.example/", methd="POST")  # type: ignore[call-arg]
    Request("https://books.example/", "POST")  # type: ignore[call-arg]
    books.page(5)  # type: ignore[arg-type]

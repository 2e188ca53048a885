"""The spider of the demo. `examples/shop.py` is the same, as an author writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gossamer.spiders import Page, Spider


def shop_spider(start: str) -> Spider:
    """Takes every product of the shipped shop."""
    shop = Spider("shop", start=start)

    @shop.page("/product/{slug}")
    def product(page: Page) -> Iterator[Any]:
        yield {
            "name": page.css("h1").text,
            "price": page.css(".price").text,
            "stock": page.css(".stock").text,
            "image": page.css("img").attr("src"),
            "url": page.url,
        }
        yield page.follow()

    @shop.page()
    def listing(page: Page) -> Iterator[Any]:
        yield page.follow()

    return shop

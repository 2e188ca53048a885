"""The benchmark's crawl in Gossamer: `gossamer run gossamer_spider.py -a start=URL --output items.jsonl`.

Everything is as it comes: each page is settled, with its links and its item, in a SQLite file with synchronous=FULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gossamer import Page, Spider

spider = Spider("pages", args={"start": ""}, start=lambda: spider.args.start)


@spider.page()
def listing(page: Page) -> Iterator[Any]:
    yield {"url": page.url, "title": page.title, "prices": len(page.css(".price"))}
    yield page.follow("a")

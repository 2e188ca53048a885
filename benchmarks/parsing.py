"""How long one page takes from bytes to items and links: `python benchmarks/parsing.py [--kilobytes 12.8] [--links 40]`.

Each row does everything from the start for every page (decode, parse, select, join), as a crawl does; the garbage is
collected within the time. The last row is what the engine calls: routing, handler, effects.
"""

from __future__ import annotations

import argparse
import ctypes
import timeit
from collections.abc import Callable

from selectolax.lexbor import LexborHTMLParser

from gossamer import Page, Request, Spider
from gossamer.model.url import join_links
from gossamer.spiders.handling import handle_now

M_TRIM_THRESHOLD = -1  # of glibc's mallopt
URL = "http://127.0.0.1:8000/catalogue/page-1.html"
HEADERS = [
    ("Server", "bench"),
    ("Date", "Mon, 01 Jan 2024 00:00:00 GMT"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Content-Length", "12800"),
    ("Connection", "keep-alive"),
]


def document(kilobytes: float, links: int) -> bytes:
    """A listing of a shop: a heading, `links` links with titles and prices, and filler up to the size."""
    entry = '<article class="product"><h3><a href="/catalogue/book-{0}/index.html" title="Book {0}">Book {0}</a></h3>'
    entry += '<p class="price_color">£{0}.50</p>{1}</article>'
    bare = "".join(entry.format(n, "") for n in range(links))
    missing = max(0, int(kilobytes * 1000) - len(bare) - 160) // links
    filler = f"<p>{('Lorem ipsum dolor sit amet, ' * (missing // 28 + 1))[: max(0, missing - 7)]}</p>"
    body = "".join(entry.format(n, filler) for n in range(links))
    head = '<!doctype html><html><head><meta charset="utf-8"><title>Books</title></head><body>'
    return f"{head}<h1>All the books</h1>{body}</body></html>".encode()


def measure(name: str, what: Callable[[], object], seconds: float) -> None:
    timer = timeit.Timer(what)
    calls, spent = timer.autorange()
    number = max(1, int(calls * seconds / 5 / spent))
    best = min(timer.repeat(5, number)) / number
    print(f"{name:<58} {best * 1e6:8.1f} µs   {1 / best:9,.0f} pages/s")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kilobytes", type=float, default=12.8)
    arguments.add_argument("--links", type=int, default=40)
    arguments.add_argument("--seconds", type=float, default=1.0)
    arguments.add_argument(
        "--keep-heap",
        action="store_true",
        help="glibc: keep 64 MiB of freed heap instead of giving it back after each page",
    )
    given = arguments.parse_args()
    if given.keep_heap:
        ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, 64 * 1024 * 1024)
    body = document(given.kilobytes, given.links)
    print(f"{len(body)} bytes, {given.links} links")

    def page() -> Page:
        return Page(Request(URL), headers=HEADERS, body=body)

    shop = Spider("shop", start=URL)

    @shop.page("/catalogue/{rest:path}")
    def listing(page: Page):  # type: ignore[no-untyped-def]
        yield {"title": page.css("h1").text, "prices": len(page.css(".price_color"))}
        yield page.follow("a[href]")

    hrefs = page().css("a[href]").each_attr("href")
    rows: list[tuple[str, Callable[[], object]]] = [
        ("floor: the parser alone, from bytes", lambda: LexborHTMLParser(body)),
        ("floor: joining the links alone", lambda: join_links(URL, hrefs)),
        ("a page that nobody looks into", page),
        ("text", lambda: page().text),
        ('css("h1").text', lambda: page().css("h1").text),
        (
            'css("h1").text and follow("a[href]")',
            lambda: (p := page()).css("h1").text and p.follow("a[href]"),
        ),
        ("follow() without a selector", lambda: page().follow()),
        ("handler: title, count of one selector, follow all", lambda: handle_now(shop, page())),
    ]
    for name, what in rows:
        measure(name, what, given.seconds)


if __name__ == "__main__":
    main()

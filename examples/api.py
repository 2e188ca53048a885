"""A JSON interface: pages of a list, and a search that is asked by POST.

    python examples/site.py --port 8001
    gossamer run examples/api.py --allow 127.0.0.1

The answer is checked against a type: where the interface changes, the page ends FAILED with a message that names the
field, and no half-read item is stored.
"""

from dataclasses import dataclass

from gossamer import Page, Request, Spider


@dataclass
class Book:
    id: int
    title: str
    year: int


@dataclass
class Listing:
    books: list[Book]
    next: str | None = None


def start():
    """The list of all books, or only those since a year."""
    if api.args.since:
        yield Request.json(f"{api.args.site}/api/search", {"since": api.args.since})
    else:
        yield f"{api.args.site}/api/books"


api = Spider("api", start=start, item=Book, args={"site": "http://127.0.0.1:8001", "since": 0})


@api.page("/api/{kind}")
def books(page: Page):
    listing = page.json(type=Listing)
    yield from listing.books
    if listing.next:
        yield page.follow(urls=listing.next)

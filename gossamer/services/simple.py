"""The spider behind `gossamer crawl`: follow everything in scope, one item a page, a field for each --select."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gossamer.model.errors import UsageError
from gossamer.spiders import Page, Spider

OURS = frozenset({"url", "status", "depth"})
"""Fields that no selector may overwrite. The title may be: what a page calls its title is often not what one wants."""


def simple_spider(
    name: str, urls: Sequence[str], select: Mapping[str, str], *, follow: bool = True
) -> Spider:
    """A spider that takes {"url", "status", "title", "depth"} and the selected fields of each HTML page."""
    spider = Spider(name, start=list(urls))
    check_selectors(select)
    fields = tuple(select.items())

    @spider.page()
    def page(page: Page) -> Iterator[Any]:
        if not page.is_html:
            return
        item: dict[str, Any] = {
            "url": page.url,
            "status": page.status,
            "title": page.title,
            "depth": page.depth,
        }
        for field, css in fields:
            found = page.css(css)
            item[field] = found.text
            if found:
                page.count(field)  # the summary tells of a selector that fits nowhere
        yield item
        if follow:
            yield page.follow()

    return spider


def check_selectors(select: Mapping[str, str]) -> None:
    """Refuse what would overwrite a field of every item, and a selector that cannot be read, before anything is fetched."""
    from gossamer.model.request import Request

    probe = Page(Request("https://example.com/"), body=b"<p></p>")
    for field, css in select.items():
        if field in OURS:
            raise UsageError(
                f"Every item has a field {field!r} already",
                where=f"option --select {field}={css}",
                hint=f"another name: --select page_{field}={css}",
            )
        try:
            probe.css(css)
        except UsageError as error:
            raise UsageError(f"--select {field}: {error.what}", where=css, hint=error.hint) from None

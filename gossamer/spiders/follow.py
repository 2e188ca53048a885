"""Links that a handler asks to follow: raw attributes on one side, URLs with shared options on the other.

A page of a crawl has dozens of links and nearly all are known already. So they stay plain strings that share one set
of options, are made unique before they are joined, and become requests or records only where somebody needs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypedDict

import msgspec
from selectolax.lexbor import LexborNode

from gossamer.model.request import Request, encode

LINKS = "a[href], area[href]"
"""The links of a page, as `page.links` and `page.follow()` understand them."""


class LinkOptions(TypedDict, total=False):
    """What may be said of all links of one `page.follow`: the fields of `Request` that do not name one URL."""

    label: str | None
    priority: int
    meta: dict[str, Any]
    method: str
    headers: dict[str, str]
    cookies: dict[str, str]
    dedupe: bool
    any_status: bool
    proxy: str | None
    without: tuple[str, ...]


class Follow(msgspec.Struct, frozen=True):
    """Links to follow, all with the same options. Made by `page.follow`; yield it."""

    urls: list[str]
    """Canonical URLs, each once, in the order of the page."""
    like: Request | None = None
    """A request with the options that all of them share; None where they are plain GETs."""
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    """Why and how often a link was left out: `scheme`, `fragment`, `max_links` and so on."""

    @property
    def extra(self) -> bytes:
        """What every record of these URLs carries besides its URL, encoded once."""
        return encode(self.like) if self.like is not None else b""

    @property
    def priority(self) -> int:
        return self.like.priority if self.like is not None else 0

    @property
    def label(self) -> str | None:
        return self.like.label if self.like is not None else None

    def __iter__(self) -> Iterator[Request]:
        """The links as single requests: for tests, and to change some of them before they are yielded."""
        if self.like is None:
            return map(Request, self.urls)
        return (self.like.changed(url=url) for url in self.urls)

    def __len__(self) -> int:
        return len(self.urls)

    def __repr__(self) -> str:
        return f"<Follow {len(self.urls)} links{f' label={self.label!r}' if self.label else ''}>"


def hrefs_of(nodes: list[LexborNode]) -> list[str]:
    """Where these elements point. An element that points nowhere itself stands for the links inside it."""
    found = [node.attrs.get("href") for node in nodes]
    if None not in found:
        return found  # type: ignore[return-value]  # mypy does not see that no None is left
    return [href for node in nodes for href in _hrefs_of(node)]


def _hrefs_of(node: LexborNode) -> list[str]:
    own = node.attrs.get("href") or node.attrs.get("src")
    if own is not None or "href" in node.attributes:
        return [own or ""]
    return [href for inner in node.css(LINKS) if (href := inner.attrs.get("href")) is not None]


def hrefs_of_xpath(found: Iterable[Any]) -> list[str]:
    """Where the results of an XPath point: strings (`//a/@href`) or elements."""
    hrefs: list[str] = []
    for selector in found:
        if isinstance(selector.root, str):
            hrefs.append(selector.root)
        elif (href := selector.attrib.get("href") or selector.attrib.get("src")) is not None:
            hrefs.append(href)
        else:
            hrefs.extend(selector.css("a::attr(href), area::attr(href)").getall())
    return hrefs

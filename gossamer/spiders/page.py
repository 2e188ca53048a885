"""The page that a handler is given: the answer to one request, read as far as the handler looks.

Nothing is decoded or parsed before it is asked for, and each only once. The handler may run far from any network (in a
test, in a replay): a page is made of values, and the one thing that needs a network, `page.fetch`, is handed in.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from gossamer.model.charset import decode, encoding_of
from gossamer.model.errors import UsageError
from gossamer.model.request import Request
from gossamer.model.url import UrlOptions, canonical, document_base, encode_query, join_links
from gossamer.spiders.body import looks_binary, read_json
from gossamer.spiders.follow import LINKS, Follow, LinkOptions, hrefs_of, hrefs_of_xpath
from gossamer.spiders.headers import Headers
from gossamer.spiders.nodes import Node, Nodes, select, text_of
from gossamer.spiders.parsing import Tree, parse

if TYPE_CHECKING:
    from parsel import Selector, SelectorList

Fetch = Callable[[Request], Awaitable["Page"]]

MAX_LINKS = 50_000
MAX_COUNTER_NAME = 64


class Page:
    """One answer. `url`, `status`, `headers`, `body` are as received; everything else is read from them when asked."""

    __slots__ = (
        "_base", "_counts", "_drops", "_encoding", "_fetch", "_is_html", "_max_links", "_selector", "_text", "_tree",
        "_url_options", "body", "headers", "params", "request", "status", "truncated",
        "url",
    )  # fmt: skip

    def __init__(
        self,
        request: Request,
        *,
        status: int = 200,
        headers: Iterable[tuple[str, str]] | Mapping[str, str] = (),
        body: bytes = b"",
        url: str | None = None,
        fetch: Fetch | None = None,
        url_options: UrlOptions | None = None,
        max_links: int = MAX_LINKS,
        truncated: bool = False,
    ) -> None:
        self.request = request
        self.url: str = request.url if url is None else url
        """The canonical URL that answered."""
        self.status = status
        self.headers = Headers(headers)
        self.body = body
        self.truncated = truncated
        """True if the body's content coding (gzip, br, zstd) broke off, or was followed by something that it cannot be.
        `body` is then what could be decoded before: mostly all of the page, but nobody can know."""
        self.params: dict[str, Any] = {}
        """What the placeholders of the route's pattern matched."""
        self._fetch = fetch
        self._url_options = url_options
        self._max_links = max_links
        self._text: str | None = None
        self._encoding: str | None = None
        self._is_html: bool | None = None
        self._tree: Tree | None = None
        self._base: str | None = None
        self._selector: Selector | None = None
        self._counts: dict[str, int] = {}
        self._drops: list[tuple[Any, str]] = []

    # What was asked for

    @property
    def label(self) -> str | None:
        """The label that the request was given."""
        return self.request.label

    @property
    def meta(self) -> dict[str, Any]:
        """What the request was given to remember."""
        return self.request.meta

    @property
    def depth(self) -> int:
        """Links followed from a seed to here."""
        return self.request.depth

    # What came back

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def content_type(self) -> str:
        """The media type in lower case, without parameters; "" if the server sent none."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def is_html(self) -> bool:
        """True if the server calls it HTML (or nothing at all) and the first bytes do not say otherwise."""
        if self._is_html is None:
            kind = self.content_type
            self._is_html = ("html" in kind or not kind) and not looks_binary(self.body)
        return self._is_html

    @property
    def text(self) -> str:
        """The body as text, by the encoding rules of browsers; what cannot be read is replaced."""
        if self._text is None:
            self._text, self._encoding, _ = decode(self.body, self.headers.get("content-type"))
        return self._text

    @property
    def encoding(self) -> str:
        """The name of the encoding that `text` was read in."""
        if self._encoding is None:
            self._encoding, _ = encoding_of(self.body, self.headers.get("content-type"))
        return self._encoding

    def json(self, type: Any = None) -> Any:  # noqa: A002  (reads as page.json(type=Book))
        """The body as JSON; with `type` (a dataclass, a msgspec.Struct …) checked against it and made one."""
        return read_json(self.body, lambda: self.text, type, where=self.url)

    # Looking into it

    def css(self, selector: str) -> Nodes:
        """The elements that match a CSS selector, in the order of the page."""
        return Nodes(select(self._parse().html, selector))

    @property
    def title(self) -> str | None:
        """Text of the `<title>`; None if there is none."""
        title = self._parse().html.css_first("title")
        return None if title is None else text_of(title)

    @property
    def selector(self) -> Selector:
        """The page as a parsel Selector, for XPath and for those who come from Scrapy."""
        if self._selector is None:
            from parsel import Selector  # costs a tenth of a second: paid by those who use it

            kind = "xml" if "xml" in self.content_type and not self.is_html else "html"
            text = "" if looks_binary(self.body) else self.text
            self._selector = Selector(text=text, type=kind, base_url=self.url)
        return self._selector

    def xpath(self, expression: str, **variables: Any) -> SelectorList[Any]:
        """What an XPath finds, as parsel gives it: `.get()`, `.getall()`, `.re()`."""
        try:
            return self.selector.xpath(expression, **variables)
        except ValueError as error:
            raise UsageError("The XPath cannot be read", where=expression, hint=str(error)[:200]) from None

    # Where it leads

    @property
    def links(self) -> list[str]:
        """All links of the page as canonical URLs, each once."""
        return self.follow().urls

    def join(self, href: str) -> str:
        """A link as the canonical URL it means on this page; raises InvalidURL.

        The same link gives the same URL as in `follow`: its query, too, is written in the page's encoding.
        """
        href = href.partition("#")[0]
        if not href.isascii() and (charset := self._link_charset()) is not None:
            href = encode_query(href, charset)
        return canonical(href, self._document_base(), options=self._url_options)

    def follow(
        self,
        css: str | Node | Nodes | None = None,
        *,
        xpath: str | None = None,
        regex: str | re.Pattern[str] | None = None,
        urls: str | Iterable[str] | None = None,
        **options: Unpack[LinkOptions],
    ) -> Follow:
        """Links to yield: of all elements that match, or all `urls`; without either, all links of the page.

        `regex` keeps those whose full URL it finds a match in. The options (label, priority, meta …) are those of
        `Request` and hold for all of them.
        """
        hrefs = self._hrefs(css, xpath, urls)
        found, refused = join_links(
            self._document_base(),
            dict.fromkeys(hrefs),
            charset=self._link_charset(),
            options=self._url_options,
        )
        if regex is not None:
            found = [url for url in found if re.search(regex, url)]
        if len(found) > self._max_links:
            refused["max_links"] = len(found) - self._max_links
            del found[self._max_links :]
        return Follow(found, Request(self.url, **options) if options else None, refused)

    async def fetch(self, what: str | Request, **options: Any) -> Page:
        """Another page, now, for the same item: waits its turn with the host like every request."""
        if self._fetch is None:
            raise UsageError(
                "This page has no network to fetch from",
                where=self.url,
                hint="in a test, give try_page the answers: pages={url: html}",
            )
        request = what if isinstance(what, Request) else Request(what, **options)
        return await self._fetch(request.changed(url=self.join(request.url), depth=self.depth + 1))

    # What is noted about it

    def count(self, name: str, n: int = 1) -> None:
        """Add to a counter of the author's own. It is settled with the page: a failed handler counts nothing."""
        if not 0 < len(name) <= MAX_COUNTER_NAME or not name.isprintable():
            raise UsageError(
                f"{name[:80]!r} is no name of a counter",
                hint=f"use 1 to {MAX_COUNTER_NAME} printable characters",
            )
        self._counts[name] = self._counts.get(name, 0) + n

    def drop(self, item: Any, reason: str) -> None:
        """Note an item that is left out on purpose: it is counted by reason, and `@spider.dropped` sees it."""
        self._drops.append((item, reason))

    def noted(self) -> tuple[dict[str, int], list[tuple[Any, str]]]:
        """What `count` and `drop` noted since this was last asked. For whoever runs the handler."""
        noted = self._counts, self._drops
        self._counts, self._drops = {}, []
        return noted

    def __repr__(self) -> str:
        return f"<Page {self.status} {self.url}>"

    def _parse(self) -> Tree:
        if self._tree is None:
            self._tree = parse(self._source())
        return self._tree

    def _source(self) -> bytes:
        """What the parser reads. Nearly every page is UTF-8, which it takes as it came: text is for those who ask."""
        if not self.is_html and looks_binary(self.body):
            return b""
        return self.body.removeprefix(BOM_UTF8) if self.encoding == "utf-8" else self.text.encode()

    def _document_base(self) -> str:
        if self._base is None:
            tree = self._parse() if self.is_html else None
            bases = tree.html.css("base[href]") if tree is not None and tree.may_have_base else ()
            self._base = document_base(self.url, [node.attrs.get("href") or "" for node in bases])
        return self._base

    def _link_charset(self) -> str | None:
        """The encoding of the queries of links; None where it is UTF-8, which costs nothing then."""
        return None if self.encoding == "utf-8" else self.encoding

    def _hrefs(
        self, css: str | Node | Nodes | None, xpath: str | None, urls: str | Iterable[str] | None
    ) -> Sequence[str]:
        if sum(given is not None for given in (css, xpath, urls)) > 1:
            raise UsageError("follow takes one of css, xpath and urls", hint="yield one page.follow for each")
        if urls is not None:
            return [urls] if isinstance(urls, str) else list(urls)
        if xpath is not None:
            return hrefs_of_xpath(self.xpath(xpath))
        if isinstance(css, Node):
            return hrefs_of([css.node])
        if isinstance(css, Nodes):
            return hrefs_of(css.raw)
        if css is None and not self.is_html:
            return []
        return hrefs_of(self._parse().html.css(LINKS) if css is None else self.css(css).raw)

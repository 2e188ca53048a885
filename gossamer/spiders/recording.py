"""Takes what a handler yields, one value after the other, and writes it into its `Effects`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from gossamer.model.errors import GossamerError, InvalidURL
from gossamer.model.item import InvalidItem, ItemRules
from gossamer.model.request import Request
from gossamer.spiders.effects import DROPPED, INVALID, MAX_COUNTERS, OWN, Effects
from gossamer.spiders.follow import Follow
from gossamer.spiders.page import Page
from gossamer.spiders.routes import Routes

MAX_ITEMS = 100_000
MAX_ITEM_BYTES = 64 * 1024 * 1024
MAX_URLS = 1_000_000
MAX_REASON = 64

Cleaner = Callable[[Any], Any]


class TooMuch(GossamerError):  # noqa: N818  (reads as what it is in `HandlerFailed`)
    """A handler asked for more than one page may: it would never end, or its effects would not fit a transaction."""

    code = "too_much"


class Drop(GossamerError):  # noqa: N818  (an author writes `raise Drop(…)`)
    """Raised by a cleaning function to leave an item out: `raise Drop("no price")`."""

    code = "drop"


class Recorder:
    """Collects the results of one call. `take` is called with each; `finish` closes the account."""

    __slots__ = (
        "_bytes",
        "_cleaners",
        "_join",
        "_keep",
        "_routes",
        "_rules",
        "_texts_are_urls",
        "_urls",
        "effects",
    )

    def __init__(
        self,
        rules: ItemRules,
        routes: Routes,
        join: Callable[[str], str],
        *,
        cleaners: tuple[Cleaner, ...] = (),
        keep: bool = False,
        texts_are_urls: bool = False,
    ) -> None:
        self.effects = Effects()
        self._rules = rules
        self._routes = routes
        self._join = join
        self._cleaners = cleaners
        self._keep = keep
        self._texts_are_urls = texts_are_urls
        self._bytes = 0
        self._urls = 0

    def take(self, value: Any) -> None:
        """Note one result: links, a request, an item, or a list of these."""
        if type(value) is dict:
            self._item(value)
        elif isinstance(value, Follow):
            self._follow(value)
        elif isinstance(value, Request):
            self._request(value)
        elif self._texts_are_urls and isinstance(value, str):
            self._request(Request(value))
        elif isinstance(value, list | tuple | Iterator):
            for inner in value:
                self.take(inner)
        elif value is not None:
            self._item(value)

    def finish(self, page: Page | None = None) -> Effects:
        """The effects, with what was noted on the page itself."""
        if page is not None:
            counts, drops = page.noted()
            if len(counts) > MAX_COUNTERS:
                raise TooMuch(
                    f"The handler counts under {len(counts)} names; {MAX_COUNTERS} are allowed",
                    hint="put what varies into items, not into names of counters",
                )
            for name, n in counts.items():
                self.effects.count(OWN + name, n)
            for item, reason in drops:
                self._dropped(item, reason)
        return self.effects

    def _follow(self, follow: Follow) -> None:
        if follow.like is not None:
            self._routes.check_label(follow.like.label)
        if follow.urls or follow.refused:
            self._count_urls(len(follow.urls))
            self.effects.follows.append(follow)

    def _request(self, request: Request) -> None:
        self._routes.check_label(request.label)
        try:
            url = self._join(request.url)
        except InvalidURL as error:
            # One bad link must not cost the page, as it would not in a Follow.
            self.effects.refused[error.reason] += 1
            return
        self._count_urls(1)
        self.effects.follows.append(request if url == request.url else request.changed(url=url))

    def _item(self, value: Any) -> None:
        for clean in self._cleaners:
            try:
                cleaned = clean(value)
            except Drop as drop:
                return self._dropped(value, drop.what)
            if cleaned is None:
                return self._dropped(value, getattr(clean, "__name__", "cleaning"))
            value = cleaned
        try:
            item = self._rules.item(value)
        except InvalidItem as error:
            return self.effects.drop(value, INVALID + error.reason, INVALID + error.reason, str(error))
        self._bytes += len(item.data)
        if len(self.effects.items) >= MAX_ITEMS or self._bytes > MAX_ITEM_BYTES:
            raise TooMuch(
                f"One page gave more than {MAX_ITEMS} items or {MAX_ITEM_BYTES >> 20} MiB of them",
                hint="check that the handler's loop ends",
            )
        self.effects.items.append(item)
        if self._keep:
            self.effects.values.append(value)
        return None

    def _dropped(self, item: Any, reason: str) -> None:
        reason = " ".join(reason.split())[:MAX_REASON] or "dropped"
        self.effects.drop(item, DROPPED + reason, reason)

    def _count_urls(self, n: int) -> None:
        self._urls += n
        if self._urls > MAX_URLS:
            raise TooMuch(
                f"One page gave more than {MAX_URLS} links",
                hint="check that the handler's loop ends; an endless source of URLs belongs into start=",
            )

"""What a handler asked for: written down while it runs, and made true only if it succeeds.

A handler writes nowhere. Items, links and counts are collected here; the engine settles them together with the page, in
one transaction. So a handler may fail at any line, or its process may die, and nothing of it exists.
"""

from __future__ import annotations

from collections import Counter
from reprlib import Repr
from typing import Any

import msgspec

from gossamer.model.item import Item
from gossamer.model.request import Request
from gossamer.spiders.follow import Follow

OWN = "own:"
"""Before the names of an author's counters, which can so never meet those of the engine."""
INVALID = "invalid:"
"""Before the reason for which an item was refused (`invalid:schema`)."""
DROPPED = "dropped:"
"""Before the reason for which the author left an item out."""

MAX_COUNTERS = 100
"""Names of counters that one page may use: they become labels of metrics, and what varies belongs into items."""
MAX_SAMPLE = 300
KEPT_SAMPLES = 5
KEPT_DROPS = 100


class Dropped(msgspec.Struct, frozen=True):
    """An item that is not stored, as `@spider.dropped` sees it."""

    item: Any
    reason: str


class Effects(msgspec.Struct):
    """Everything that one call of a handler (or hook) asked for."""

    items: list[Item] = []
    values: list[Any] = []
    """The items as they were yielded, after validation by their own type; filled where somebody asked (`try_page`)."""
    follows: list[Follow | Request] = []
    """In the order yielded. URLs are canonical; depth is the engine's to set."""
    counts: dict[str, int] = {}
    samples: list[tuple[str, str]] = []
    """(counter, example): the first few of each kind."""
    dropped: list[Dropped] = []
    """The first of what was dropped or invalid, for the hook; all of them are in `counts`."""
    refused: Counter[str] = msgspec.field(default_factory=Counter)
    """Single requests whose URL cannot be fetched, by reason; a `Follow` tells its own."""
    route: str | None = None
    """The name of the handler that took the page; None: no route did."""

    def urls(self) -> int:
        """How many links there are to follow."""
        return sum(len(follow.urls) if isinstance(follow, Follow) else 1 for follow in self.follows)

    def count(self, name: str, n: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + n

    def drop(self, item: Any, counter: str, reason: str, detail: str = "") -> None:
        """Count an item that will not be stored, with a sample, and keep it for the hook."""
        if counter not in self.counts and len(self.counts) >= MAX_COUNTERS:
            counter = f"{counter.partition(':')[0]}:other"
        self.count(counter)
        if self.counts[counter] <= KEPT_SAMPLES:
            self.samples.append((counter, _one_line(f"{detail} {_SHORT.repr(item)}")))
        if len(self.dropped) < KEPT_DROPS:
            self.dropped.append(Dropped(item, reason))


def _one_line(text: str) -> str:
    return " ".join(text.split())[:MAX_SAMPLE]


# A short form is made without writing out the whole item first, and survives a __repr__ that raises.
_SHORT = Repr()
_SHORT.maxdict = _SHORT.maxlist = 10
_SHORT.maxstring = _SHORT.maxother = 120

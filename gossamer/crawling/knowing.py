"""What this worker knows to be enqueued, so that most links of a page cost one look into a dictionary.

Only what an acknowledged settle contained is known: a link whose settle was lost is sent again. The memory has two
halves; when the young one is full, the old one is forgotten, so it holds the links met of late and never grows.
"""

from __future__ import annotations

from collections.abc import Iterable

HALF = 600_000
LONGEST = 300  # longer URLs are the store's to know: a hostile site must not fill this memory with them
_NEVER = -(1 << 62)  # below every priority


class Known:
    """URL → the highest priority it was enqueued with."""

    __slots__ = ("_half", "_old", "_young", "incarnation")

    def __init__(self, incarnation: str = "", half: int = HALF) -> None:
        self._young: dict[str, int] = {}
        self._old: dict[str, int] = {}
        self._half = half
        self.incarnation = incarnation

    def unknown(self, urls: Iterable[str], priority: int) -> list[str]:
        """Those that are not enqueued at this priority or a higher one, as far as this worker knows."""
        at = self._young.get
        found = [url for url in urls if at(url, _NEVER) < priority]  # nearly always empty: the hot path
        if not found or not self._old:
            return found
        young, old = self._young, self._old
        rest = []
        for url in found:
            before = old.get(url)
            if before is not None:
                young.setdefault(url, before)
            if before is None or before < priority:
                rest.append(url)
        return rest

    def add(self, url: str, priority: int) -> bool:
        """Remember it; True if it was not known at all."""
        if len(url) > LONGEST:
            return True
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        at = self._young.get(url)
        if at is None or at < priority:
            self._young[url] = priority
        return at is None and url not in self._old

    def clear(self, incarnation: str) -> None:
        """The store may have lost a tail: nothing is certain any more."""
        self._young.clear()
        self._old.clear()
        self.incarnation = incarnation

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

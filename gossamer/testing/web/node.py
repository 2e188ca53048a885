"""One page of the known web, or one hop of a redirect: what it is, where it lies, what it links to."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

FIRST_YEAR = 2024
MONTHS = 12


class Kind(enum.StrEnum):
    """The kinds of pages. Their names are those of the shares in `Mix`."""

    PAGE = "page"
    FLAKY = "flaky"
    MISSING = "missing"
    DOWN = "down"
    MOVED = "moved"
    CHAIN = "chain"
    LONG_CHAIN = "long_chain"
    LOOP = "loop"
    DENIED = "denied"
    DUPLICATE = "duplicate"
    GBK = "gbk"
    TRAP = "trap"
    MAZE = "maze"
    TRUNCATED = "truncated"
    LIMITED = "limited"
    BROKEN = "broken"
    LARGE = "large"
    HANGING = "hanging"
    SLOW = "slow"
    CALENDAR = "calendar"


READABLE = frozenset({Kind.PAGE, Kind.FLAKY, Kind.DUPLICATE, Kind.GBK, Kind.LIMITED, Kind.SLOW})
"""Answer 200 in the end and carry links of the graph."""
ENDLESS = frozenset({Kind.MAZE, Kind.CALENDAR})
"""Answer 200 and link to one more page of their own, for ever."""
REDIRECTS = frozenset({Kind.MOVED, Kind.CHAIN, Kind.LONG_CHAIN, Kind.LOOP})

AWAY = -1
"""The target of a redirect that leaves the scope."""


@dataclass(slots=True)
class Node:
    """A place in the graph. `layer` is its distance from the start: redirects add nothing to it."""

    number: int
    kind: Kind
    host: int
    layer: int
    path: str
    title: str
    links: list[int] = field(default_factory=list)
    target: int | None = None  # redirects only
    status: int = 200  # of redirects and of pages that are down
    moods: tuple[int, ...] = ()  # what it answers first; 0 is a reset
    twin: int | None = None  # whose bytes a duplicate repeats
    href: str | None = None  # how a GBK page writes the link to it, if not as its URL
    foreign: bool = False  # links out of scope

    def step(self, number: int) -> str:
        """The path of an endless page after so many steps."""
        if self.kind is Kind.MAZE:
            return self.path + "again/" * number
        year, month = divmod(number, MONTHS)
        return f"{self.path}{FIRST_YEAR + year}/{month + 1:02}"

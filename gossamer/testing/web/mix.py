"""How much of what a known web holds: rates of every kind of page, and how bad the bad ones are."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

MOST_ODD = 0.7
"""The rest must be ordinary pages, or there would be nobody to link to the others."""


@dataclass(frozen=True)
class Mix:
    """Shares of all pages (0 to 1). Every kind with a share above 0 appears at least once.

    The default finishes quickly; `Mix.plain()` has ordinary pages only, `Mix.hostile()` has everything, among it
    pages that make a crawler wait until its deadline.
    """

    flaky: float = 0.05  # fails once or twice (500, 503 or a reset), then answers
    missing: float = 0.03  # 404
    down: float = 0.01  # always 500 or 503
    moved: float = 0.03  # one redirect, sometimes to another host or out of scope
    chain: float = 0.01  # two to five redirects
    long_chain: float = 0.005  # more redirects than anyone should follow
    loop: float = 0.01  # redirects to itself, or in a circle of two or three
    denied: float = 0.03  # robots.txt says no
    duplicate: float = 0.02  # the same bytes as another page
    gbk: float = 0.02  # a page in GBK with a link whose query is not ASCII
    trap: float = 0.01  # a path of 25 segments or a query of 25 parameters
    maze: float = 0.005  # each page links to its own path with one more `again/`
    truncated: float = 0.005  # declares more bytes than it sends
    limited: float = 0.0  # 429 with Retry-After once or twice, then answers
    broken: float = 0.0  # always resets the connection
    large: float = 0.0  # a body of `large_bytes`
    hanging: float = 0.0  # never answers
    slow: float = 0.0  # answers after `slow_seconds`
    calendar: float = 0.0  # a next month for ever: the oracle needs a depth limit

    foreign: float = 0.1  # share of pages with a link to a host that is out of scope
    large_bytes: int = 11 * 1024 * 1024
    slow_seconds: float = 0.3
    retry_after: int = 1
    latency: float = 0.0  # every page takes between 0 and this many seconds
    crawl_delay: float = 0.0  # Crawl-delay in the robots.txt of …
    crawl_delay_hosts: int = 1  # … so many hosts, the last ones
    robots_fails: int = 0  # robots.txt answers 503 so many times first, on every host

    def __post_init__(self) -> None:
        shares = self.shares()
        wrong = [name for name, share in {**shares, "foreign": self.foreign}.items() if not 0 <= share <= 1]
        if wrong:
            raise ValueError(f"shares go from 0 to 1; look at {', '.join(wrong)}")
        if sum(shares.values()) > MOST_ODD:
            raise ValueError(
                f"the odd pages make {sum(shares.values()):.2f} of the web; at most {MOST_ODD} is possible"
            )

    def shares(self) -> dict[str, float]:
        """The kinds of pages, without the knobs that are no kinds."""
        names = [field.name for field in fields(self)]
        return {name: getattr(self, name) for name in names[: names.index("foreign")]}

    @classmethod
    def plain(cls, **changes: float) -> Self:
        """Ordinary pages only, and what `changes` adds."""
        none = dict.fromkeys(Mix().shares(), 0.0)
        return cls(**{**none, "foreign": 0.0, **changes})  # type: ignore[arg-type]

    @classmethod
    def hostile(cls) -> Self:
        """Everything but the endless calendar."""
        rare = dict.fromkeys(("limited", "broken", "large", "hanging", "slow"), 0.005)
        return cls(**{**rare, "truncated": 0.01, "robots_fails": 1})  # type: ignore[arg-type]

    @classmethod
    def parse(cls, text: str, base: Self | None = None) -> Self:
        """Reads `flaky=0.1,missing=0`; what is not named is as in `base` or the default."""
        types = {field.name: int if field.type == "int" else float for field in fields(cls)}
        changes: dict[str, float] = {}
        for part in filter(None, text.split(",")):
            name, _, value = part.partition("=")
            if name not in types:
                raise ValueError(f"there is no kind of page called {name!r}; there are {', '.join(types)}")
            changes[name] = types[name](value)
        return replace(base or cls(), **changes)  # type: ignore[arg-type]

    def text(self) -> str:
        """What `parse` reads back."""
        return ",".join(f"{field.name}={getattr(self, field.name)}" for field in fields(self))

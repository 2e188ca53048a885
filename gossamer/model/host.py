"""A host as all tasks share it: what it grants, how it is paced, parked and forgiven.

The store keeps one row a host and only compares, adds and takes maxima. Every decision is made here, by pure
functions over the row as it was when the lease was granted (`HostView`), and travels back with the outcome as a
`HostOrder`. All times in views and orders are durations, so the clocks of two machines never meet.
"""

from __future__ import annotations

import msgspec


class Wish(msgspec.Struct, frozen=True):
    """What one task asks of every host. Tested against the shared row; of several tasks the strictest wins."""

    per_host: int = 4
    delay: float = 0.0  # never closer than this, whatever the adaptive pace says
    first_delay: float = 0.0  # the pace of a host that nobody has measured yet
    eager: tuple[
        str, ...
    ] = ()  # hosts whose first_delay is 0: they are this machine's, named at the keyboard
    robots: bool = True
    pages_per_host: int | None = None


class HostView(msgspec.Struct, frozen=True, kw_only=True):
    """The host's row as a worker sees it with a lease."""

    host: str
    open: int = 0
    delay: float | None = None  # the adaptive pace; None: nobody has measured it yet
    crawl_delay: float = 0.0  # from robots.txt
    level: int = 0  # how often in a row it was parked
    trouble: int = 0  # bad answers in a row
    bad_for: float = 0.0  # seconds without a good answer, since the first bad one
    parked_for: float = 0.0  # seconds until it may be asked again
    latency: float = 0.0
    robots_version: int = 0  # 0: unknown or expired
    robots: bytes = b""  # filled by Oversight.hosts only


class RobotsOrder(msgspec.Struct, frozen=True):
    """The answer to a robots lease: rules to keep for `ttl` seconds."""

    body: bytes
    ttl: float
    crawl_delay: float = 0.0


class HostOrder(msgspec.Struct, frozen=True, kw_only=True):
    """What the worker decided about the host after one exchange."""

    turn: float = 0.0  # the next request starts no sooner than this after the last one was sent
    delay: float | None = None  # the new adaptive pace
    latency: float | None = None
    good: bool = False  # forgives: trouble to 0, and one level of parking once that parking is over
    bad: bool = False  # adds 1 to trouble and starts the patience clock
    park: float = 0.0  # nobody asks for so many seconds
    level: int = 0  # the level that this parking reaches; the store keeps the maximum
    robots: RobotsOrder | None = None
    give_up: str = ""  # ends this task's remaining records of the host as FAILED(this code)

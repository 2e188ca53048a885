"""One thing to do in the frontier, from the moment it is found to its one terminal state.

A *record* is a page, a slice of seeds, or a host's robots.txt. It is PENDING until a session leases it, and it
ends exactly once. A *link* is what a push asks to become a record, a *grant* is a leased record in a worker's
hands, an *outcome* is the worker's verdict on it with everything that must become true together with the
verdict. The store applies an outcome whole or not at all.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import msgspec

from gossamer.model.host import HostOrder, HostView
from gossamer.model.item import Item


class Kind(IntEnum):
    """What a record asks for."""

    PAGE = 0
    SEED = 1  # a slice of a task's seeds; it may be settled many times, each time with the place reached
    ROBOTS = 2  # a host's rules; lives in the host's row and belongs to no task


class State(IntEnum):
    """Where a record stands. Everything from DONE on is for ever."""

    PENDING = 0
    LEASED = 1
    DONE = 2  # there was an answer, also a 404 or a redirect
    FAILED = 3  # it could not be got
    SKIPPED = 4  # we chose not to get it
    CANCELLED = 5  # its task ended first


class Verdict(IntEnum):
    """How an attempt ended; the terminal ones carry the number of their state."""

    RETRY = 0  # back to the queue, due after a delay
    RELEASE = 1  # given back untouched: nothing was sent, nothing is held against it
    DONE = 2
    FAILED = 3
    SKIPPED = 4


TERMINAL = frozenset({Verdict.DONE, Verdict.FAILED, Verdict.SKIPPED})

REDIRECTED = "redirected"  # the one DONE code that is not counted as a page


class Link(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A record in the making: what is pushed. `key` alone decides whether it is new."""

    key: bytes  # 16 bytes: see model.url.fingerprint
    url: str
    host: str  # host:port of the canonical URL; empty for seeds, which no host limits
    priority: int = 0  # higher goes first within its host
    depth: int = 0
    kind: Kind = Kind.PAGE
    hops: int = 0  # redirects that led here
    request: bytes = b""  # what the URL does not tell, encoded by model.request; empty for a plain GET
    own_key: bool = False  # an author's own key: unique over all hosts of the task
    delay: float = 0.0  # seconds before it may be leased


class Grant(msgspec.Struct, frozen=True, gc=False):
    """A leased record. The token is (session, number); without it nothing can be settled."""

    number: int
    task: str
    kind: Kind
    url: str
    host: str
    priority: int
    depth: int
    hops: int
    request: bytes
    retries: int  # attempts that were burned
    crashes: int  # deaths of a child process that held it alone
    suspect: bool  # an earlier lease ended without a verdict: handle it in a child process


class Outcome(msgspec.Struct, gc=False):
    """The verdict on one grant, and all that settles with it in one transaction."""

    number: int
    verdict: Verdict
    code: str = ""
    delay: float = 0.0  # RETRY: due again after so many seconds
    priority: int | None = None  # RETRY: sinks to this priority
    burned: bool = True  # RETRY: counts against the retry budget
    crashed: bool = False  # RETRY: a child process died over it
    request: bytes | None = None  # RETRY of a seed: the place reached
    links: list[Link] = []
    items: list[Item] = []
    body: str | None = None  # the key of the blob that holds the page's body, durable before the settle
    counts: dict[str, int] = {}  # added to the task's counters
    samples: list[tuple[str, str]] = []  # (counter, example), a few of which are kept
    task: str = ""  # whose grant it was: a token that nobody knows any more is counted there
    sent_ago: float | None = None  # seconds since the request went out; None: nothing was sent
    host: HostOrder | None = None


class LoggedItem(NamedTuple):
    """An item as the log gives it to sinks."""

    number: int  # rises in commit order, never used again
    data: bytes  # one JSON object
    key: str | None = None  # what the author says it is known by over the whole task


class Leases(msgspec.Struct):
    """What a lease call granted, and when it is worth asking again."""

    grants: list[Grant] = []
    wait: float | None = None  # seconds until the next host is ready; None: nothing is in sight
    stale: list[int] = []  # settle only: tokens that were refused
    ended: dict[str, str] = {}  # tasks asked for that are not RUNNING: their state
    hosts: dict[str, HostView] = {}  # of every host granted from, as it was then


class Pushed(msgspec.Struct, frozen=True):
    """The answer to a push."""

    new: int
    known: int

"""The host's row: the few columns that politeness over all tasks and workers is decided on, and their arithmetic.

Every store keeps these columns and asks these functions, so that two stores cannot differ about a host. A row is
changed in place by the store that loaded it; the functions only compare, add and take maxima. Times are the store's
own seconds (`now`), handed in by the caller; what leaves the store leaves it as a duration (`view`).

A host "" is the pseudo host of the seeds: it has no limit, no delay, no robots and no parking.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gossamer.model.host import HostOrder, HostView, Wish

MAX_PARKED = 3600.0
"""No parking is set for longer or read as longer than this, whatever a server asked or a clock did."""

NO_LIMIT = 1 << 30
"""The slots of a host that nobody limits."""

Asking = Sequence[tuple[Wish, float]]
"""What the tasks *considered* at a host ask of it: (their wish, the first_delay of their lane there).

Considered is a RUNNING task that has records due or leased at the host."""


class HostRow(msgspec.Struct, kw_only=True, gc=False):
    """One host as the store keeps it."""

    name: str
    id: int = 0  # counts up in the order in which hosts were first pushed
    scheme: str = ""  # of the first URL pushed: where its robots.txt is asked for
    open: int = 0  # leases at this host, a robots lease included
    next_turn: float = 0.0
    last_sent: float = -1e9  # when the last request went out, as far as it was told
    parked_until: float = 0.0  # read it through `ready_from`, which clamps it
    level: int = 0
    trouble: int = 0
    bad_since: float | None = None
    delay: float | None = None
    latency: float = 0.0
    crawl_delay: float = 0.0
    robots: bytes | None = None  # None also where a store did not load the rules: then none are to be written
    robots_version: int = 0  # 0: never known
    robots_until: float = 0.0
    robots_open: bool = False  # a robots lease is out


def obey(row: HostRow, order: HostOrder | None, sent_ago: float | None, now: float) -> None:
    """Do to the row what the worker decided. The slot (`open`, `robots_open`) is the caller's to free."""
    if not row.name:
        return
    order = order or _NOTHING
    if sent_ago is not None:
        row.next_turn = max(row.next_turn, now - sent_ago + order.turn)
        row.last_sent = max(row.last_sent, now - sent_ago)
    if order.delay is not None:
        row.delay = order.delay
    if order.latency is not None:
        row.latency = order.latency
    if order.good:
        row.trouble, row.bad_since = 0, None
        if now >= row.parked_until:
            row.level = max(row.level - 1, 0)
    if order.bad:
        row.trouble += 1
        row.bad_since = now if row.bad_since is None else row.bad_since
    if order.park > 0:
        row.parked_until = max(row.parked_until, now + min(order.park, MAX_PARKED))
        row.level = max(row.level, order.level)
    if order.robots is not None:
        row.robots, row.crawl_delay = order.robots.body, order.robots.crawl_delay
        row.robots_version += 1
        row.robots_until = now + order.robots.ttl


def knows_robots(row: HostRow, now: float) -> bool:
    """Whether a page may be leased to a task that obeys robots: they are known and not expired."""
    return not row.name or (row.robots_version > 0 and row.robots_until > now)


def ready_from(row: HostRow, now: float) -> float:
    """The time from which the host may be asked: its next turn, and the end of its parking, which never is far."""
    return max(row.next_turn, _parked(row, now))


def effective_delay(row: HostRow, asking: Asking) -> float:
    """The strictest of what the considered tasks wish, what was measured, and what robots.txt asks for."""
    if not row.name:
        return 0.0
    delay = row.crawl_delay
    for wish, first_delay in asking:
        delay = max(delay, wish.delay, first_delay if row.delay is None else row.delay)
    return delay


def limit_of(delay: float, asking: Asking) -> int:
    """How many leases may be open at a host (not that of the seeds): one where there is any delay."""
    if delay > 0:
        return 1
    return min((wish.per_host for wish, _ in asking), default=NO_LIMIT)


def free_slots(row: HostRow, asking: Asking) -> int:
    """How many leases more the host grants now; the pseudo host of seeds has no end of them."""
    limit = limit_of(effective_delay(row, asking), asking) if row.name else NO_LIMIT
    return max(limit - row.open, 0)


def ready_at(
    row: HostRow, wish: Wish, asking: Asking, old: float | None, *, granted: bool, now: float
) -> float | None:
    """When a lane with due records, not closed, may be leased from; None while something else must end first.

    `old` is the lane's place in the order in which hosts became ready: it keeps that place until something was
    `granted` from the host in this call, or its turn moved beyond it.
    """
    if free_slots(row, asking) == 0 or (wish.robots and row.robots_open):
        return None
    turn = turn_of(row, asking, now)
    if old is not None and old >= turn and not granted:
        return old
    return max(now, turn)


def turn_of(row: HostRow, asking: Asking, now: float) -> float:
    """When the host may be asked next. The worker that sent last knew its own task's wish; those of the others count from that
    moment too."""
    return max(ready_from(row, now), row.last_sent + effective_delay(row, asking))


def is_in_flight(wish: Wish, pages: int, open_leases: int) -> bool:
    """Whether what is open at a host may use up its page budget: something of it must end before more is leased."""
    budget = wish.pages_per_host
    return budget is not None and pages < budget <= pages + open_leases


def robots_url(row: HostRow) -> str:
    written = row.name.removesuffix({"https": ":443", "http": ":80"}.get(row.scheme, ""))
    return f"{row.scheme}://{written}/robots.txt"


def view(row: HostRow, now: float, *, robots: bool = False) -> HostView:
    """The row as a worker may see it: durations instead of times; the rules themselves only when asked for."""
    return HostView(
        host=row.name,
        open=row.open,
        delay=row.delay,
        crawl_delay=row.crawl_delay,
        level=row.level,
        trouble=row.trouble,
        bad_for=0.0 if row.bad_since is None else max(now - row.bad_since, 0.0),
        parked_for=max(_parked(row, now) - now, 0.0),
        latency=row.latency,
        robots_version=row.robots_version if knows_robots(row, now) else 0,
        robots=(row.robots or b"") if robots else b"",
    )


def _parked(row: HostRow, now: float) -> float:
    return min(row.parked_until, now + MAX_PARKED)


_NOTHING = HostOrder()

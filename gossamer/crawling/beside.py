"""`page.fetch`: one item over several pages, in the slot that the page's own lease holds.

The host of the page is asked again only after its delay, and within its robots.txt. Another host would need a slot of its own,
which only the frontier grants: such a page is followed, with what is known so far in `meta`.

What the host says here counts like everything it says: a 429 parks it, and the next turn is counted from the last request.
An exchange that fails raises in the handler; if the handler lets it, the page is tried again like one that failed itself.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import msgspec

from gossamer.model.errors import UsageError
from gossamer.model.host import HostOrder, HostView
from gossamer.model.record import Grant
from gossamer.model.redirects import MAX_HOPS, follow
from gossamer.model.request import Request
from gossamer.model.retry import cause_of, code_of
from gossamer.model.url import host_key
from gossamer.ports.transport import Answer, FetchError

if TYPE_CHECKING:
    from gossamer.crawling.visit import Visited, Visits


class AnsweredBadly(FetchError):  # noqa: N818  (a fact, like the error that it stands beside)
    """The host answered, but with no page: a status that calls for another attempt (429, 5xx)."""

    def __init__(self, code: str, url: str) -> None:
        super().__init__(code, f"page.fetch of {url}")  # type: ignore[arg-type]


class Beside:
    """What a page's handler fetches beside it: one after the other, and what that means for the host."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.sent_at = 0.0
        self.order: HostOrder | None = None
        self.wire_bytes = 0

    def heard(self, visits: Visits, grant: Grant, view: HostView, code: str, answer: Answer | None) -> None:
        """The end of one exchange: `answer` is None where there was none; then it went out at the latest now."""
        self.sent_at = max(self.sent_at, time.monotonic() if answer is None else answer.sent_at)
        latency = 0.0
        if answer is not None:
            self.wire_bytes += answer.wire_bytes
            latency = answer.latency
        order = visits.order_after(view, code, latency, answer, retries=grant.retries)
        if order is not None:
            self.order = order if self.order is None else both(self.order, order)

    def settled_with(self, visited: Visited) -> Visited:
        """The page's own end, with the host's last turn and what it said on the way."""
        outcome, sent_at, body = visited
        ours = outcome.host
        if self.order is not None:
            # A host that answered the page itself is well: what fails beside its pages must not end them all.
            well = HostOrder(good=True) if ours is None or not ours.bad else ours
            beside = self.order if well is ours else msgspec.structs.replace(self.order, give_up="")
            outcome.host = both(beside, well if ours is None else both(ours, well))
        outcome.counts = {**outcome.counts, "bytes": outcome.counts.get("bytes", 0) + self.wire_bytes}
        return type(visited)(outcome, max(sent_at or 0.0, self.sent_at), body)


def both(one: HostOrder, other: HostOrder) -> HostOrder:
    """What two exchanges mean together: the later measurements, and the stricter of everything else."""
    return HostOrder(
        turn=max(one.turn, other.turn),
        delay=max(one.delay or 0.0, other.delay or 0.0)
        if one.delay is not None or other.delay is not None
        else None,
        latency=one.latency if other.latency is None else other.latency,
        good=one.good or other.good,
        bad=one.bad or other.bad,
        park=max(one.park, other.park),
        level=max(one.level, other.level),
        robots=other.robots or one.robots,
        give_up=one.give_up or other.give_up,
    )


async def fetch_beside(visits: Visits, request: Request, grant: Grant, view: HostView) -> Answer:
    """The answer to `request`, following redirects in place. Raises UsageError for what must not be fetched so, and FetchError
    where there is no page to be had now."""
    beside = visits.besides.setdefault(grant.number, Beside())
    for _ in range(MAX_HOPS + 1):
        await _check(visits, request, grant, view)
        async with beside.turn:
            answer = await _exchange(visits, beside, request, grant, view)
        hop = follow(
            answer.status, request.method, tuple(request.headers.items()), request.body, request.url,
            answer.header("location"), options=visits.runtime.outlinks.options,
        )  # fmt: skip
        if hop is None:
            return answer
        request = request.changed(
            url=hop.url,
            method=hop.method,
            headers=dict(hop.headers),
            body=None if hop.drop_body else request.body,
        )
    raise UsageError("More than 10 redirects", where=request.url, hint="check the page in a browser")


async def _check(visits: Visits, request: Request, grant: Grant, view: HostView) -> None:
    """Refuse what the page's slot does not cover, and what robots.txt forbids."""
    host = host_key(request.url)
    settings = visits.runtime.settings
    if host != grant.host:
        raise UsageError(
            f"page.fetch may ask the page's own host only ({grant.host}), not {host}",
            where=request.url,
            hint="yield a Request with what you know so far in meta, and build the item in its handler",
        )
    if settings.robots:
        rules = visits.rules.known(view) or await visits.rules.of(view)
        if not rules.allowed(request.url, settings.user_agent):
            raise UsageError("robots.txt forbids this page", where=request.url, hint="leave it out")


async def _exchange(visits: Visits, beside: Beside, request: Request, grant: Grant, view: HostView) -> Answer:
    gap = visits.runtime.pace.gap(view)
    await asyncio.sleep(gap)
    try:
        answer = await visits.fetch(request, grant.host, gap)
    except FetchError as error:
        beside.heard(visits, grant, view, error.code, None)
        raise
    code = code_of(answer.status)
    beside.heard(visits, grant, view, code, answer)
    if code and cause_of(code).retry and not request.any_status:
        raise AnsweredBadly(code, request.url)
    return answer

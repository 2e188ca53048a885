"""`page.fetch`: one item over several pages, in the slot that the page's own lease holds.

The host of the page is asked again only after its delay, and within its robots.txt. Another host would need a slot of its own,
which only the frontier grants: such a page is followed, with what is known so far in `meta`.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gossamer.model.errors import UsageError
from gossamer.model.host import HostView
from gossamer.model.record import Grant
from gossamer.model.redirects import MAX_HOPS, follow
from gossamer.model.request import Request
from gossamer.model.url import host_key
from gossamer.ports.transport import Answer

if TYPE_CHECKING:
    from gossamer.crawling.visit import Visits


async def fetch_beside(visits: Visits, request: Request, grant: Grant, view: HostView) -> Answer:
    """The answer to `request`, following redirects in place. Raises UsageError for what must not be fetched so."""
    runtime = visits.runtime
    turns = visits.turns
    for _ in range(MAX_HOPS + 1):
        host = host_key(request.url)
        if host != grant.host:
            raise UsageError(
                f"page.fetch may ask the page's own host only ({grant.host}), not {host}",
                where=request.url,
                hint="yield a Request with what you know so far in meta, and build the item in its handler",
            )
        if runtime.settings.robots:
            rules = visits.rules.known(view) or await visits.rules.of(view)
            if not rules.allowed(request.url, runtime.settings.user_agent):
                raise UsageError("robots.txt forbids this page", where=request.url, hint="leave it out")
        async with turns.setdefault(grant.number, asyncio.Lock()):
            await asyncio.sleep(runtime.pace.gap(view))
            answer = await visits.fetch(request, host)
        hop = follow(
            answer.status, request.method, tuple(request.headers.items()), request.body, request.url,
            answer.header("location"), options=runtime.outlinks.options,
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

"""The rules of hosts, as this worker keeps them: read from the host's row once a version, learned on a robots lease."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable

from msgspec.structs import replace

from gossamer.model.errors import InvalidURL
from gossamer.model.host import HostOrder, HostView
from gossamer.model.pace import Pace
from gossamer.model.parking import parse_retry_after
from gossamer.model.redirects import follow
from gossamer.model.retry import code_of
from gossamer.model.robots import RobotsRules, Unreachable
from gossamer.model.url import host_key
from gossamer.ports.frontier import Oversight
from gossamer.ports.transport import Answer, Exchange, FetchError, Transport

KEPT = 20_000  # hosts whose rules are kept in memory; the least asked for are read again
HOPS = 5  # redirects of robots.txt that are followed (RFC 9309)


class Rules:
    """Compiled robots.txt by host, for all tasks of a worker."""

    def __init__(self, store: Oversight) -> None:
        self._store = store
        self._kept: OrderedDict[str, tuple[int, RobotsRules]] = OrderedDict()

    def known(self, view: HostView) -> RobotsRules | None:
        """The rules of this version, if they are at hand."""
        kept = self._kept.get(view.host)
        if kept is None or kept[0] != view.robots_version:
            return None
        self._kept.move_to_end(view.host)
        return kept[1]

    async def of(self, view: HostView) -> RobotsRules:
        """The rules that the host's row holds."""
        row = (await self._store.hosts([view.host])).get(view.host, view)
        rules = RobotsRules(row.robots.decode("utf-8", "replace"))
        self._kept[view.host] = (row.robots_version, rules)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return rules


async def learn(
    exchange: Exchange,
    view: HostView,
    pace: Pace,
    transport: Transport,
    rand: float,
    wall: float,
    is_private: Callable[[str], bool],
) -> tuple[HostOrder, float | None]:
    """Fetch a robots.txt, through at most five redirects in place; the order for its host and when it was last asked.

    Each hop is judged by itself: that the first host was named at the keyboard opens no other one.
    """
    sent_at: float | None = None
    url = exchange.url
    try:
        for _ in range(HOPS + 1):
            host = host_key(url)
            if sent_at is not None and host == view.host:
                await asyncio.sleep(pace.gap(view))
            answer = await transport.send(replace(exchange, url=url, allow_private=is_private(host)))
            if host == view.host:
                sent_at = answer.sent_at
            target = redirected(answer, url)
            if target is None:
                break
            url = target
    except FetchError as error:
        return pace.robots_unknown(view, error.code, rand, elsewhere=host_key(url) != view.host), sent_at
    rules = RobotsRules.parse(answer.status, answer.body)
    if isinstance(rules, Unreachable):
        after = parse_retry_after(answer.header("retry-after"), wall)
        order = pace.robots_unknown(
            view,
            code_of(answer.status) or rules.code,
            rand,
            retry_after=after,
            elsewhere=host_key(url) != view.host,
        )
        return order, sent_at
    return pace.robots_known(
        view, rules, answer.latency, rand, cache_control=answer.header("cache-control")
    ), sent_at


def redirected(answer: Answer, url: str) -> str | None:
    """Where robots.txt has moved to; None if this answer is to be read."""
    try:
        hop = follow(answer.status, "GET", (), None, url, answer.header("location"))
    except InvalidURL:
        return None
    return hop.url if hop is not None else None

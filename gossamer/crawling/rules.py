"""The rules of hosts, as this worker keeps them: read from the host's row once a version, learned on a robots lease."""

from __future__ import annotations

from collections import OrderedDict

from gossamer.model.errors import InvalidURL
from gossamer.model.host import HostOrder, HostView
from gossamer.model.pace import Pace
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
        return kept[1] if kept is not None and kept[0] == view.robots_version else None

    async def of(self, view: HostView) -> RobotsRules:
        """The rules that the host's row holds."""
        row = (await self._store.hosts([view.host])).get(view.host, view)
        rules = RobotsRules(row.robots.decode("utf-8", "replace"))
        self._kept[view.host] = (row.robots_version, rules)
        if len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        return rules


async def learn(
    exchange: Exchange, view: HostView, pace: Pace, transport: Transport, rand: float, wall: float
) -> tuple[HostOrder, float | None]:
    """Fetch a robots.txt, through at most five redirects in place; the order for its host and when it was sent."""
    from gossamer.model.parking import parse_retry_after

    sent_at: float | None = None
    url = exchange.url
    try:
        for _ in range(HOPS + 1):
            answer = await transport.send(moved(exchange, url))
            sent_at = sent_at if sent_at is not None else answer.sent_at
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


def moved(exchange: Exchange, url: str) -> Exchange:
    import msgspec

    return exchange if url == exchange.url else msgspec.structs.replace(exchange, url=url)


def redirected(answer: Answer, url: str) -> str | None:
    """Where robots.txt has moved to; None if this answer is to be read."""
    try:
        hop = follow(answer.status, "GET", (), None, url, answer.header("location"))
    except InvalidURL:
        return None
    return hop.url if hop is not None else None

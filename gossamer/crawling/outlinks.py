"""From what a handler wants to follow to the links that are pushed: scope, what is known, fingerprints."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable

from gossamer.crawling.knowing import Known
from gossamer.model.errors import InvalidURL
from gossamer.model.order import priority_of
from gossamer.model.record import Link
from gossamer.model.request import Request, encode
from gossamer.model.scope import Boundary
from gossamer.model.settings import Settings
from gossamer.model.traps import TrapLimits, trap
from gossamer.model.url import UrlOptions, canonical, fingerprint, fingerprint_of_key, host_key, shown
from gossamer.spiders.follow import Follow


class Refusals:
    """Links that were not taken: how many for each cause, with an example."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.samples: list[tuple[str, str]] = []

    def add(self, cause: str, url: str) -> None:
        name = f"refused:{cause}"
        if name not in self.counts:
            self.samples.append((name, url[:500]))
        self.counts[name] += 1


class Outlinks:
    """Makes links for one task in one worker."""

    def __init__(self, settings: Settings, boundary: Boundary, known: Known) -> None:
        self.known = known
        options = UrlOptions(
            sort_query=settings.sort_query,
            drop_params=settings.drop_params,
            allow_ports=frozenset(settings.allow_ports),
        )
        self.options = None if options == UrlOptions() else options  # None is the fast path of reading links
        self._boundary = boundary
        self._order = settings.order
        self._traps = TrapLimits(
            segments=settings.max_segments, repeats=settings.max_repeats, parameters=settings.max_params
        )

    def of_follow(self, follow: Follow, depth: int, refusals: Refusals) -> list[Link]:
        """The new links among many that share their options: the hot path."""
        for why, count in follow.refused.items():
            refusals.counts[f"refused:{why}"] += count
        like = follow.like
        if like is not None and (like.method != "GET" or like.body or like.key or not like.dedupe):
            return [link for request in follow for link in self.of_request(request, depth, refusals)]
        priority = priority_of(self._order, depth, follow.priority)
        unknown = self.known.unknown(follow.urls, priority)
        if not unknown:
            return []
        extra = follow.extra
        links = []
        for url in unknown:
            host = host_key(url)
            cause = self.refusal(url, host, depth)
            if cause is None:
                links.append(Link(fingerprint("GET", url), url, host, priority, depth, request=extra))
            else:
                refusals.add(cause, url)
        return links

    def of_request(self, request: Request, depth: int, refusals: Refusals, hops: int = 0) -> list[Link]:
        """The link of one request; none where it is refused."""
        try:
            url = canonical(request.url, options=self.options)
        except InvalidURL as error:
            refusals.add(error.reason, shown(request.url))
            return []
        host = host_key(url)
        cause = self.refusal(url, host, depth)
        if cause is not None:
            refusals.add(cause, url)
            return []
        priority = priority_of(self._order, depth, request.priority)
        if not request.dedupe:
            key = secrets.token_bytes(16)
        elif request.key is not None:
            key = fingerprint_of_key(request.key)
        else:
            key = fingerprint(request.method, url, request.body)
        own = request.key is not None
        return [Link(key, url, host, priority, depth, hops=hops, request=encode(request), own_key=own)]

    def refusal(self, url: str, host: str, depth: int) -> str | None:
        """Why this URL is not taken, being out of scope; None when it is."""
        return self._boundary.refusal(url, host, depth)

    def is_trap(self, url: str) -> bool:
        """Whether the URL has a shape that no honest page has; such a record is kept, and never fetched."""
        return trap(url, self._traps) is not None

    def acknowledge(self, links: Iterable[Link]) -> None:
        """A settle with these links is durable."""
        add = self.known.add
        for link in links:
            if not link.own_key:
                add(link.url, link.priority)

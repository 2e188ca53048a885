"""The known web: many hosts, everything that goes wrong on the real one, and the truth about every URL.

    web = KnownWeb(seed=7, pages=500, hosts=4, mix=Mix())
    async with serve(web) as origin:
        ...                                  # crawl web.seeds, allowed on web.hosts
    assert ended == web.expected()           # {url: Outcome(State.DONE, "ok"), …}

Equal arguments give equal webs, in this process or in a child. Hosts are 127.0.0.2, 127.0.0.3, … on one port; one
more address (`foreign`) is linked to and out of scope.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from gossamer.testing.web.filler import filler
from gossamer.testing.web.graph import Graph
from gossamer.testing.web.mix import Mix
from gossamer.testing.web.node import AWAY, ENDLESS, READABLE, REDIRECTS, Kind, Node
from gossamer.testing.web.oracle import OK, Found, Limits, Outcome, reached, requests_for
from gossamer.testing.web.reply import (
    Ending,
    Reply,
    Request,
    head_of,
    plain,
    redirect,
    reset,
    respond,
    silence,
)
from gossamer.testing.web.robots import RobotsOf
from gossamer.testing.web.site import loopback
from gossamer.testing.web.writing import Writer

FIRST_ADDRESS = 2
PRODUCT = Limits()
_STEP = re.compile(
    r"(?P<maze>/maze/m\d+/)(?P<again>(?:again/)*)|(?P<calendar>/calendar/c\d+/)(?P<year>\d{4})/(?P<month>\d\d)"
)


class KnownWeb:
    """A web drawn from a seed, the site that serves it and the oracle that knows it."""

    counted = True

    def __init__(self, seed: int = 1, pages: int = 500, hosts: int = 3, mix: Mix | None = None) -> None:
        self.seed = seed
        self.pages = pages
        self.mix = mix or Mix()
        self.addresses = loopback(hosts + 1, FIRST_ADDRESS)
        self.hosts: list[str] = []
        self.foreign = ""
        self._rules = RobotsOf(hosts, self.mix)
        self._graph = Graph(seed, pages, hosts, self.mix, self._rules.closed)
        self._places: dict[tuple[str, str], Node] = {}

    def bind(self, hosts: Sequence[str], scheme: str = "http") -> None:
        """Tells the web the host:port of each of its addresses; the last one is the foreign one."""
        if scheme != "http" or len(hosts) != len(self.addresses):
            raise ValueError(
                f"a known web needs {len(self.addresses)} hosts (one is foreign) and speaks plain http"
            )
        *self.hosts, self.foreign = hosts
        self._places = {(self.hosts[node.host], node.path): node for node in self._graph.nodes}

    def arguments(self) -> dict[str, object]:
        """The options of `start_child("known", …)` that make the same web in a child process."""
        return {
            "seed": self.seed,
            "pages": self.pages,
            "hosts": len(self.addresses) - 1,
            "mix": self.mix.text(),
        }

    @property
    def seeds(self) -> list[str]:
        return [self._url(0, "/")]

    def expected(self, limits: Limits = PRODUCT) -> dict[str, Outcome]:
        """What must become of every URL in scope that can be reached from the seeds."""
        return {self._where(found): outcome for found, outcome in reached(self._graph, limits)}

    def items(self, limits: Limits = PRODUCT) -> dict[str, dict[str, Any]]:
        """The item that the default crawl writes for every page that could be read."""
        return {
            self._where(found): {
                "url": self._where(found),
                "status": 200,
                "title": self._title(found.node, found.step),
                "depth": found.depth,
            }
            for found, outcome in reached(self._graph, limits)
            if outcome.code == OK
        }

    def requests(self, limits: Limits = PRODUCT) -> dict[str, int]:
        """How often a crawl without faults asks for a URL; those that depend on the retry policy are left out."""
        counts = {
            self._where(found): requests_for(found.node, outcome)
            for found, outcome in reached(self._graph, limits)
        }
        return {url: count for url, count in counts.items() if count is not None}

    def kinds(self, limits: Limits = PRODUCT) -> dict[str, Kind]:
        """What each URL is, for messages and for tests of one kind."""
        return {self._where(found): found.node.kind for found, _ in reached(self._graph, limits)}

    def robots(self, host: str) -> str | None:
        """The robots.txt of a host:port; None where there is none."""
        return self._rules.text(self.hosts.index(host))

    def delays(self, least: float = 0.0) -> dict[str, float]:
        """Seconds that must lie between two requests to each host, Crawl-delay included."""
        return {host: max(least, self._rules.delay(number)) for number, host in enumerate(self.hosts)}

    def answer(self, request: Request, attempt: int) -> Reply:
        if request.host == self.foreign:
            return respond(200, "<title>Out of scope</title><p>Nobody should be here.</p>")
        if request.target == "/robots.txt":
            return self._rules.answer(self.hosts.index(request.host), attempt)
        node, step = self._places.get((request.host, request.target)), 0
        if node is None or node.kind in ENDLESS:
            node, step = self._endless(request)
        if node is None:
            return respond(404, "<title>Not known</title><p>No page links here.</p>")
        reply = self._reply(node, step, attempt)
        if self.mix.latency:
            reply.delay += self.mix.latency * (node.number * 37 % 101 / 100)
        return reply

    def _endless(self, request: Request) -> tuple[Node | None, int]:
        match = _STEP.fullmatch(request.target)
        if match is None:
            return None, 0
        node = self._places.get((request.host, match["maze"] or match["calendar"]))
        if match["maze"]:
            return node, match["again"].count("/")
        return node, (int(match["year"]) - 2024) * 12 + int(match["month"]) - 1

    def _reply(self, node: Node, step: int, attempt: int) -> Reply:
        if attempt <= len(node.moods):
            return self._mood(node.moods[attempt - 1])
        if node.kind in READABLE or node.kind in ENDLESS:
            reply = self._html(node, step)
            reply.delay = self.mix.slow_seconds if node.kind is Kind.SLOW else 0.0
            return reply
        if node.kind in REDIRECTS:
            return redirect(node.status, self._location(node))
        match node.kind:
            case Kind.DOWN:
                return plain(node.status, "out of order\n")
            case Kind.BROKEN:
                return self._mood(0)
            case Kind.HANGING:
                return silence()
            case Kind.LARGE:
                return respond(200, _bulk(self.mix.large_bytes))
            case Kind.TRUNCATED:
                half = filler(2000)
                return Reply(200, head_of(200, 4000), (half,), ending=Ending.CLOSE)
            case Kind.TRAP:  # readable for those who raise the limits
                return self._html(node, step)
            case Kind.DENIED:
                return respond(200, "<title>Trespasser</title><p>No polite crawler reads this.</p>")
        return respond(404, "<title>Missing</title><p>There is no such page.</p>")

    def _mood(self, status: int) -> Reply:
        if status == 0:
            return reset()
        if status != 429:
            return plain(status, "try again\n")
        reply = respond(429, "slower, please\n", "text/plain", [f"Retry-After: {self.mix.retry_after}"])
        reply.retry_after = float(self.mix.retry_after)
        return reply

    def _location(self, node: Node) -> str:
        if node.target in (AWAY, None):
            return f"http://{self.foreign}/from/{node.number}"
        target = self._graph.nodes[node.target]
        url = self._where(Found(target, 0, 0, 0))
        return (
            url
            if target.host != node.host or node.number % 2
            else url.removeprefix(f"http://{self.hosts[node.host]}")
        )

    def _html(self, node: Node, step: int) -> Reply:
        source = node if node.twin is None else self._graph.nodes[node.twin]
        writer = Writer(self.hosts[source.host], source.path, source.number)
        title = self._title(node, step)
        if node.kind is not Kind.GBK:
            page = writer.page(title, list(self._hrefs(source, step, writer)))
            return respond(200, page, "text/html; charset=utf-8" if source.number % 3 else "text/html")
        by_meta = node.number % 2 == 1
        page = writer.page(title, list(self._hrefs(source, step, writer)), "gbk", declared=by_meta)
        return respond(200, page.encode("gbk"), "text/html" if by_meta else "text/html; charset=GBK")

    def _hrefs(self, node: Node, step: int, writer: Writer) -> Iterator[str]:
        if node.kind is Kind.MAZE:
            yield "again/"
        elif node.kind is Kind.CALENDAR:
            yield node.step(step + 1)
        for number in node.links:
            other = self._graph.nodes[number]
            path = other.step(0) if other.kind in ENDLESS else other.path
            if other.href and node.kind is Kind.GBK:  # only in this page's encoding does it mean that URL
                path = other.href
            yield writer.spell(self.hosts[other.host], path)
        if node.foreign:
            yield f"http://{self.foreign}/outside/{node.number}"

    def _title(self, node: Node, step: int) -> str:
        if node.twin is not None:
            return self._graph.nodes[node.twin].title
        return f"{node.title} step {step}" if node.kind in ENDLESS else node.title

    def _where(self, found: Found) -> str:
        return self._url(found.node.host, found.path)

    def _url(self, host: int, path: str) -> str:
        if not self.hosts:
            raise RuntimeError(
                "this web is not served yet, so its URLs are not known: serve it, or call bind() first"
            )
        return f"http://{self.hosts[host]}{path}"


@lru_cache(maxsize=2)
def _bulk(size: int) -> bytes:
    return filler(size)

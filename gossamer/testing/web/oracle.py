"""The truth about a known web: what must become of every URL that a crawl can reach.

It walks the graph, not the network, and knows no crawler: only the rules of the product, restated here. A link adds
one to the depth, a redirect one to the hops.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from gossamer.model.record import REDIRECTED, State
from gossamer.testing.web.graph import Graph
from gossamer.testing.web.node import AWAY, ENDLESS, READABLE, REDIRECTS, Kind, Node

OK = "ok"
"""The code of a page that was read."""
TRAP = "trap"
TOO_MANY_HOPS = "redirect_limit"


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a crawl that change its outcome; the defaults are those of the product."""

    hops: int = 10
    repeats: int = 2
    segments: int = 20
    params: int = 20
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a record must end."""

    state: State
    code: str

    def __str__(self) -> str:
        return f"{self.state.name}({self.code})"


@dataclass(frozen=True, slots=True)
class Found:
    """A place that a crawl reaches: a node, for endless ones the step, with the depth and hops it is reached with."""

    node: Node
    step: int
    depth: int
    hops: int

    @property
    def path(self) -> str:
        return self.node.step(self.step) if self.node.kind in ENDLESS else self.node.path


def reached(graph: Graph, limits: Limits) -> Iterator[tuple[Found, Outcome]]:
    """Every place once, nearest first, with its outcome."""
    if limits.depth is None and any(node.kind is Kind.CALENDAR for node in graph.nodes):
        raise ValueError("this web has an endless calendar: give Limits(depth=…), or its crawl has no end")
    waiting = deque([Found(graph.nodes[0], 0, 0, 0)])
    seen: set[tuple[int, int]] = set()
    while waiting:
        found = waiting.popleft()
        place = (found.node.number, found.step)
        if place in seen or (limits.depth is not None and found.depth > limits.depth):
            continue
        seen.add(place)
        outcome = outcome_of(found, limits)
        yield found, outcome
        if outcome.code == REDIRECTED and found.node.target not in (AWAY, None):
            # In front of the queue: it is as near as the page that sent us there.
            waiting.appendleft(Found(graph.nodes[found.node.target], 0, found.depth, found.hops + 1))
        elif outcome.code == OK:
            waiting.extend(_linked(graph, found))


def _linked(graph: Graph, found: Found) -> Iterator[Found]:
    if found.node.kind in ENDLESS:
        yield Found(found.node, found.step + 1, found.depth + 1, 0)
        return
    source = found.node if found.node.twin is None else graph.nodes[found.node.twin]
    for number in source.links:
        yield Found(graph.nodes[number], 0, found.depth + 1, 0)


def outcome_of(found: Found, limits: Limits) -> Outcome:
    node = found.node
    if is_trap(found.path, limits):
        return Outcome(State.SKIPPED, TRAP)
    if node.kind in REDIRECTS:
        if node.target == node.number:
            return Outcome(State.FAILED, "redirect_loop")
        if found.hops + 1 > limits.hops:
            return Outcome(State.FAILED, TOO_MANY_HOPS)
        return Outcome(State.DONE, REDIRECTED)
    if node.kind in READABLE or node.kind in ENDLESS or node.kind is Kind.TRAP:
        return Outcome(State.DONE, OK)
    match node.kind:
        case Kind.MISSING:
            return Outcome(State.DONE, "http_404")
        case Kind.DENIED:
            return Outcome(State.SKIPPED, "robots")
        case Kind.DOWN:
            return Outcome(State.FAILED, f"http_{node.status}")
    return Outcome(State.FAILED, _FAILURES[node.kind])


_FAILURES = {
    Kind.BROKEN: "reset",
    Kind.LARGE: "too_large",
    Kind.HANGING: "timeout_header",
    Kind.TRUNCATED: "incomplete",
}


def is_trap(path: str, limits: Limits) -> bool:
    """Too many segments or parameters, or one segment too often."""
    path, _, query = path.partition("?")
    segments = path.strip("/").split("/")
    if len(segments) > limits.segments or query.count("&") >= limits.params:
        return True
    return max(Counter(segments).values()) > limits.repeats


def requests_for(node: Node, outcome: Outcome) -> int | None:
    """How many requests a crawl without faults sends for it; None where that is the retry policy's affair."""
    if outcome.state is State.SKIPPED:
        return 0
    if outcome.state is State.DONE or node.kind in REDIRECTS:
        return len(node.moods) + 1
    return None

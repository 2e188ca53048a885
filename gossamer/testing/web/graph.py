"""The graph of the known web, drawn from a seed.

It is built in layers so that the truth does not depend on the order of a crawl: a page is linked from pages of the
layer before it, and otherwise only from pages that cannot have been read unless it was known already (everything
links back to the start and to the first layer). A redirect leads to its own layer. So a page's depth is its layer,
whichever worker comes first. Hops of a chain are linked from nowhere but the hop before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

from gossamer.testing.web.filler import WORDS
from gossamer.testing.web.mix import Mix
from gossamer.testing.web.node import AWAY, READABLE, REDIRECTS, Kind, Node

FIRST_LAYER = 12
GROWTH = 4
SMALLEST = 40
LONG_CHAIN_HOPS = 14
MANY = 25  # more segments or parameters than a crawler should believe in


class Graph:
    """All nodes of one web. `pages` of them are drawn from the mix; ends of redirects and the like come on top."""

    def __init__(self, seed: int, pages: int, hosts: int, mix: Mix, closed: frozenset[int]) -> None:
        """`closed` are the hosts whose robots.txt can deny a path."""
        if pages < SMALLEST:
            raise ValueError(f"a known web has {SMALLEST} pages or more, not {pages}")
        self.nodes: list[Node] = []
        self._draw = random.Random(f"known web {seed} {pages} {hosts}")
        self._seed = seed
        self._hosts = hosts
        self._closed = sorted(closed)
        self._mix = mix
        self._first: list[Node] = []
        self._twins: set[int] = set()
        self._build(pages)

    def _build(self, pages: int) -> None:
        root = self._add(Kind.PAGE, 0, host=0, path="/")
        parents = [root]
        for layer, kinds in enumerate(self._layers(pages - 1), start=1):
            drawn = [self._drawn(kind, layer) for kind in kinds]
            self._first = self._first or drawn
            for node in drawn:
                for parent in self._draw.sample(parents, min(len(parents), self._draw.randint(1, 6))):
                    parent.links.append(node.number)
            before = len(self.nodes)
            self._lead(drawn)
            parents = [
                node
                for node in (*drawn, *self.nodes[before:])
                if node.kind in READABLE and node.layer == layer
            ]
            self._repeat(drawn)
        for node in self.nodes:
            if node.kind in READABLE and node.twin is None:
                self._link_back(node)

    def _layers(self, count: int) -> Iterator[list[Kind]]:
        """The kinds of each layer, an ordinary page first in each, so that no layer is a dead end."""
        sizes, left, size = [], count, FIRST_LAYER
        while left:
            sizes.append(min(size, left))
            left -= sizes[-1]
            size *= GROWTH
        odd = [
            Kind(name)
            for name, share in self._mix.shares().items()
            if share
            for _ in range(max(1, round(share * count)))
        ]
        room = count - len(sizes)
        if len(odd) > room:
            raise ValueError(
                f"{len(odd)} odd pages of all kinds do not fit into {count + 1}: ask for more pages"
            )
        rest = odd + [Kind.PAGE] * (room - len(odd))
        self._draw.shuffle(rest)
        for size in sizes:
            yield [Kind.PAGE, *rest[: size - 1]]
            del rest[: size - 1]

    def _drawn(self, kind: Kind, layer: int) -> Node:
        draw = self._draw
        node = self._add(kind, layer, host=draw.choice(self._closed) if kind is Kind.DENIED else None)
        match kind:
            case Kind.FLAKY:
                node.moods = tuple(draw.choices((500, 503, 0), k=draw.randint(1, 2)))
            case Kind.LIMITED:
                node.moods = (429,) * draw.randint(1, 2)
            case Kind.DOWN:
                node.status = draw.choice((500, 503))
            case Kind.GBK:
                self._add_search(node)
        return node

    def _add(self, kind: Kind, layer: int, host: int | None = None, path: str | None = None) -> Node:
        number = len(self.nodes)
        where = self._draw.randrange(self._hosts) if host is None else host
        title = f"{self._draw.choice(WORDS).title()} & {self._draw.choice(WORDS)} {self._seed}-{number}"
        if kind is Kind.GBK:
            title = f"第{number}页 蜘蛛网 {self._seed}-{number}"
        node = Node(number, kind, where, layer, path or self._path(kind, number), title)
        node.foreign = kind in READABLE and self._draw.random() < self._mix.foreign
        self.nodes.append(node)
        return node

    def _path(self, kind: Kind, number: int) -> str:
        match kind:
            case Kind.DENIED:
                return f"/private/{number}"
            case Kind.MAZE:
                return f"/maze/m{number}/"
            case Kind.CALENDAR:
                return f"/calendar/c{number}/"
            case Kind.TRAP if number % 2:
                return f"/deep/{'/'.join(f's{step}-{number}' for step in range(MANY))}"
            case Kind.TRAP:
                return f"/search?{'&'.join(f'p{step}={number}' for step in range(MANY))}"
        shapes = ("/page/{0}", "/item?id={0}&lang=en", "/d{1}/s{2}/{0}.html", "/caf%C3%A9/{0}", "/p/{0}/")
        return self._draw.choice(shapes).format(number, number % 7, number % 11)

    def _add_search(self, node: Node) -> None:
        """What a GBK page links to: a browser writes the query in the encoding of the page."""
        words = "蜘蛛 网页"[:: self._draw.choice((1, -1))]
        query = "".join(f"%{byte:02X}" for byte in words.encode("gbk"))
        found = self._add(Kind.PAGE, node.layer + 1, path=f"/find/{node.number}?q={query}")
        found.href = f"/find/{node.number}?q={words}"
        node.links.append(found.number)

    def _lead(self, drawn: list[Node]) -> None:
        """Gives the redirects of a layer their hops and their ends, which lie in the same layer."""
        ends = [node for node in drawn if node.kind not in REDIRECTS]
        for node in [node for node in drawn if node.kind in REDIRECTS]:
            if node.kind is Kind.LOOP:
                hops = self._hops(node, self._draw.randrange(3))
                hops[-1].target = node.number
                continue
            more = {Kind.MOVED: 0, Kind.CHAIN: self._draw.randint(1, 4)}.get(node.kind, LONG_CHAIN_HOPS)
            last = self._hops(node, more)[-1]
            if self._draw.random() < 0.1:
                last.target = AWAY
            elif self._draw.random() < 0.5:
                last.target = self._draw.choice(ends).number
            else:
                last.target = self._add(Kind.PAGE, node.layer).number

    def _hops(self, first: Node, more: int) -> list[Node]:
        hops = [first, *(self._add(first.kind, first.layer) for _ in range(more))]
        for hop, following in pairwise(hops):
            hop.target = following.number
        for hop in hops:
            hop.status = self._draw.choice((301, 302, 303, 307, 308))
        return hops

    def _repeat(self, drawn: list[Node]) -> None:
        """Duplicates have the bytes of the layer's first page: its title, its links, and so also its host."""
        for node in drawn:
            if node.kind is Kind.DUPLICATE:
                node.twin, node.host = drawn[0].number, drawn[0].host
                self._twins.add(drawn[0].number)

    def _link_back(self, node: Node) -> None:
        node.links += [0, *(other.number for other in self._draw.sample(self._first, 2))]
        if node.number not in self._twins:  # or its duplicates would link to their own layer
            node.links.append(node.number)
        self._draw.shuffle(node.links)

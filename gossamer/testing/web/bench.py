"""A site that is nothing but fast: any number of equal pages, each with exactly 40 links to other pages.

A page is a constant response head, a short part of its own and a tail that all pages share. Page i links to page
(i + o) mod N for 40 different steps o, one of which is 1: links are distinct, none leads to the page itself, every
page can be reached from / and a crawl is a few levels deep. Page i lives on host i mod hosts.

A compressed page costs as little: deflate blocks can be put one behind the other, so the shared tail is compressed
once, the page's own part goes in as it is, and the checksum over both is put together from tables.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Sequence

from gossamer.testing.web.filler import filler
from gossamer.testing.web.reply import Reply, Request, head_of, plain
from gossamer.testing.web.site import loopback

LINKS = 40
SMALLEST = 4096
END = b"\n</body></html>\n"


class Bench:
    """`pages` pages of `size` bytes over `hosts` loopback addresses, equal for equal seeds."""

    counted = False

    def __init__(
        self, pages: int = 5000, size: int = 12_800, hosts: int = 1, seed: int = 0, *, gzip: bool = False
    ) -> None:
        if pages <= LINKS:
            raise ValueError(
                f"{pages} pages cannot have {LINKS} different links each: ask for {LINKS + 1} or more"
            )
        self.pages = pages
        self.size = size
        self.addresses = loopback(hosts)
        self._gzip = gzip
        self._width = len(str(pages - 1))
        self._steps = [1, *random.Random(f"bench {seed}").sample(range(2, pages), LINKS - 1)]
        self._seed = seed
        self.hosts: list[str] = []
        self._bases: list[str] = []

    def bind(self, hosts: Sequence[str], scheme: str = "http") -> None:
        self.hosts = list(hosts)
        self._roots = {host: place for place, host in enumerate(hosts)}
        self._bases = [f"{scheme}://{host}" for host in hosts]
        self._anchors = self._all_anchors()
        own = len(self._own_part(0))
        if self.size < own + SMALLEST // 4:
            raise ValueError(
                f"a page with {LINKS} links needs {own + SMALLEST // 4} bytes; {self.size} were asked for"
            )
        self._tail = filler(self.size - own - len(END), self._seed) + END
        self._head = head_of(200, self.size)
        if self._gzip:
            self._squeeze(own)

    @property
    def seeds(self) -> list[str]:
        return [f"{self._bases[0]}/"]

    def links(self, page: int) -> list[int]:
        """The 40 pages that a page links to."""
        return [(page + step) % self.pages for step in self._steps]

    def url(self, page: int) -> str:
        return f"{self._bases[page % len(self._bases)]}{self._path(page)}"

    def answer(self, request: Request, attempt: int) -> Reply:  # noqa: ARG002 - nothing here depends on it
        target = request.target
        try:
            page = int(target[6:]) if target.startswith("/page/") else {"/": 0}[target]
            wrong = self._path(page) != target or page % len(self._bases) != self._roots[request.host]
        except (KeyError, ValueError):
            return self._other(target)
        if wrong or page >= self.pages:
            return self._other(target)
        if self._gzip and b"gzip" in request.head:
            return Reply(200, self._packed_head, self._packed(page))
        return Reply(200, self._head, (self._own_part(page), self._tail))

    def _other(self, target: str) -> Reply:
        if target == "/robots.txt":
            return plain(200, "User-agent: *\nAllow: /\n")
        return plain(404, "there is no such page\n")

    def _path(self, page: int) -> str:
        return f"/page/{page:0{self._width}}" if page else "/"

    def _all_anchors(self) -> list[bytes]:
        """Every page's link once, all of one length, so that a page is a join and its length a constant."""
        places = [
            (self.url(page) if len(self._bases) > 1 else self._path(page)) for page in range(self.pages)
        ]
        longest = max(map(len, places[-len(self._bases) - 1 :]))
        return [
            f'<li><a href="{place}"{" " * (longest - len(place))}>to {page:0{self._width}}</a></li>\n'.encode()
            for page, place in enumerate(places)
        ]

    def _own_part(self, page: int) -> bytes:
        number = f"{page:0{self._width}}"
        links = b"".join([self._anchors[other] for other in self.links(page)])
        start = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page {number}</title></head>\n'
            f'<body><h1 class="title">Page {number}</h1>\n'
            f'<p>Price: <span class="price">{page * 37 % 100_000 / 100:06.2f}</span></p>\n<ul class="links">\n'
        )
        return start.encode() + links + b"</ul>\n"

    def _squeeze(self, own: int) -> None:
        squeezer = zlib.compressobj(9, zlib.DEFLATED, -15)
        squeezed = squeezer.compress(self._tail) + squeezer.flush(zlib.Z_FINISH)
        # A gzip header, then a stored (uncompressed) deflate block for the page's own part, which is never the last.
        self._packed_start = b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + struct.pack("<BHH", 0, own, own ^ 0xFFFF)
        self._packed_tail = squeezed
        zero = zlib.crc32(self._tail)
        # crc32(tail, start) is linear in the bits of `start`, apart from a constant.
        self._crc_zero = zero
        self._crc = [
            [zlib.crc32(self._tail, byte << shift) ^ zero for byte in range(256)] for shift in (0, 8, 16, 24)
        ]
        length = len(self._packed_start) + own + len(squeezed) + 8
        self._packed_head = head_of(200, length, headers=["Content-Encoding: gzip", "Vary: Accept-Encoding"])

    def _packed(self, page: int) -> tuple[bytes, ...]:
        own = self._own_part(page)
        crc = zlib.crc32(own)
        low, second, third, high = self._crc
        whole = (
            low[crc & 255]
            ^ second[crc >> 8 & 255]
            ^ third[crc >> 16 & 255]
            ^ high[crc >> 24]
            ^ self._crc_zero
        )
        return self._packed_start, own, self._packed_tail, struct.pack("<II", whole, self.size)

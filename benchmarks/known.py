"""Links that are enqueued already: a look into the worker's memory, and for what it forgot one into the store.

    python -m benchmarks.known --urls 10000000 --hosts 100000

A store is filled with distinct URLs; then links are drawn from them and checked as a worker does it: what `Known` does not
know gets a fingerprint and is pushed, 50 pages at once, and is known from then on. Drawn by Zipf's law, as the links of a
real crawl are (every page links to the start page), and evenly, which is the worst there is.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import tempfile
import time
from pathlib import Path

from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.crawling.knowing import HALF, Known
from gossamer.model.host import Wish
from gossamer.model.record import Link
from gossamer.model.task import TaskSpec
from gossamer.model.url import fingerprint, host_key

LINKS = 40
PAGES = 50
"""Pages that are settled in one transaction, as in benchmarks/frontier.py."""
SCATTER = 2_654_435_761
"""A prime: multiplied by it, the ranks of Zipf's law lie scattered over all hosts and over the store's age."""
PRIORITY = -3
TASK = "bench"


class Web:
    """Numbered URLs over hosts. Neighbours are of one host, as a crawl finds them."""

    def __init__(self, urls: int, hosts: int) -> None:
        self.urls = urls
        self.hosts = hosts
        self._random = random.Random(7)

    def url(self, number: int) -> str:
        host = number // 32 % self.hosts
        return f"https://www.site-{host}.example/catalogue/items/{number}/index.html"

    def zipf(self) -> str:
        # Inverse transform of P(rank) ~ 1/rank.
        rank = min(self.urls, int((self.urls + 1) ** self._random.random())) - 1
        return self.url(rank * SCATTER % self.urls)

    def uniform(self) -> str:
        return self.url(self._random.randrange(self.urls))

    def pages(self, how: str) -> list[list[str]]:
        """The links of so many pages as are settled at once. A page's links are distinct: it holds each once."""
        draw = self.zipf if how == "zipf" else self.uniform
        return [list({draw() for _ in range(LINKS)}) for _ in range(PAGES)]


def link(url: str) -> Link:
    return Link(fingerprint("GET", url), url, host_key(url), PRIORITY, 3)


class Checks:
    """Counts links, those that only the store knew, and the time for both; drawing them is not timed."""

    def __init__(self, frontier: SqliteFrontier, web: Web) -> None:
        self.frontier = frontier
        self.web = web
        self.known = Known()
        self.links = self.asked = self.wrong = 0
        self.spent = self.spent_in_store = 0.0

    async def batch(self, how: str) -> None:
        pages = self.web.pages(how)
        before = time.perf_counter()
        missing = [link(url) for page in pages for url in self.known.unknown(page, PRIORITY)]
        if missing:
            asking = time.perf_counter()
            self.wrong += (await self.frontier.push(TASK, missing)).new
            self.spent_in_store += time.perf_counter() - asking
            for one in missing:
                self.known.add(one.url, one.priority)
        self.spent += time.perf_counter() - before
        self.links += sum(map(len, pages))
        self.asked += len(missing)

    async def run(self, how: str, seconds: float) -> dict[str, float]:
        """Measured when the worker's memory is as it is in a long crawl: full, and some of it forgotten."""
        patience = time.perf_counter() + 6 * seconds
        while self.asked < 2 * HALF and time.perf_counter() < patience:
            await self.batch(how)
        self.links = self.asked = 0
        self.spent = self.spent_in_store = 0.0
        while self.spent < seconds:
            await self.batch(how)
        if self.wrong:
            raise RuntimeError(f"{self.wrong} links were new to the store, which holds all of them")
        return {
            "checks_per_second": round(self.links / self.spent),
            "known_to_the_worker": round(1 - self.asked / self.links, 4),
            "share_of_time_in_the_store": round(self.spent_in_store / self.spent, 3),
            "links": self.links,
        }


async def fill(frontier: SqliteFrontier, web: Web) -> None:
    step = LINKS * PAGES
    for start in range(0, web.urls, step):
        numbers = range(start, min(start + step, web.urls))
        await frontier.push(TASK, [link(web.url(number)) for number in numbers])


async def run(args: argparse.Namespace) -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(dir=args.dir, prefix="known-bench-"))
    try:
        async with SqliteFrontier(folder / "frontier.db") as frontier:
            await frontier.open_task(TaskSpec(name=TASK, wish=Wish(per_host=4)))
            web = Web(args.urls, args.hosts)
            await fill(frontier, web)
            draws = {}
            for how in ("zipf", "uniform"):
                draws[how] = await Checks(frontier, web).run(how, args.seconds)
            return {"urls": args.urls, "hosts": args.hosts, **draws}
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--urls", type=int, default=1_000_000, help="distinct URLs in the store")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=5, help="measured time of each draw")
    parser.add_argument("--dir", default=os.environ.get("BENCH_DIR", "."), help="a folder on a real disk")
    print(json.dumps(asyncio.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()

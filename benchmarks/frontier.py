"""The frontier alone: full records with host queues, as a crawl feeds it.

    python -m benchmarks.frontier --urls 10000000 --hosts 100000

A page of a host is settled with 40 links, of which 32 stay on the host and 8 lead to hosts drawn by Zipf's law (the shape of
crawls); `--draw uniform` draws every link's host uniformly, which is the worst case for locality.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import resource
import shutil
import tempfile
import time
from hashlib import blake2b
from pathlib import Path

from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.model.host import HostOrder, RobotsOrder, Wish
from gossamer.model.item import Item
from gossamer.model.record import Kind, Link, Outcome, Verdict
from gossamer.model.task import TaskSpec

LINKS = 40


class Draw:
    """Distinct URLs over hosts, in the order in which pages find them."""

    def __init__(self, hosts: int, how: str, seed: int = 7) -> None:
        self.random = random.Random(seed)
        self.hosts = hosts
        self.how = how
        self.made = [0] * hosts
        self.pool: list[int] = []

    def zipf(self) -> int:
        # Inverse transform of P(rank) ~ 1/rank, good enough for a skew of web hosts.
        return min(self.hosts - 1, int(self.hosts ** self.random.random()) - 1)

    def page(self, home: int) -> list[Link]:
        if self.how == "uniform":
            return [self.link(self.random.randrange(self.hosts)) for _ in range(LINKS)]
        return [self.link(home) for _ in range(32)] + [self.link(self.zipf()) for _ in range(8)]

    def link(self, host: int) -> Link:
        number = self.made[host]
        self.made[host] += 1
        name = f"www.site-{host}.example:443"
        url = f"https://www.site-{host}.example/catalogue/items/{number}/index.html"
        return Link(blake2b(url.encode(), digest_size=16).digest(), url, name, -3, 3)


def written() -> int:
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("write_bytes"):
            return int(line.split()[1])
    return 0


async def fill(frontier: SqliteFrontier, urls: int, draw: Draw, batch: int) -> list[float]:
    rates: list[float] = []
    done = 0
    tenth = urls // 10
    order = list(range(draw.hosts))
    draw.random.shuffle(order)
    turn = 0
    start = time.perf_counter()
    spent = 0.0
    while done < urls:
        links = []
        for _ in range(batch):
            links += draw.page(order[turn % draw.hosts])
            turn += 1
        before = time.perf_counter()
        done += (await frontier.push("bench", links)).new
        spent += time.perf_counter() - before
        if done // tenth > len(rates):
            rates.append(tenth / spent)
            print(
                f"  {done:,} URLs, {rates[-1]:,.0f}/s in the store ({time.perf_counter() - start:.0f} s in all)",
                flush=True,
            )
            spent = 0.0
    return rates


async def leases(frontier: SqliteFrontier, seconds: float, rate: int) -> dict[str, float]:
    """Latency of lease+settle calls at about `rate` settles a second."""
    session = await frontier.open_session("bench")
    times: list[float] = []
    held: list[Outcome] = []
    settled = 0
    end = time.perf_counter() + seconds
    began = time.perf_counter()
    while time.perf_counter() < end:
        before = time.perf_counter()
        answer = await frontier.settle(session, held, {"bench": 64})
        times.append(time.perf_counter() - before)
        settled += len(held)
        held = []
        for grant in answer.grants:
            if grant.kind is Kind.ROBOTS:
                order = HostOrder(robots=RobotsOrder(b"User-agent: *\nAllow: /\n", 86400.0))
                held.append(Outcome(grant.number, Verdict.DONE, host=order, sent_ago=0.01))
            else:
                held.append(Outcome(grant.number, Verdict.DONE, items=[Item(b'{"a":1}')], sent_ago=0.01))
        ahead = settled / rate - (time.perf_counter() - began)
        if ahead > 0:
            await asyncio.sleep(ahead)
    await frontier.close_session(session)
    times.sort()
    return {
        "settles_per_second": settled / (time.perf_counter() - began),
        "p50_ms": times[len(times) // 2] * 1e3,
        "p99_ms": times[int(len(times) * 0.99)] * 1e3,
        "max_ms": times[-1] * 1e3,
    }


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


async def run(args: argparse.Namespace) -> dict[str, object]:
    folder = Path(tempfile.mkdtemp(dir=args.dir, prefix="frontier-bench-"))
    try:
        async with SqliteFrontier(folder / "frontier.db") as frontier:
            await frontier.open_task(TaskSpec(name="bench", wish=Wish(per_host=4)))
            draw = Draw(args.hosts, args.draw)
            start_bytes = written()
            began = time.perf_counter()
            rates = await fill(frontier, args.urls, draw, args.batch)
            seconds = time.perf_counter() - began
            lease = await leases(frontier, 10.0, 2000)
            return {
                "urls": args.urls,
                "hosts": args.hosts,
                "draw": args.draw,
                "batch_pages": args.batch,
                "new_urls_per_second": round(len(rates) / sum(1 / rate for rate in rates)),
                "first_tenth": round(rates[0]),
                "last_tenth": round(rates[-1]),
                "bytes_written_per_url": round((written() - start_bytes) / args.urls),
                "seconds_with_generator": round(seconds, 1),
                "rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "file_mib": size_of(folder) >> 20,
                "lease": {name: round(value, 2) for name, value in lease.items()},
            }
    finally:
        shutil.rmtree(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--draw", choices=["crawl", "uniform"], default="crawl")
    parser.add_argument("--batch", type=int, default=50, help="pages settled in one transaction")
    parser.add_argument("--dir", default=os.environ.get("BENCH_DIR", "."), help="a folder on a real disk")
    print(json.dumps(asyncio.run(run(parser.parse_args())), indent=1))


if __name__ == "__main__":
    main()

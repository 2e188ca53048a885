"""The frontier on Redis alone: memory a URL, and how fast it takes and settles them; `python -m benchmarks.redis_store`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from pathlib import Path

from benchmarks.measuring import cpu_seconds
from gossamer.backends.redis.frontier import RedisFrontier
from gossamer.model.host import Wish
from gossamer.model.record import Link, Outcome, Verdict
from gossamer.model.task import TaskSpec
from gossamer.model.url import fingerprint, host_key
from gossamer.testing.servers import RedisServer

LENGTH = 60
CHUNK, BATCH = 1_000, 500


def link(number: int, hosts: int) -> Link:
    start = f"https://host{number % hosts:06d}.example/path/"
    url = start + f"{number:0{LENGTH - len(start)}d}"
    return Link(fingerprint("GET", url), url, host_key(url))


def used(server: RedisServer) -> int:
    said = server.ask("INFO", "memory").decode(errors="replace")
    return int(said.partition("used_memory:")[2].split()[0])


async def run(args: argparse.Namespace) -> dict[str, object]:
    with tempfile.TemporaryDirectory(dir=args.dir, prefix="redis-bench-") as folder:
        server = RedisServer(Path(folder)).start()
        try:
            async with RedisFrontier(server.url) as store:
                return await measured(store, server, args)
        finally:
            server.kill()


async def measured(store: RedisFrontier, server: RedisServer, args: argparse.Namespace) -> dict[str, object]:
    await store.open_task(TaskSpec(name="bench", wish=Wish(per_host=1_000_000, robots=False)))
    empty, began, worked = used(server), time.perf_counter(), cpu_seconds(server.process.pid)
    for start in range(0, args.urls, CHUNK):
        await store.push("bench", [link(number, args.hosts) for number in range(start, start + CHUNK)])
    pushed, push_cpu = time.perf_counter() - began, cpu_seconds(server.process.pid) - worked
    pending = (used(server) - empty) / args.urls
    session = await store.open_session("bench")
    began, worked, done = time.perf_counter(), cpu_seconds(server.process.pid), 0
    outcomes: list[Outcome] = []
    while done < args.urls:
        leases = await store.settle(session, outcomes, {"bench": BATCH})
        outcomes = [
            Outcome(grant.number, Verdict.DONE, task="bench", sent_ago=0.0) for grant in leases.grants
        ]
        done += len(outcomes)
    await store.settle(session, outcomes, {})
    settled, settle_cpu = time.perf_counter() - began, cpu_seconds(server.process.pid) - worked
    return {
        "urls": args.urls,
        "hosts": args.hosts,
        "url_bytes": LENGTH,
        "bytes_pending": round(pending, 1),
        "bytes_terminal": round((used(server) - empty) / args.urls, 1),
        "new_urls_per_second": round(args.urls / pushed),
        "settles_per_second": round(args.urls / settled),
        "redis_us_per_new_url": round(push_cpu / args.urls * 1e6, 1),
        "redis_us_per_settle_and_lease": round(settle_cpu / args.urls * 1e6, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--urls", type=int, default=1_000_000)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--dir", default=os.environ.get("BENCH_DIR", "."), help="a folder on a real disk")
    print(json.dumps(asyncio.run(run(parser.parse_args()))))


if __name__ == "__main__":
    main()

"""What must hold at the end, read from the origin's log, the output and the store's rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from gossamer.model.record import State
from gossamer.testing.servers import RedisServer
from gossamer.testing.web import KnownWeb, Limits, OriginLog, judge

PREFIX = b"gossamer:{default.0}:"
BUCKET = 32  # records in one hash
LOSING = frozenset({"kill_worker", "kill_child", "freeze_worker", "partition_worker"})
REWINDING = frozenset({"lose_tail", "fail_over"})


@dataclass
class Verdict:
    """How a run went; it counts for nothing where its faults hit nothing."""

    seed: int
    kind: str
    pages: int = 0
    seconds: float = 0.0
    faults: int = 0
    refetched: int = 0
    stale: int = 0
    hits: int = 0
    lost_leases: int = 0
    lost_ends: int = 0
    complaints: list[str] = field(default_factory=list)
    void: str = ""

    @property
    def is_good(self) -> bool:
        return not self.complaints

    def line(self) -> str:
        end = "good" if self.is_good else f"{len(self.complaints)} COMPLAINTS"
        return (
            f"{self.kind:18} seed {self.seed:<5} {end:14} {self.pages} pages, {self.seconds:5.1f} s, {self.faults} faults, "
            f"{self.refetched} fetched again, {self.stale} late settles{', void: ' + self.void if self.void else ''}"
        )


def judged(
    verdict: Verdict,
    web: KnownWeb,
    log: OriginLog,
    output: Path,
    store: RedisServer,
    *,
    per_host: int,
    again: int,
) -> None:
    """Write into the verdict all that is not as it must be. `again`: requests that the faults may have cost."""
    rows = Rows(store)
    limits = Limits()
    verdict.complaints += [
        *wrong_records(web, rows, limits),
        *wrong_items(web, output, limits),
        *wrong_sums(rows),
    ]
    robots = {host: web.robots(host) for host in web.hosts}
    rude = judge(log, per_host, web.delays(), robots, foreign=[web.foreign])
    verdict.complaints += [f"rude: {one.kind} {one.host} {one.detail}" for one in rude]
    hits, ideal = log.hits_by_url(), web.requests(limits)
    verdict.refetched = sum(max(hits[url] - most, 0) for url, most in ideal.items())
    verdict.hits = sum(hits.values())
    verdict.lost_leases, verdict.lost_ends = rows.suspects, rows.incarnation
    if verdict.kind in LOSING and not rows.suspects:
        verdict.void = "no lease was lost"
    elif verdict.kind in REWINDING and not rows.incarnation:
        verdict.void = "the store lost nothing that anybody knew of"
    elif verdict.kind == "restart_store" and not rows.began_anew:
        verdict.void = "nobody met the store's second life"
    verdict.stale = rows.counters.get("stale", 0)
    if verdict.refetched > again:
        verdict.complaints.append(f"refetched: {verdict.refetched} requests, {again} can be explained")


class Rows:
    """The store's own rows of the one task, read without the product."""

    def __init__(self, store: RedisServer) -> None:
        import redis

        with redis.Redis(port=store.port) as client:
            found = client.hget(PREFIX + b"t", "1")
            self.task: dict[str, Any] = msgspec.msgpack.decode(found, type=dict) if found else {}
            self.counters = {name.decode(): int(n) for name, n in client.hgetall(PREFIX + b"c1").items()}
            self.leases = client.hlen(PREFIX + b"v")
            self.delayed = client.zcard(PREFIX + b"d")
            self.queued = sum(client.zcard(key) for key in client.scan_iter(PREFIX + b"q1:*", count=1000))
            rows = client.hgetall(PREFIX + b"h").items()
            self.hosts = {int(number): msgspec.msgpack.decode(row, type=dict) for number, row in rows}
            meta = {name.decode(): value.decode() for name, value in client.hgetall(PREFIX + b"m").items()}
            self.incarnation = int(
                meta.get("incarnation", 0)
            )  # how often the store was found to have lost its end
            self.began_anew = int(float(meta.get("floor", 0))) > 0
            self.suspects = 0  # records that were in the hands of somebody who was given up
            self.records = list(self._records(client))

    def _records(self, client: Any) -> Iterator[tuple[str, State, str]]:
        for key in client.scan_iter(PREFIX + b"r1:*", count=1000):
            parts = {int(place): text for place, text in client.hgetall(key).items()}
            for place in range(BUCKET):
                if place in parts:
                    text = b"".join(parts.get(place + n * BUCKET, b"") for n in range(1, 4))
                    row, (url, *_) = msgspec.msgpack.decode(parts[place]), msgspec.msgpack.decode(text)
                    self.suspects += row[8] is True
                    if url.startswith("\1"):
                        url = f"{self.hosts[row[0]]['scheme']}://{self.hosts[row[0]]['name']}{url[1:]}"
                    yield url, State(row[1]), (row[10] if len(row) > 10 else "") or ""


def wrong_records(web: KnownWeb, rows: Rows, limits: Limits) -> Iterator[str]:
    expected = {
        url: (outcome.state, "" if outcome.code == "ok" else outcome.code)
        for url, outcome in web.expected(limits).items()
    }
    found = {url: (state, code) for url, state, code in rows.records}
    yield from (f"lost: {url}" for url in expected.keys() - found.keys())
    yield from (f"unexpected: {url}" for url in found.keys() - expected.keys())
    yield from (f"twice: {url}" for url, n in Counter(url for url, *_ in rows.records).items() if n > 1)
    for url in expected.keys() & found.keys():
        if expected[url] != found[url]:
            kind = "poison" if found[url][1] == "poison" else "outcome"
            yield f"{kind}: {url} {found[url]}, not {expected[url]}"


def wrong_items(web: KnownWeb, output: Path, limits: Limits) -> Iterator[str]:
    expected = web.items(limits)
    lines = output.read_text(encoding="utf-8").splitlines() if output.exists() else []
    found = [json.loads(line) for line in lines]
    times = Counter(item["url"] for item in found)
    yield from (f"item lost: {url}" for url in expected.keys() - times.keys())
    yield from (f"item unexpected: {url}" for url in times.keys() - expected.keys())
    yield from (f"item twice: {url}" for url, n in times.items() if n > 1)
    yield from (
        f"item wrong: {item}" for item in found if item["url"] in expected and item != expected[item["url"]]
    )


def wrong_sums(rows: Rows) -> Iterator[str]:
    """The task's sums against its rows, and what must be empty when all is done."""
    task, states = rows.task, Counter(state for _, state, _ in rows.records)
    sums = {
        "state": (task.get("state"), "COMPLETED"),
        "discovered": (task.get("discovered"), len(rows.records)),
        "terminal": (task.get("terminal"), sum(n for state, n in states.items() if state >= State.DONE)),
        "leased": (task.get("leased"), 0),
        "leased pages": (task.get("leased_pages"), 0),
        "pages": (
            task.get("pages"),
            sum(state is State.DONE and code != "redirected" for _, state, code in rows.records),
        ),
        "done": (rows.counters.get("done", 0), states[State.DONE]),
        "failed": (rows.counters.get("failed", 0), states[State.FAILED]),
        "skipped": (rows.counters.get("skipped", 0), states[State.SKIPPED]),
        "leases left": (rows.leases, 0),
        "records queued": (rows.queued + rows.delayed, 0),
        "slots taken": (sum(host["open"] for host in rows.hosts.values()), 0),
    }
    yield from (
        f"counters: {name} is {found}, not {right}" for name, (found, right) in sums.items() if found != right
    )

"""One run: a cluster, a web, faults at seeded moments, healing, the verdict."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from random import Random

from gossamer.testing.nemesis.cluster import CONCURRENCY, Cluster
from gossamer.testing.nemesis.faults import KINDS, QUIET, WITH_SENTINELS
from gossamer.testing.nemesis.verdict import Verdict, judged
from gossamer.testing.web import KnownWeb, Mix, serve_child

PER_HOST = 2
DRAINED_WITHIN = 120.0
AHEAD = 3  # a worker holds so many times its open exchanges, and all of them may be lost with it


@dataclass(frozen=True)
class Plan:
    """What is repeated when the seed is."""

    seed: int
    kind: str
    pages: int = 500
    hosts: int = 4
    workers: int = 3
    faults: int = 3
    latency: float = 0.4

    @property
    def web(self) -> KnownWeb:
        return KnownWeb(
            self.seed, pages=self.pages, hosts=self.hosts, mix=Mix(latency=self.latency, crawl_delay=0.02)
        )


def run(plan: Plan, folder: Path, environment: dict[str, str] | None = None) -> Verdict:
    """Play it. `environment` is that of the product's processes: a mutant is planted by it."""
    web, dice = plan.web, Random(f"{plan.kind} {plan.seed}")
    verdict = Verdict(plan.seed, plan.kind, pages=plan.pages)
    sentinels = plan.kind in WITH_SENTINELS
    with (
        serve_child(web) as origin,
        Cluster(folder, plan.workers, environment, sentinels=sentinels) as cluster,
    ):
        allow = [word for host in web.hosts for word in ("--allow", host)]
        quick = ["delay=0", "retries=2", "retry_delay=0.05", f"per_host={PER_HOST}"]
        cluster.submit("crawl", *web.seeds, *allow, *(word for setting in quick for word in ("-s", setting)))
        began = time.monotonic()
        while not origin.log().visits and time.monotonic() - began < 20:
            time.sleep(0.05)
        began = time.monotonic()
        for _ in range(plan.faults):
            time.sleep(dice.uniform(0.2, 1.0))
            if cluster.is_over:
                break
            KINDS[plan.kind](cluster, dice)
            verdict.faults += 1
        code, _, err = cluster.wait(DRAINED_WITHIN)
        verdict.seconds = time.monotonic() - began
        if code != 3:  # completed, and some pages of such a web fail
            verdict.complaints.append(f"end: exit {code}; it said {err[-300:]!r}")
        again = 0 if plan.kind in QUIET else verdict.faults * plan.workers * CONCURRENCY * AHEAD
        if verdict.faults < plan.faults:
            verdict.void = f"the crawl was over after {verdict.faults} of {plan.faults} faults"
        judged(verdict, web, origin.log(), cluster.output, cluster.server, per_host=PER_HOST, again=again)
        if verdict.complaints:
            verdict.complaints += [
                f"worker {n} said: {worker.said[-600:]}" for n, worker in enumerate(cluster.workers)
            ]
    return verdict

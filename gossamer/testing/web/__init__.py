"""A made-up web on loopback: sites to crawl, an origin that keeps its own log, and the truth to compare with.

    async with serve(Shop()) as origin: ...               on the caller's loop: origin.url, .seeds, .hosts, .log
    with start_child("bench", pages=20_000) as child: ... in a process of its own: child.url, .seeds, .hosts, .log()
    with serve_child(KnownWeb(seed=7)) as child: ...      the same for a web whose oracle is asked here
    python -m gossamer.testing.web shop                   from a shell; one JSON line says when it is ready

Sites
    Shop(seed, products)                 a small shop for people to look at
    Bench(pages, size, hosts, seed)      as many equal pages as you like, as fast as they can be served
    KnownWeb(seed, pages, hosts, mix)    many hosts and everything that goes wrong, with its oracle:
        .seeds .hosts .foreign           where to start, what is in scope, what is not
        .expected(limits)                {url: Outcome(state, code)}
        .items(limits)                   {url: the item of the default crawl}
        .requests(limits)                {url: requests sent by a crawl without faults}
        .robots(host) .delays(least)     for the judge
    Mix(flaky=0.05, …), Limits(depth=…)  what the known web holds; which bounds the crawl has

Judging
    OriginLog, Visit                  what reached the origin, on its own clock: log.hits(url), log.hits_by_url()
    judge(log, per_host_limit, min_delay, robots) → [Violation], most_open(log, host)

TLS: server_tls(), client_tls(), write_certificate(directory).
"""

from __future__ import annotations

from gossamer.testing.web.bench import Bench
from gossamer.testing.web.certificate import client_tls, server_tls, write_certificate
from gossamer.testing.web.child import Child, serve_child, start_child
from gossamer.testing.web.judge import Violation, judge, most_open
from gossamer.testing.web.known import KnownWeb
from gossamer.testing.web.log import OriginLog, Visit
from gossamer.testing.web.mix import Mix
from gossamer.testing.web.node import Kind
from gossamer.testing.web.oracle import Limits, Outcome
from gossamer.testing.web.origin import Origin, serve
from gossamer.testing.web.shop import Shop

__all__ = [
    "Bench",
    "Child",
    "Kind",
    "KnownWeb",
    "Limits",
    "Mix",
    "Origin",
    "OriginLog",
    "Outcome",
    "Shop",
    "Violation",
    "Visit",
    "client_tls",
    "judge",
    "most_open",
    "serve",
    "serve_child",
    "server_tls",
    "start_child",
    "write_certificate",
]

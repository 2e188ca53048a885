"""Serves a made-up web from the command line: python -m gossamer.testing.web shop | bench | known | hostile.

When it listens it prints one line of JSON (url, seeds, hosts, port, control, ...) and serves until SIGTERM or SIGINT,
or until its standard input, if that is a pipe, is closed: so it dies with the program that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import signal
import stat
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from gossamer.testing.web.bench import Bench
from gossamer.testing.web.certificate import server_tls, write_certificate
from gossamer.testing.web.control import ROOT, Control
from gossamer.testing.web.known import KnownWeb
from gossamer.testing.web.log import OriginLog
from gossamer.testing.web.mix import Mix
from gossamer.testing.web.origin import serve
from gossamer.testing.web.shop import Shop
from gossamer.testing.web.site import Site


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m gossamer.testing.web", description=(__doc__ or "").split("\n")[0]
    )
    kinds = parser.add_subparsers(dest="kind", required=True)
    shop = kinds.add_parser("shop", help="a small shop for people to look at")
    shop.add_argument("--products", type=int, default=300)
    bench = kinds.add_parser("bench", help="many equal pages, as fast as they can be served")
    bench.add_argument("--pages", type=int, default=5000)
    bench.add_argument("--size", type=int, default=12_800, help="bytes of a page's body")
    bench.add_argument("--hosts", type=int, default=1, help="how many loopback addresses")
    bench.add_argument("--gzip", action="store_true", help="compress for clients that accept it")
    bench.add_argument("--tls", action="store_true")
    bench.add_argument("--dir", type=Path, help="with --tls: where ca.pem is written")
    for name, text in (
        ("known", "many hosts with everything that goes wrong"),
        ("hostile", "the same, only worse"),
    ):
        known = kinds.add_parser(name, help=text)
        known.add_argument("--pages", type=int, default=500)
        known.add_argument("--hosts", type=int, default=3)
        known.add_argument("--mix", default="", help="changed shares, such as flaky=0.2,hanging=0")
    for kind in kinds.choices.values():
        kind.add_argument("--seed", type=int, default=1)
        kind.add_argument("--port", type=int, default=0, help="0: any free port")
        kind.add_argument("--log", type=Path, help="write the origin's log to this file as JSON lines")
    return parser


def site_of(options: argparse.Namespace) -> Site:
    if options.kind == "shop":
        return Shop(options.seed, options.products)
    if options.kind != "bench":
        mix = Mix.parse(options.mix, Mix.hostile() if options.kind == "hostile" else Mix())
        return KnownWeb(options.seed, options.pages, options.hosts, mix)
    return Bench(options.pages, options.size, options.hosts, options.seed, gzip=options.gzip)


async def run(options: argparse.Namespace) -> None:
    site = site_of(options)
    tls, ready = None, {}
    if getattr(options, "tls", False):
        if options.dir is None:
            raise SystemExit(
                "--tls needs --dir DIRECTORY: the certificate to trust is written there as ca.pem"
            )
        ready["ca"] = str(write_certificate(options.dir))
        tls = server_tls()
    log = OriginLog(options.log) if options.log else None
    async with serve(site, port=options.port, log=log, tls=tls) as origin, serve(Control(origin)) as control:
        described: dict[str, Any] = {
            "kind": options.kind,
            "url": origin.url,
            "seeds": origin.seeds,
            "hosts": origin.hosts,
            "port": origin.port,
            "control": control.url.rstrip("/") + ROOT,
            **ready,
        }
        if isinstance(site, KnownWeb):
            described["foreign"] = site.foreign
        ended = _end_of_life()
        print(json.dumps(described), flush=True)
        await ended.wait()


def _end_of_life() -> asyncio.Event:
    """Set by a signal, or when whoever holds the other end of our standard input is gone."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    mode = os.fstat(0).st_mode
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):

        def readable() -> None:
            if not os.read(0, 4096):
                loop.remove_reader(0)
                ended.set()

        loop.add_reader(0, readable)
    return ended


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _start(work: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:  # slower, otherwise the same
        asyncio.run(work)
    else:
        uvloop.run(work)


def main() -> None:
    options = arguments().parse_args()
    _raise_file_limit()
    try:
        _start(run(options))
    except ValueError as error:  # a site that cannot be built as asked says why
        sys.exit(str(error))


if __name__ == "__main__":
    main()

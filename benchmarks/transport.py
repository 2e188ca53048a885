"""What one exchange costs: requests per second and CPU microseconds of the client, against a child on loopback.

    python benchmarks/transport.py                     the transport, 12.8 KB pages, 64 at once
    python benchmarks/transport.py --driver pycurl     pycurl's own AsyncCurlMulti, to compare
    python benchmarks/transport.py --fresh             a new connection for every request

The least of several rounds is the figure to compare: a shared machine only ever adds to it.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from typing import cast

import uvloop

Fetch = Callable[[str], Awaitable[int]]

FIELDS = (
    b"Server: bench\r\nDate: Wed, 01 Jan 2025 00:00:00 GMT\r\nContent-Type: text/html; charset=utf-8\r\n"
    b"Last-Modified: Wed, 01 Jan 2025 00:00:00 GMT\r\nCache-Control: max-age=60\r\nVary: Accept-Encoding\r\n"
)


class Page(asyncio.Protocol):
    """Answers every request head with the same page; knows nothing else of HTTP."""

    def __init__(self, answer: bytes, *, close: bool) -> None:
        self._answer = answer
        self._close = close

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._transport.write(self._answer * data.count(b"\r\n\r\n"))
        if self._close:
            self._transport.close()


async def serve(size: int, *, close: bool) -> None:
    connection = b"Connection: close\r\n" if close else b""
    answer = b"HTTP/1.1 200 OK\r\n%s%sContent-Length: %d\r\n\r\n" % (FIELDS, connection, size) + b"x" * size
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Page(answer, close=close), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)  # until the parent goes


async def run(fetch: Fetch, base: str, requests: int, at_once: int) -> tuple[float, float]:
    """One round: seconds and CPU seconds."""
    numbers = iter(range(requests))

    async def work() -> None:
        for number in numbers:
            await fetch(f"{base}/page/{number}")

    began, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(work() for _ in range(at_once)))
    return time.perf_counter() - began, time.process_time() - used


async def with_transport(options: argparse.Namespace, base: str) -> None:
    from gossamer.backends.curl import CurlTransport
    from gossamer.ports.transport import Exchange

    headers = (("User-Agent", "bench"), ("Accept", "text/html"))
    async with CurlTransport() as transport:

        async def fetch(url: str) -> int:
            answer = await transport.send(Exchange(url, headers=headers, allow_private=True))
            assert answer.status == 200
            assert len(answer.body) == options.size
            return len(answer.body)

        await rounds(options, fetch, base)


async def with_pycurl(options: argparse.Namespace, base: str) -> None:
    import pycurl

    idle: list[tuple[pycurl.Curl, list[bytes], list[bytes]]] = []
    async with pycurl.AsyncCurlMulti() as multi:

        async def fetch(url: str) -> int:
            if idle:
                curl, head, body = idle.pop()
            else:
                curl, head, body = pycurl.Curl(), [], []
                curl.setopt(pycurl.WRITEFUNCTION, body.append)
                curl.setopt(pycurl.HEADERFUNCTION, head.append)
                curl.setopt(pycurl.NOSIGNAL, 1)
            curl.setopt(pycurl.URL, url)
            await multi.perform(curl)
            size = sum(map(len, body))
            assert size == options.size
            head.clear()
            body.clear()
            idle.append((curl, head, body))
            return size

        await rounds(options, fetch, base)


async def rounds(options: argparse.Namespace, fetch: Fetch, base: str) -> None:
    await run(fetch, base, options.requests // 10, options.at_once)
    results = [await run(fetch, base, options.requests, options.at_once) for _ in range(options.rounds)]
    seconds, cpu = min(took for took, _ in results), min(used for _, used in results)
    each = cpu / options.requests * 1e6
    print(f"{options.driver}: {options.requests / seconds:,.0f} requests/s, {each:.1f} µs CPU per request")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--driver", choices=("gossamer", "pycurl"), default="gossamer")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--at-once", type=int, default=64)
    parser.add_argument("--size", type=int, default=12_800)
    parser.add_argument("--fresh", action="store_true", help="the server closes after each answer")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        uvloop.run(serve(options.size, close=options.fresh))
        return
    command = [
        sys.executable,
        __file__,
        "--serve",
        f"--size={options.size}",
        *(["--fresh"] if options.fresh else []),
    ]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        base = f"http://127.0.0.1:{int(child.stdout.readline())}"
        try:
            uvloop.run({"gossamer": with_transport, "pycurl": with_pycurl}[options.driver](options, base))
        finally:
            child.terminate()


if __name__ == "__main__":
    main()

"""The origin: HTTP as clients really use it, clients that die, and a log that tells all of it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
from simple_crawler import fetch, read_answer

from gossamer.testing.web import (
    Kind,
    KnownWeb,
    Mix,
    Origin,
    OriginLog,
    Shop,
    judge,
    most_open,
    serve,
    start_child,
)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(origin: Origin, host: int = 0) -> Streams:
    address, _, port = origin.hosts[host].partition(":")
    return await asyncio.open_connection(address, int(port))


def ask(path: str, *lines: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: somewhere", *lines, "", ""]).encode()


async def settled(log: OriginLog) -> None:
    """Waits until the origin has noticed that every connection is closed."""
    async with asyncio.timeout(5):
        while any(line.closed is None for line in log.connections):  # noqa: ASYNC110 - a log wakes nobody
            await asyncio.sleep(0.005)


async def test_pipelined_requests_are_answered_in_order_over_one_connection() -> None:
    """Requests that arrive together, cut anywhere, are answered one after the other, slow ones included."""
    shop = Shop()
    slow = next(iter(shop.slow))
    shop.slow[slow] = 0.05
    paths = ["/about", slow, "/terms", "/nothing", "/"]
    async with serve(shop) as origin:
        reader, writer = await connect(origin)
        sent = b"".join(map(ask, paths))
        for piece in (sent[:7], sent[7:90], sent[90:]):
            writer.write(piece)
            await asyncio.sleep(0)
        answers = [await read_answer(reader) for _ in paths]
        writer.close()
        await settled(origin.log)
        assert [answer.status for answer in answers] == [200, 200, 200, 404, 200]
        assert b"About" in answers[0].body
        assert [visit.path for visit in origin.log.visits] == paths
        assert {visit.connection for visit in origin.log.visits} == {1}
        assert len(origin.log.connections) == 1


async def test_head_sends_no_body_and_connection_close_is_obeyed() -> None:
    """HEAD has the head of GET, and a client that asks for the end of the connection gets it."""
    async with serve(Shop()) as origin:
        reader, writer = await connect(origin)
        writer.write(ask("/about", method="HEAD"))
        head = await read_answer(reader, has_body=False)
        writer.write(ask("/about", "Connection: close"))
        whole = await read_answer(reader)
        assert head.headers["content-length"] == str(len(whole.body))
        assert await reader.read() == b""
        writer.close()


async def test_a_request_body_is_skipped() -> None:
    """A POST is answered after its body, which is not taken for the next request."""
    async with serve(Shop()) as origin:
        reader, writer = await connect(origin)
        writer.write(
            ask("/about", "Content-Length: 30", method="POST") + b"GET /cart HTTP/1.1\r\n\r\nxxxxxxxx"
        )
        writer.write(ask("/terms"))
        assert b"About" in (await read_answer(reader)).body
        assert b"Terms" in (await read_answer(reader)).body
        writer.close()
        assert [visit.path for visit in origin.log.visits] == ["/about", "/terms"]


@pytest.mark.parametrize(
    ("sent", "status"), [(b"what is this\r\nx: y\r\n\r\n", 400), (b"GET /" + b"a" * 70_000, 431)]
)
async def test_nonsense_is_refused_and_the_connection_closed(sent: bytes, status: int) -> None:
    """What is no request line, or a head without end, gets an error and costs nothing more."""
    async with serve(Shop()) as origin:
        reader, writer = await connect(origin)
        writer.write(sent)
        assert (await read_answer(reader)).status == status
        assert await reader.read() == b""
        writer.close()


async def test_a_client_that_does_not_read_is_waited_for() -> None:
    """A long answer is over when the client has read it, and only then is the next request looked at."""
    web = KnownWeb(1, 40, 1, Mix.plain(large=0.03, large_bytes=8_000_000))
    async with serve(web) as origin:
        large = next(url for url, kind in web.kinds().items() if kind is Kind.LARGE)
        reader, writer = await connect(origin)
        writer.write(ask(large.removeprefix(origin.url.rstrip("/"))) + ask("/robots.txt"))
        await reader.readuntil(b"\r\n\r\n")
        assert [visit.end for visit in origin.log.visits] == [None]
        assert len(await reader.readexactly(8_000_000)) == 8_000_000
        assert (await read_answer(reader)).status == 200
        assert all(visit.end for visit in origin.log.visits)
        writer.close()


async def test_hundreds_of_dying_clients_leave_nothing_behind() -> None:
    """Clients that reset, hang up or fall silent in the middle of anything do not hurt the origin or each other."""
    web = KnownWeb(
        4, 60, 2, Mix.plain(hanging=0.03, slow=0.03, slow_seconds=30, large=0.03, large_bytes=3_000_000)
    )
    async with serve(web) as origin:
        odd = [url for url, kind in web.kinds().items() if kind is not Kind.PAGE]
        for turn in range(300):
            host, _, path = odd[turn % len(odd)].removeprefix("http://").partition("/")
            _, writer = await connect(origin, web.hosts.index(host))
            writer.write(ask(f"/{path}")[: 10 if turn % 5 == 0 else None])
            if turn % 3:
                await asyncio.sleep(0)
            if turn % 2:
                carrier = writer.get_extra_info("socket")
                carrier.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
        await settled(origin.log)
        assert all(visit.end is not None for visit in origin.log.visits)
        assert any(visit.aborted and visit.status == 0 for visit in origin.log.visits)
        assert (await fetch(origin.url)).status == 200
        assert not origin._connections or len(origin._connections) == 1


async def test_the_log_shows_how_many_requests_were_open_at_once() -> None:
    """Five clients that ask together are seen as five open requests, and a limit of four as broken once."""
    shop = Shop()
    slow = next(iter(shop.slow))
    shop.slow[slow] = 0.1
    async with serve(shop) as origin:
        await asyncio.gather(*(fetch(origin.url + slow[1:]) for _ in range(5)))
        await fetch(origin.url)
        assert most_open(origin.log, origin.hosts[0]) == 5
        assert [violation.kind for violation in judge(origin.log, 4)] == ["overlap"]
        assert judge(origin.log, 5) == []
        assert len(judge(origin.log, 5, 0.05)) >= 4


async def test_attempts_are_counted_and_can_be_forgotten() -> None:
    """A flaky page fails as often as it should, then answers, and fails again after a reset."""
    shop = Shop()
    path, statuses = next((path, list(fails)) for path, fails in shop.fails.items() if len(fails) == 2)
    async with serve(shop) as origin:
        url = f"http://{origin.hosts[0]}{path}"
        for _ in range(2):
            assert [(await fetch(url)).status for _ in range(3)] == [*statuses, 200]
            origin.reset()
        assert [visit.attempt for visit in origin.log.visits] == [1, 2, 3, 1, 2, 3]


async def test_the_log_file_holds_what_happened(tmp_path: Path) -> None:
    """A log file has every visit and connection once, the unfinished ones too, when the origin has stopped."""
    file = tmp_path / "origin.log"
    web = KnownWeb(1, 40, 1, Mix.plain(hanging=0.03))
    async with serve(web, log=OriginLog(file)) as origin:
        await fetch(origin.url)
        hanging = next(url for url, kind in web.kinds().items() if kind is Kind.HANGING)
        _, writer = await connect(origin)
        writer.write(ask(hanging.removeprefix(origin.url.rstrip("/"))))
        while origin.log.hits(hanging) == 0:  # noqa: ASYNC110 - a log wakes nobody
            await asyncio.sleep(0.001)
    writer.close()
    log = OriginLog.read(file)
    assert [(visit.url, visit.status) for visit in log.visits] == [
        (origin.url, 200),
        (hanging, 0),
    ]
    assert len(log.connections) == 2


def test_a_child_ends_by_signal_and_writes_its_log(tmp_path: Path) -> None:
    """SIGTERM ends the server in order: its log is complete and its exit code is 0."""
    file = tmp_path / "origin.log"
    with start_child("shop", log=file) as child:
        assert child.log().visits == []
        with socket.create_connection(("127.0.0.1", child.port)) as client:
            client.sendall(ask("/about"))
            assert client.recv(100).startswith(b"HTTP/1.1 200")
            os.kill(child.pid, signal.SIGTERM)
            while client.recv(65536):
                pass
    assert [visit.path for visit in OriginLog.read(file).visits] == ["/about"]


def test_a_child_dies_with_its_parent() -> None:
    """When the other end of its standard input closes, the server ends by itself."""
    command = [sys.executable, "-m", "gossamer.testing.web", "shop"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdin
        ready = json.loads(process.stdout.readline())
        assert {"url", "hosts", "port", "seeds", "control"} <= ready.keys()
        process.stdin.close()
        assert process.wait(10) == 0


def test_a_child_that_cannot_start_says_why(capfd: pytest.CaptureFixture[str]) -> None:
    """Impossible options end the child at once, with a sentence and without a traceback."""
    before = time.monotonic()
    with pytest.raises(RuntimeError, match="did not start"), start_child("bench", pages=3):
        pass
    assert time.monotonic() - before < 10
    complaint = capfd.readouterr().err
    assert "41 or more" in complaint
    assert "Traceback" not in complaint

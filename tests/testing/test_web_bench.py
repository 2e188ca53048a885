"""The bench site: exact sizes, exact links, the same bytes compressed or not, and how fast it is."""

from __future__ import annotations

import asyncio
import gzip
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from simple_crawler import Reader, fetch, read_answer

from gossamer.testing.web import Bench, serve, start_child


@pytest.mark.parametrize(("pages", "size", "hosts"), [(41, 12_800, 1), (300, 5_000, 3), (1001, 240_000, 12)])
async def test_every_page_has_its_size_and_forty_other_pages(pages: int, size: int, hosts: int) -> None:
    """Bodies are exactly as long as asked for, and their links are those 40 that the site names."""
    bench = Bench(pages, size, hosts, seed=5)
    async with serve(bench) as origin:
        for number in {0, 1, 9, pages // 2, pages - 1}:
            url = bench.url(number)
            answer = await fetch(url)
            assert (answer.status, len(answer.body)) == (200, size)
            page = Reader(answer.body.decode())
            base = f"http://{urlsplit(url).netloc}"
            found = [href if href.startswith("http") else base + href for href in page.hrefs]
            assert found == [bench.url(other) for other in bench.links(number)]
            assert len(set(found) - {url}) == 40
            assert page.texts["h1"] == page.texts["title"]
            assert float(page.texts["span"]) >= 0
        assert (await fetch(f"{origin.url}page/{'9' * len(str(pages - 1))}9")).status == 404
        assert b"Allow: /" in (await fetch(f"{origin.url}robots.txt")).body


@pytest.mark.parametrize("pages", [41, 1000, 20_000])
def test_every_page_can_be_reached_in_a_few_steps(pages: int) -> None:
    """From the first page the links lead everywhere, and not by a long way."""
    bench, reached, fresh, depth = Bench(pages), {0}, {0}, 0
    while fresh:
        fresh = {other for page in fresh for other in bench.links(page)} - reached
        reached |= fresh
        depth += 1
    assert len(reached) == pages
    assert depth <= 7


async def test_a_page_of_another_host_is_not_served() -> None:
    """A page has one URL: the same path on the neighbour is a 404, and so is another spelling of its number."""
    bench = Bench(100, hosts=2)
    async with serve(bench) as origin:
        assert (await fetch(bench.url(3))).status == 200
        assert (await fetch(f"http://{origin.hosts[0]}/page/03")).status == 404
        assert (await fetch(f"http://{origin.hosts[1]}/page/3")).status == 404


@pytest.mark.parametrize("size", [5_000, 12_800, 240_000])
async def test_compressed_pages_unpack_to_the_same_bytes(size: int) -> None:
    """gzip is valid, smaller, and given to those only who accept it."""
    bench = Bench(500, size, gzip=True)
    async with serve(bench):
        for number in (0, 1, 77, 499):
            plain = await fetch(bench.url(number))
            packed = await fetch(bench.url(number), headers="Accept-Encoding: gzip\r\n")
            assert "content-encoding" not in plain.headers
            assert packed.headers["content-encoding"] == "gzip"
            assert gzip.decompress(packed.body) == plain.body
            assert len(packed.body) < len(plain.body)


def test_tls_is_verified_by_the_authority_that_is_written(tmp_path: Path) -> None:
    """A client that trusts ca.pem reads pages over TLS; one that does not refuses the certificate."""

    async def read(url: str, trusted: ssl.SSLContext) -> int:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=trusted)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        answer = await read_answer(reader)
        writer.close()
        return len(answer.body)

    with start_child("bench", pages=100, tls=True, dir=tmp_path / "tls") as child:
        assert child.url.startswith("https://")
        assert asyncio.run(read(child.url, ssl.create_default_context(cafile=child.ca))) == 12_800
        with pytest.raises(ssl.SSLCertVerificationError):
            asyncio.run(read(child.url, ssl.create_default_context()))


async def test_the_speed_is_reported(record_property: Callable[[str, object], None]) -> None:
    """Requests per second over a few keep-alive connections: a report, since machines differ."""
    with start_child("bench") as child:
        batch = b"GET /page/0001 HTTP/1.1\r\nHost: x\r\n\r\n" * 20
        done = 0

        async def client() -> None:
            nonlocal done
            reader, writer = await asyncio.open_connection("127.0.0.1", child.port)
            head = 0
            while time.monotonic() < end:
                writer.write(batch)
                if not head:
                    first = await reader.readuntil(b"\r\n\r\n")
                    head = len(first)
                    await reader.readexactly((head + 12_800) * 20 - head)
                else:
                    await reader.readexactly((head + 12_800) * 20)
                done += 20
            writer.close()

        start = time.monotonic()
        end = start + 0.5
        await asyncio.gather(*(client() for _ in range(4)))
        record_property("requests_per_second", round(done / (time.monotonic() - start)))
        assert done > 0

"""Many exchanges at once through libcurl, on either loop and with either kind of readiness."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Callable, Coroutine

import pytest
import uvloop

from gossamer.backends.curl import CurlTransport
from gossamer.backends.curl.readiness import EpollReadiness, Readiness, SelectorReadiness
from gossamer.backends.curl.transport import raise_descriptor_limit
from gossamer.testing.contracts.transport import Visit, ask, page, site, then_silence

Run = Callable[[Coroutine[None, None, None]], None]


async def _open_at_once(exchanges: int, hold: float) -> None:
    """Open all exchanges over many loopback hosts before the first is answered."""
    release = asyncio.Event()

    async def behave(visit: Visit) -> None:
        if await visit.request():
            await release.wait()
            await visit.say(page(b"x" * 5000))

    async with CurlTransport() as curl, site(behave, host="0.0.0.0") as here:
        urls = [f"http://127.{n % 250 + 1}.{n // 250}.7:{here.port}/{n}" for n in range(exchanges)]
        tasks = [asyncio.create_task(curl.send(ask(url))) for url in urls]
        async with asyncio.timeout(hold):
            for _ in urls:
                await here.asked.acquire()
        assert curl.statistics().open == exchanges
        release.set()
        answers = await asyncio.gather(*tasks)
        assert [answer.address for answer in answers] == [url.split("/")[2].split(":")[0] for url in urls]
        assert curl.statistics().connections_opened == exchanges


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_hundreds_of_open_exchanges(run: Run) -> None:
    """Three hundred hosts are waited for at the same time, on the plain loop and on uvloop."""
    run(_open_at_once(300, 5))


@pytest.mark.slow
@pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def test_thousands_of_open_exchanges(run: Run) -> None:
    """Three thousand hosts are waited for at the same time."""
    run(_open_at_once(3000, 30))


@pytest.mark.parametrize("kind", [EpollReadiness, SelectorReadiness])
async def test_both_kinds_of_readiness_serve(monkeypatch: pytest.MonkeyPatch, kind: type[Readiness]) -> None:
    """Large bodies, connections used again and connections that close all work with either."""
    monkeypatch.setattr("gossamer.backends.curl.engine.open_readiness", kind)
    body = b"y" * 1_000_000

    async def behave(visit: Visit) -> None:
        while head := await visit.request():
            await visit.say(page(body))
            if b"/close" in head:
                return

    async with CurlTransport() as curl, site(behave) as here:
        for paths in (["/a"] * 5, ["/close"] * 5, ["/a"] * 5):
            answers = await asyncio.gather(*(curl.send(ask(here.url(path))) for path in paths))
            assert all(answer.body == body for answer in answers)


async def test_an_idle_transport_uses_no_processor() -> None:
    """Neither pooled connections, nor those that a site closed, nor one slow exchange keep the loop busy."""

    async def behave(visit: Visit) -> None:
        head = await visit.request()
        await visit.say(page())
        if b"/keep" in head:
            await visit.left()

    async with CurlTransport() as curl, site(behave) as here, site(then_silence()) as quiet:
        await asyncio.gather(*(curl.send(ask(here.url(path))) for path in ["/keep", "/close"] * 5))
        waiting = asyncio.create_task(curl.send(ask(quiet.url())))
        await quiet.asked.acquire()
        used = time.process_time()
        await asyncio.sleep(0.3)
        assert time.process_time() - used < 0.06
        waiting.cancel()


async def test_handles_forget_their_pages() -> None:
    """An idle handle holds neither body nor headers of its last exchange."""
    async with CurlTransport() as curl, site(page(b"z" * 100_000)) as here:
        await curl.send(ask(here.url()))
        (handle,) = curl._idle
        assert (handle._chunks, list(handle.lines), handle.head, handle.future) == ([], [], None, None)


async def test_idle_connections_are_bounded() -> None:
    """Of the connections to many hosts only so many are kept."""
    async with site(page(), host="0.0.0.0") as here:

        async def count(visit: Visit) -> None:
            while await visit.request():
                await visit.say(page())
            visit.site.departures += 1

        here._behaviour = count
        async with CurlTransport(idle_connections=5) as curl:
            for n in range(1, 21):
                await curl.send(ask(f"http://127.0.1.{n}:{here.port}/"))
            await asyncio.sleep(0.05)
            assert here.connections == 20
            assert here.departures >= 14


def test_the_descriptor_limit_is_raised() -> None:
    """The soft limit becomes the hard one, and stays it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
        raise_descriptor_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

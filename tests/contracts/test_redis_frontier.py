"""The Redis frontier keeps the contract on a real server, over restarts, and answers random lives as the twin does."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.backends.redis.frontier import RedisFrontier
from gossamer.model.errors import SettingsError, StateError
from gossamer.model.host import HostOrder
from gossamer.model.record import Pushed
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier import DurabilityContract, FrontierContract
from gossamer.testing.contracts.frontier_durable import Reopen
from gossamer.testing.contracts.frontier_steps import (
    Elapse,
    begin,
    done,
    pages,
    retry,
    row,
    seed,
    settle,
    take,
    take_one,
)
from gossamer.testing.fake_clock import FakeClock
from gossamer.testing.interleavings import first_difference, run
from gossamer.testing.servers import RedisServer


def elapsing(clock: FakeClock) -> Elapse:
    async def pass_time(seconds: float) -> None:
        clock.advance(seconds)

    return pass_time


class TestRedisFrontier(FrontierContract, DurabilityContract):
    """A namespace of a shared server, on a clock that stands still."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def elapse(self, clock: FakeClock) -> Elapse:
        return elapsing(clock)

    @pytest.fixture
    def namespace(self) -> str:
        return secrets.token_hex(6)

    @pytest.fixture
    async def opened(self) -> AsyncIterator[AsyncExitStack]:
        async with AsyncExitStack() as stack:
            yield stack

    @pytest.fixture
    async def frontier(
        self, opened: AsyncExitStack, redis_server: RedisServer, namespace: str, clock: FakeClock
    ) -> Frontier:
        return await opened.enter_async_context(
            RedisFrontier(redis_server.url, namespace=namespace, clock=clock)
        )

    @pytest.fixture
    def reopen(
        self, opened: AsyncExitStack, redis_server: RedisServer, namespace: str, clock: FakeClock
    ) -> Reopen:
        async def again() -> Frontier:
            await opened.aclose()
            return await opened.enter_async_context(
                RedisFrontier(redis_server.url, namespace=namespace, clock=clock)
            )

        return again


async def test_random_lives_are_those_of_the_twin(redis_server: RedisServer) -> None:
    """200 seeds get from Redis, answer by answer, what they get from the model."""
    ours, twin = FakeClock(), FakeClock()
    async with RedisFrontier(redis_server.url, namespace=secrets.token_hex(6), clock=ours) as store:
        model = MemoryFrontier(twin)
        for seed in range(300):
            expected = await run(model, elapsing(twin), seed)
            found = await run(store, elapsing(ours), seed)
            assert first_difference(expected, found) is None, (
                f"seed {seed}: {first_difference(expected, found)}"
            )


async def test_a_place_that_was_reached_may_be_written_shorter(redis_server: RedisServer) -> None:
    """What a seed's request was cut into before is not there any more behind a shorter one."""
    async with RedisFrontier(redis_server.url, namespace=secrets.token_hex(6)) as store:
        session = await begin(store, seed())
        for request in (b'{"at":"%b"}' % (b"x" * 300), b'{"at":1}', b'{"at":"%b"}' % (b"y" * 90)):
            grant = await take_one(store, session)
            await settle(store, session, retry(grant, request=request))
            grant = await take_one(store, session)
            assert grant.request == request
            await store.release(session)


class Wild:
    """A clock that somebody sets."""

    def __init__(self) -> None:
        self.at = 1_000_000.0

    def now(self) -> float:
        return self.at


async def test_a_clock_that_is_set_kills_nobody(redis_server: RedisServer) -> None:
    """An hour back: the store's time stands for no moment, and goes on. An hour forward: nobody is dead of it, and what was
    parked for a minute is free."""
    clock = Wild()
    async with RedisFrontier(redis_server.url, namespace=secrets.token_hex(6), clock=clock) as store:
        session = await begin(store, *pages(6))
        grant = await take_one(store, session)
        clock.at -= 3600
        assert await store.beat(session)
        await settle(store, session, done(grant, sent_ago=0.0, host=HostOrder(bad=True, park=60.0, level=1)))
        assert (await row(store)).parked_for == pytest.approx(60.0, abs=1.0)
        clock.at += 30
        assert (await row(store)).parked_for == pytest.approx(30.0, abs=1.0)
        assert await take(store, session) == []
        clock.at += 3600
        assert await store.reap() == 0
        assert await store.beat(session)
        assert len(await take(store, session)) > 0


async def test_a_store_without_memory_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It says why, once; when there is room again the call goes through, and nothing of it was done before."""
    server = RedisServer(tmp_path).start()
    try:
        async with RedisFrontier(server.url) as store:
            await begin(store, *pages(3))
            server.ask("CONFIG", "SET", "maxmemory", "1")
            pushing = asyncio.create_task(store.push("t", pages(5)))
            await asyncio.sleep(1.5)
            assert not pushing.done()
            server.ask("CONFIG", "SET", "maxmemory", "0")
            assert await pushing == Pushed(2, 3)
        assert caplog.text.count("has no memory left") == 1
        assert "answers again" in caplog.text
    finally:
        server.kill()


async def test_a_newer_format_is_refused(redis_server: RedisServer) -> None:
    """What a newer Gossamer wrote is not touched by this one, which says so."""
    namespace = secrets.token_hex(6)
    async with RedisFrontier(redis_server.url, namespace=namespace) as store:
        await begin(store, *pages(3))
    redis_server.ask("HSET", f"gossamer:{{{namespace}.0}}:m", "format", "99")
    with pytest.raises(StateError, match="newer Gossamer"):
        async with RedisFrontier(redis_server.url, namespace=namespace):
            pass


@pytest.mark.parametrize(
    "url",
    ["redis://", "redis+sentinel://host", "redis://h/a", "redis://h/1/2", "redis://user:secret@/0"],
)
def test_a_url_that_cannot_be_read_is_told_without_its_password(url: str) -> None:
    """Where, what to write, and no secret."""
    with pytest.raises(SettingsError) as told:
        RedisFrontier(url)
    assert "secret" not in str(told.value)

"""The Redis frontier keeps the contract on a real server, over restarts, and answers random lives as the twin does."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.backends.redis.frontier import RedisFrontier
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier import DurabilityContract, FrontierContract
from gossamer.testing.contracts.frontier_durable import Reopen
from gossamer.testing.contracts.frontier_steps import Elapse, begin, retry, seed, settle, take_one
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

"""The SQLite frontier keeps the contract, over restarts, and answers random lives as the twin does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier import DurabilityContract, FrontierContract
from gossamer.testing.contracts.frontier_durable import Reopen
from gossamer.testing.contracts.frontier_steps import Elapse
from gossamer.testing.fake_clock import FakeClock
from gossamer.testing.interleavings import first_difference, run


def elapsing(clock: FakeClock) -> Elapse:
    async def pass_time(seconds: float) -> None:
        clock.advance(seconds)

    return pass_time


class TestSqliteFrontier(FrontierContract, DurabilityContract):
    """One file in a temporary folder, on a clock that stands still."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def elapse(self, clock: FakeClock) -> Elapse:
        return elapsing(clock)

    @pytest.fixture
    async def opened(self) -> AsyncIterator[AsyncExitStack]:
        async with AsyncExitStack() as stack:
            yield stack

    @pytest.fixture
    async def frontier(self, opened: AsyncExitStack, tmp_path: Path, clock: FakeClock) -> Frontier:
        return await opened.enter_async_context(SqliteFrontier(tmp_path / "frontier.db", clock=clock))

    @pytest.fixture
    def reopen(self, opened: AsyncExitStack, tmp_path: Path, clock: FakeClock) -> Reopen:
        async def again() -> Frontier:
            await opened.aclose()
            return await opened.enter_async_context(SqliteFrontier(tmp_path / "frontier.db", clock=clock))

        return again


SEEDS_PER_STORE = 20


@pytest.mark.parametrize("first", range(0, 300, SEEDS_PER_STORE))
async def test_random_lives_are_those_of_the_twin(first: int, tmp_path: Path) -> None:
    """The same seeds, many on one store, give answers on SQLite that are the model's to the last number."""
    ours, models = FakeClock(), FakeClock()
    model = MemoryFrontier(models)
    async with SqliteFrontier(tmp_path / "frontier.db", clock=ours) as store:
        for seed in range(first, first + SEEDS_PER_STORE):
            expected = await run(model, elapsing(models), seed)
            difference = first_difference(expected, await run(store, elapsing(ours), seed))
            assert difference is None, f"seed {seed}, {difference}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(300, 3_000, 100))
async def test_many_random_lives_are_those_of_the_twin(first: int, tmp_path: Path) -> None:
    """The same with more seeds, each on a store of its own."""
    for seed in range(first, first + 100):
        ours, models = FakeClock(), FakeClock()
        expected = await run(MemoryFrontier(models), elapsing(models), seed)
        async with SqliteFrontier(tmp_path / f"{seed}.db", clock=ours) as store:
            difference = first_difference(expected, await run(store, elapsing(ours), seed))
        assert difference is None, f"seed {seed}, {difference}"

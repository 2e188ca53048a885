"""The in-memory twin keeps the contract of frontiers: it is the model that the others are compared with."""

from __future__ import annotations

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier import FrontierContract
from gossamer.testing.contracts.frontier_steps import Elapse
from gossamer.testing.fake_clock import FakeClock


class TestMemoryFrontier(FrontierContract):
    """The twin on a clock that stands still."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def frontier(self, clock: FakeClock) -> Frontier:
        return MemoryFrontier(clock)

    @pytest.fixture
    def elapse(self, clock: FakeClock) -> Elapse:
        async def pass_time(seconds: float) -> None:
            clock.advance(seconds)

        return pass_time

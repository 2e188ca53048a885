"""The fake clock moves only when it is told to."""

from __future__ import annotations

import asyncio

import pytest

from gossamer.testing.fake_clock import FakeClock


async def test_sleepers_wake_in_order_and_not_early() -> None:
    """A sleeper returns when the clock has passed its time, the earlier one first."""
    clock, woken = FakeClock(), []

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append(seconds)

    tasks = [asyncio.create_task(sleeper(seconds)) for seconds in (3.0, 1.0, 2.0)]
    await asyncio.sleep(0)
    clock.advance(0.5)
    await asyncio.sleep(0)
    assert woken == []
    clock.advance(2.0)
    await asyncio.sleep(0)
    assert woken == [1.0, 2.0]
    clock.advance(0.5)
    await asyncio.gather(*tasks)
    assert woken == [1.0, 2.0, 3.0]


async def test_a_cancelled_sleeper_does_no_harm() -> None:
    """Time goes on over somebody who no longer waits."""
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1.0))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    clock.advance(5.0)
    await clock.sleep(0)
    assert clock.now() == FakeClock().now() + 5.0


def test_both_readings_advance_and_only_one_leaps() -> None:
    """A set wall clock is not noticed by `now`, and neither goes back by advancing."""
    clock = FakeClock(now=10.0, wall=100.0)
    clock.advance(1.0)
    clock.leap(-50.0)
    assert (clock.now(), clock.wall()) == (11.0, 51.0)
    with pytest.raises(ValueError, match="leap"):
        clock.advance(-1.0)

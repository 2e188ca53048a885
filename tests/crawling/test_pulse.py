"""A handler that does not give the loop back is noticed from beside it; one that does is left alone."""

from __future__ import annotations

import asyncio
import threading
import time

from gossamer.crawling.pulse import Pulse


class Told:
    """Keeps what the pulse says."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.places: list[tuple[str, float]] = []

    def __call__(self, where: str, seconds: float) -> None:
        self.places.append((where, seconds))
        self.event.set()


def test_who_stays_too_long_is_told_with_the_page() -> None:
    """The watch speaks while the author's code still runs, once, with the URL and how long it has been."""
    told = Told()
    pulse = Pulse(0.1, told)
    pulse.start()
    pulse.enter("https://example.com/loop")
    assert told.event.wait(2.0), "the loop is stuck and nobody says so"
    pulse.leave()
    pulse.stop()
    [(where, seconds)] = told.places
    assert where == "https://example.com/loop"
    assert 0.1 < seconds < 2.0


def test_who_leaves_in_time_is_not_told() -> None:
    """Many short calls in a row are not one long one."""
    told = Told()
    pulse = Pulse(0.15, told)
    pulse.start()
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pulse.enter("https://example.com/")
        time.sleep(0.005)
        pulse.leave()
    pulse.stop()
    assert told.places == []


def test_an_idle_loop_is_not_stuck() -> None:
    """Between handlers nobody is watched, however long nothing happens."""
    told = Told()
    pulse = Pulse(0.05, told)
    pulse.start()
    time.sleep(0.3)
    pulse.stop()
    assert told.places == []


def test_its_thread_ends_with_it() -> None:
    """Nothing is left behind, also where it was never started."""
    before = threading.active_count()
    pulse = Pulse(60.0, Told())
    pulse.start()
    assert threading.active_count() == before + 1
    pulse.stop()
    assert threading.active_count() == before
    Pulse(60.0, Told()).stop()


async def test_a_loop_that_stands_still_is_told_whoever_stopped_it() -> None:
    """Also in the middle of an async handler, a hook or a middleware: what the loop runs is named."""
    told = Told()
    pulse = Pulse(0.1, told)
    pulse.start()

    async def handler() -> None:
        await asyncio.sleep(0)
        time.sleep(0.4)  # noqa: ASYNC251  (what no handler should do)

    await asyncio.create_task(handler(), name="https://example.com/async")
    pulse.stop()
    [(where, seconds)] = told.places
    assert where == "https://example.com/async"
    assert 0.1 < seconds < 0.4


async def test_a_loop_that_turns_is_left_alone() -> None:
    """Waiting for minutes is no standing still."""
    told = Told()
    pulse = Pulse(0.05, told)
    pulse.start()
    await asyncio.sleep(0.3)
    pulse.stop()
    assert told.places == []

"""Seeds are pushed as soon as they are there, and never far ahead."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from gossamer.crawling.feeding import CHUNK, in_chunks


async def test_a_slow_source_is_not_waited_for() -> None:
    """What it gave is pushed although more may come."""
    more = asyncio.Event()

    async def seeds() -> AsyncIterator[str]:
        yield "one"
        yield "two"
        await more.wait()
        yield "three"

    chunks = in_chunks(seeds())
    first = await asyncio.wait_for(anext(chunks), 1)
    got = list(first)
    while len(got) < 2:
        got += await asyncio.wait_for(anext(chunks), 1)
    assert got == ["one", "two"]
    more.set()
    rest = [seed async for chunk in chunks for seed in chunk]
    assert rest == ["three"]


async def test_a_quick_source_comes_in_large_chunks_in_its_order() -> None:
    """Many seeds are one push, nothing is lost or doubled, and never more than a chunk waits."""

    async def seeds() -> AsyncIterator[str]:
        for number in range(3 * CHUNK):
            yield str(number)

    sizes, got = [], []
    async for chunk in in_chunks(seeds()):
        sizes.append(len(chunk))
        got += chunk
    assert got == [str(number) for number in range(3 * CHUNK)]
    assert max(sizes) <= CHUNK + 1
    assert len(sizes) < 20


async def test_a_source_that_fails_is_told_after_what_it_gave() -> None:
    """Its last seeds are pushed, then its error is raised."""

    async def seeds() -> AsyncIterator[str]:
        yield "one"
        raise ValueError("the source broke")

    chunks = in_chunks(seeds())
    assert await anext(chunks) == ["one"]
    with pytest.raises(ValueError, match="broke"):
        await anext(chunks)


async def test_a_source_that_never_awaits_leaves_the_loop_its_turns() -> None:
    """Seeds that are slowly computed are pushed while they come, and everything else goes on."""
    drawn = 0

    async def seeds() -> AsyncIterator[str]:
        nonlocal drawn
        for number in range(40):
            drawn += 1
            time.sleep(0.01)  # noqa: ASYNC251  (what an author's plain generator may do)
            yield str(number)

    chunks = in_chunks(seeds())
    await anext(chunks)
    assert drawn < 20
    await chunks.aclose()


async def test_a_source_that_ends_in_a_cancellation_of_its_own_has_failed() -> None:
    """It waited for something that was cancelled: the reader hears of it instead of waiting for ever."""

    async def seeds() -> AsyncIterator[str]:
        yield "one"
        raise asyncio.CancelledError

    chunks = in_chunks(seeds())
    assert await anext(chunks) == ["one"]
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(anext(chunks), 2)


async def test_who_stops_reading_stops_the_source() -> None:
    """An endless source does not run on when its task has ended."""
    alive = 0

    async def seeds() -> AsyncIterator[str]:
        nonlocal alive
        alive += 1
        try:
            while True:
                await asyncio.sleep(0)
                yield "again"
        finally:
            alive -= 1

    chunks = in_chunks(seeds())
    await anext(chunks)
    await chunks.aclose()
    await asyncio.sleep(0)
    assert alive == 0

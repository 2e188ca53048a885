"""What every sink of items promises, as tests against its port alone.

A backend's test module inherits `ItemSinkContract` and gives it two fixtures: `sink`, a function that returns an
unopened sink on the one target of the test, and `held`, a function that reads what the target holds now, in order. A kill is
played by `close`, which by rule 3 leaves what a kill leaves. A sink that can be cut back, so that every item is there
exactly once, inherits `ExactItemSinkContract`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from gossamer.model.record import LoggedItem
from gossamer.ports.sinks import ItemSink


def items(*numbers: int) -> list[LoggedItem]:
    return [LoggedItem(number, b'{"n":%d}' % number) for number in numbers]


def contents(written: Sequence[LoggedItem]) -> list[bytes]:
    return [item.data for item in written]


class ItemSinkContract:
    """Inherit, and give the fixtures `sink` and `held`."""

    async def test_items_arrive_in_order(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """What was written is there when `write` returns, one after the other."""
        one = sink()
        await one.open(0, b"")
        await one.write(items(3, 7))
        assert held() == contents(items(3, 7))
        await one.write(items(8))
        assert held() == contents(items(3, 7, 8))
        await one.close()

    async def test_any_json_arrives_as_it_was(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """Large items, other scripts and escaped line breaks come through byte for byte."""
        hard = ['{"t":"书"}'.encode(), b'{"t":"a\\nb\\u2028"}', b'{"t":"' + b"x" * 2_000_000 + b'"}', b"{}"]
        one = sink()
        await one.open(0, b"")
        await one.write([LoggedItem(number, data) for number, data in enumerate(hard, 1)])
        assert held() == hard
        await one.close()

    async def test_keyed_items_arrive_too(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """A key is for those who can update; nobody refuses an item for it, nor for the lack of one."""
        one = sink()
        await one.open(0, b"")
        await one.write([LoggedItem(1, b'{"n":1}', "first"), LoggedItem(2, b'{"n":2}')])
        assert held() == contents(items(1, 2))
        await one.close()

    async def test_nothing_changes_nothing(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """Writing no items returns the state as it is, and an opened and closed sink leaves nothing."""
        one = sink()
        base = await one.open(0, b"")
        assert await one.write([]) == base
        state = await one.write(items(1))
        assert await one.write([]) == state
        await one.close()
        assert held() == contents(items(1))

    async def test_it_goes_on_where_it_was(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """A new sink opened with the last state appends."""
        state = b""
        for number in range(1, 5):
            one = sink()
            await one.open(number - 1, state)
            state = await one.write(items(number))
            await one.close()
        assert held() == contents(items(1, 2, 3, 4))

    async def test_closing_twice_is_fine(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """`close` may be repeated, comes before `open` without harm, and the same object opens again."""
        one = sink()
        await one.close()
        await one.open(0, b"")
        state = await one.write(items(1))
        await one.close()
        await one.close()
        await one.open(1, state)
        await one.write(items(2))
        await one.close()
        assert held() == contents(items(1, 2))

    async def test_a_state_is_small(self, sink: Callable[[], ItemSink]) -> None:
        """The state travels with every cursor, so it does not grow with what was written."""
        one = sink()
        await one.open(0, b"")
        for start in range(1, 2_000, 200):
            state = await one.write(items(*range(start, start + 200)))
        await one.close()
        assert len(state) <= 1_024


class ExactItemSinkContract(ItemSinkContract):
    """The same, and every item exactly once however often it is killed."""

    async def test_killed_between_write_and_cursor(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """What the cursor does not know is cut off by `open`, and is there once when it came again."""
        one = sink()
        await one.open(0, b"")
        state = await one.write(items(1, 2))
        await one.write(items(3, 4))
        await one.close()
        again = sink()
        assert await again.open(2, state) == state
        assert held() == contents(items(1, 2))
        await again.write(items(3, 4, 5))
        await again.close()
        assert held() == contents(items(1, 2, 3, 4, 5))

    async def test_killed_before_the_first_cursor(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]]
    ) -> None:
        """The state that the first `open` returned leads back to the beginning."""
        one = sink()
        base = await one.open(0, b"")
        await one.write(items(1))
        await one.close()
        again = sink()
        assert await again.open(0, base) == base
        assert held() == []
        await again.write(items(1, 2))
        await again.close()
        assert held() == contents(items(1, 2))

    @pytest.mark.parametrize("seed", range(20))
    async def test_killed_at_random(
        self, sink: Callable[[], ItemSink], held: Callable[[], list[bytes]], seed: int
    ) -> None:
        """However often it dies before or after the cursor moved, each item is there once, in order."""
        rand = random.Random(seed)
        cursor, state, total = 0, b"", 60
        one = sink()
        state = await one.open(cursor, state)
        while cursor < total:
            end = min(cursor + rand.randint(1, 9), total)
            written = await one.write(items(*range(cursor + 1, end + 1)))
            if rand.random() < 0.6:
                cursor, state = end, written
            if rand.random() < 0.5:
                await one.close()
                one = sink()
                state = await one.open(cursor, state)
            elif state != written:  # a live follower always moves its cursor before it writes again
                cursor, state = end, written
        await one.close()
        assert held() == contents(items(*range(1, total + 1)))

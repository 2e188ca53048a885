"""The item log: an item is there if and only if its page is settled, once, in commit order."""

from __future__ import annotations

from itertools import pairwise

import pytest

from gossamer.model.item import Item
from gossamer.model.record import Outcome, Verdict
from gossamer.model.task import Command, TaskState
from gossamer.ports.frontier import CursorMoved, Frontier
from gossamer.testing.contracts.frontier_steps import (
    begin,
    done,
    items,
    page,
    pages,
    retry,
    settle,
    state,
    take,
    take_one,
)

ALL = 1_000


async def fill(frontier: Frontier, count: int, name: str = "t") -> list[int]:
    """A task with so many settled pages, one item each; the numbers of the items."""
    links = [page(host=f"h{n}.test") for n in range(count)]
    session = await begin(frontier, *links, name=name)
    for n, grant in enumerate(await take(frontier, session, name=name)):
        await settle(frontier, session, done(grant, items=items(b'{"n":%d}' % n)))
    return [item.number for item in await frontier.read(name, 0, 0, ALL)]


class ItemsContract:
    """What sinks read."""

    async def test_a_cursor_moves_only_from_where_its_sink_believes_it_to_be(
        self, frontier: Frontier
    ) -> None:
        """With `after` a batch counts once, also when its answer was lost; one that began elsewhere is refused."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        await settle(frontier, session, done(grant, items=items(b"1", b"2", b"3")))
        one, two, three = [item.number for item in await frontier.read("t", 0, 0, 9)]
        await frontier.cursor("t", 0, "other")  # so that nothing is trimmed
        assert await frontier.cursor("t", 0, "file") == (0, b"")
        await frontier.advance("t", 0, "file", one, b"a", after=0)
        await frontier.advance("t", 0, "file", one, b"a", after=0)
        with pytest.raises(CursorMoved):
            await frontier.advance("t", 0, "file", three, b"c", after=two)
        assert await frontier.cursor("t", 0, "file") == (one, b"a")
        await frontier.advance("t", 0, "file", three, b"c", after=one)
        assert await frontier.cursor("t", 0, "file") == (three, b"c")

    async def test_items_are_read_as_they_were_written(self, frontier: Frontier) -> None:
        """Compact JSON comes back untouched, in the order of the settles, with rising numbers."""
        session = await begin(frontier, *pages(3))
        texts = [b'{"a":1}', '{"ü":"\\u00e4 ✓"}'.encode(), b'{"big":12345678901234567890,"f":1.50}']
        for grant, item in zip(await take(frontier, session), texts, strict=True):
            await settle(frontier, session, done(grant, items=items(item, b"{}")))
        log = await frontier.read("t", 0, 0, ALL)
        assert [item.data for item in log] == [part for item in texts for part in (item, b"{}")]
        assert all(later.number > earlier.number for earlier, later in pairwise(log))
        assert (await frontier.counters("t"))["items"] == 6

    async def test_a_key_travels_with_its_item(self, frontier: Frontier) -> None:
        """Whatever characters it has, beside items that have none, in one call; and neither bends the other."""
        session = await begin(frontier, *pages(3))
        keyed = [
            Item(b'{"a":1}', "1"),
            Item('{"ü":"\\u00e4 ✓","b":[{"c":null}]}'.encode()),
            Item(b'{"big":12345678901234567890,"f":1.50,"s":"a\\/b"}', 'quote " slash \\ null \0 line \n 书'),
            Item(b"{}", "null"),
        ]
        one, two, three = await take(frontier, session)
        await settle(frontier, session, done(one, items=keyed[:2]), done(two, items=keyed[2:]))
        await settle(frontier, session, done(three, items=items(b'{"plain":true}')))
        log = await frontier.read("t", 0, 0, ALL)
        assert [Item(item.data, item.key) for item in log] == [*keyed, Item(b'{"plain":true}')]
        assert all(later.number > earlier.number for earlier, later in pairwise(log))

    async def test_the_same_key_is_in_the_log_each_time(self, frontier: Frontier) -> None:
        """The log says what was settled when; what a repeated key means is for the sinks to know."""
        session = await begin(frontier, *pages(2))
        for n, grant in enumerate(await take(frontier, session)):
            await settle(frontier, session, done(grant, items=[Item(b'{"n":%d}' % n, "same")]))
        log = await frontier.read("t", 0, 0, ALL)
        assert [(item.data, item.key) for item in log] == [(b'{"n":0}', "same"), (b'{"n":1}', "same")]

    async def test_no_settle_no_item(self, frontier: Frontier) -> None:
        """What comes with a stale token is in nobody's log."""
        session = await begin(frontier, page())
        grant = await take_one(frontier, session)
        await frontier.release(session)
        await settle(frontier, session, done(grant, items=items(b"{}")))
        await settle(frontier, session, Outcome(10**6, Verdict.DONE, items=items(b"{}")))
        assert await frontier.read("t", 0, 0, ALL) == []

    async def test_an_attempt_that_goes_on_may_bring_items(self, frontier: Frontier) -> None:
        """Items come with every good settle, also of a record that is not at its end."""
        session = await begin(frontier, page())
        await settle(frontier, session, retry(await take_one(frontier, session), items=items(b'{"part":1}')))
        await settle(frontier, session, done(await take_one(frontier, session), items=items(b'{"part":2}')))
        assert [item.data for item in await frontier.read("t", 0, 0, ALL)] == [b'{"part":1}', b'{"part":2}']

    async def test_a_task_reads_its_own(self, frontier: Frontier) -> None:
        """The logs of two tasks do not mix, and their numbers are different."""
        one = await fill(frontier, 2, "one")
        two = await fill(frontier, 3, "two")
        assert (len(one), len(two)) == (2, 3)
        assert not set(one) & set(two)

    async def test_reading_goes_on_from_a_place(self, frontier: Frontier) -> None:
        """`after` and `limit` cut the log into pieces that fit."""
        numbers = await fill(frontier, 5)
        first = await frontier.read("t", 0, 0, 2)
        rest = await frontier.read("t", 0, first[-1].number, ALL)
        assert [item.number for item in first + rest] == numbers
        assert await frontier.read("t", 0, numbers[-1], ALL) == []

    async def test_a_new_sink_stands_at_the_start(self, frontier: Frontier) -> None:
        """Asking for a cursor registers the sink; what it was moved to with its state is kept."""
        numbers = await fill(frontier, 2)
        assert await frontier.cursor("t", 0, "file") == (0, b"")
        await frontier.advance("t", 0, "file", numbers[0], b'{"length":17}')
        assert await frontier.cursor("t", 0, "file") == (numbers[0], b'{"length":17}')

    async def test_a_cursor_never_moves_back(self, frontier: Frontier) -> None:
        """A late advance of an older writer changes neither place nor state."""
        numbers = await fill(frontier, 3)
        await frontier.cursor("t", 0, "file")
        await frontier.advance("t", 0, "file", numbers[1], b"new")
        await frontier.advance("t", 0, "file", numbers[0], b"old")
        assert await frontier.cursor("t", 0, "file") == (numbers[1], b"new")

    async def test_the_log_is_trimmed_behind_the_slowest(self, frontier: Frontier) -> None:
        """What every registered sink holds is gone; what one of them lacks is kept."""
        numbers = await fill(frontier, 4)
        for sink in ("fast", "slow"):
            await frontier.cursor("t", 0, sink)
        await frontier.advance("t", 0, "fast", numbers[3])
        assert [item.number for item in await frontier.read("t", 0, 0, ALL)] == numbers
        await frontier.advance("t", 0, "slow", numbers[1])
        assert [item.number for item in await frontier.read("t", 0, 0, ALL)] == numbers[2:]

    async def test_trimming_is_by_task(self, frontier: Frontier) -> None:
        """A sink that holds all of one task leaves the log of another."""
        one, two = await fill(frontier, 2, "one"), await fill(frontier, 2, "two")
        await frontier.cursor("two", 0, "file")
        await frontier.advance("two", 0, "file", two[-1])
        assert [item.number for item in await frontier.read("one", 0, 0, ALL)] == one

    async def test_numbers_are_never_used_again(self, frontier: Frontier) -> None:
        """Also when the whole log was trimmed, the next item has a higher number."""
        numbers = await fill(frontier, 3)
        await frontier.cursor("t", 0, "file")
        await frontier.advance("t", 0, "file", numbers[-1])
        later = await fill(frontier, 1, "later")
        assert later[0] > numbers[-1]

    async def test_a_full_log_slows_the_leasing(self, frontier: Frontier) -> None:
        """At the limit nothing more is granted, and robots are not asked for; what a sink takes makes room again."""
        session = await begin(frontier, *pages(4), log_limit=2)
        await frontier.cursor("t", 0, "file")
        one, two = await take(frontier, session, 2)
        answer = await settle(frontier, session, done(one, items=items(b"{}")), t=0)
        assert answer.wait == 0.0
        answer = await settle(frontier, session, done(two, items=items(b"{}")), t=5)
        assert (answer.grants, answer.wait, answer.ended) == ([], None, {})
        numbers = [item.number for item in await frontier.read("t", 0, 0, ALL)]
        await frontier.advance("t", 0, "file", numbers[0])
        assert len(await take(frontier, session, 5)) == 2

    async def test_a_full_log_stops_its_own_task_only(self, frontier: Frontier) -> None:
        """Another task goes on, and what is leased already settles and completes the task."""
        session = await begin(frontier, page(), seeded=True, log_limit=1)
        grant = await take_one(frontier, session)
        await begin(frontier, page("/other"), name="other")
        await settle(frontier, session, done(grant, items=items(b"{}", b"{}")))
        assert (await state(frontier)).state is TaskState.COMPLETED
        assert len(await take(frontier, session, name="other")) == 1

    async def test_an_ended_task_keeps_its_log(self, frontier: Frontier) -> None:
        """Sinks read to the end whatever became of the task."""
        numbers = await fill(frontier, 2)
        await frontier.control("t", Command.CANCEL)
        assert [item.number for item in await frontier.read("t", 0, 0, ALL)] == numbers

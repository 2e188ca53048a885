"""Mistakes to plant in a cluster (see `gossamer.testing.faults`): each one the nemesis must notice."""

from __future__ import annotations

from typing import Any


def altered(*changes: tuple[str, str]) -> None:
    """The store's script with other words in it."""
    from gossamer.backends.redis import calling

    source = calling.source()
    for right, wrong in changes:
        assert source.count(right) == 1, f"the script has no such place any more: {right}"
        source = source.replace(right, wrong)
    calling.source = lambda: source


def answers_are_not_kept() -> None:
    """A call whose answer was lost is done again: what it was granted the first time is nobody's."""
    altered(("if A.identity then\n      local last", "if false then\n      local last"))


def a_lost_end_is_not_noticed() -> None:
    """A store that came back without its last moment goes on as if it had it."""
    altered(("and m.lost ~= run then lose_end() end", "and false then lose_end() end"))


def leases_of_the_dead_stay() -> None:
    """A session ends, and what it held stays leased for ever."""
    altered(("return_all(lost, true, true)", ""))


def the_sink_does_not_go_back() -> None:
    """The cursor is moved wherever it stands."""
    from gossamer.backends.redis.frontier import RedisFrontier

    advance = RedisFrontier.advance

    async def anyhow(self: RedisFrontier, *args: Any, after: int | None = None, **more: Any) -> None:
        await advance(self, *args, **more)

    RedisFrontier.advance = anyhow  # type: ignore[method-assign]

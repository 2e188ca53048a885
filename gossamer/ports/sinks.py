"""Where items go: a sink follows the item log of a task with a cursor of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class ItemSink(Protocol):
    """One target. Used by one follower at a time, and never concurrently."""

    async def open(self, number: int, state: bytes) -> None:
        """Stand exactly where the cursor stands: everything up to item `number` is here, nothing behind it.

        `state` is what `write` returned with that item; empty when nothing was ever written. Raises OutputError where
        the target cannot be brought there.
        """

    async def write(self, items: Sequence[tuple[int, bytes]]) -> bytes:
        """Write these (number, JSON) in order; durable when it returns the sink's new own state."""

    async def close(self) -> None:
        """Let go of the target. Safe to repeat."""

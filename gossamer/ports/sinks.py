"""Where items go: a sink follows the item log of a task with a cursor of its own.

The life of a batch: `SinkFollower` reads it from the log → `write` makes it durable and returns the sink's new state → the
follower stores cursor and state in the frontier. Killed anywhere in between, the next run hands the *stored* number and state to
`open`, and the sink brings its target back to exactly that. So an item is never lost, and for a sink that can cut back
(or write the number with its rows) never there twice.

What every sink keeps, and `gossamer.testing.contracts.sinks` tests:

1. After `open(number, state)` the target holds what was written up to that state, and nothing behind it.
2. `write` is durable when it returns. When it raises, the same items may be written again, and are then there once.
3. `close` changes nothing in the target: it is what a kill would leave.
4. What is not this sink's own is never cut, replaced or added to: `open` raises OutputError and says what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from gossamer.model.record import LoggedItem

Items = Sequence[LoggedItem]
"""In the order of the log. A sink that can update uses the key, where there is one; others leave it alone."""


class ItemSink(Protocol):
    """One target. Used by one follower at a time, and never concurrently."""

    async def open(self, number: int, state: bytes) -> bytes:
        """Stand exactly where the cursor stands: everything up to item `number` is here, nothing behind it.

        `state` is what was stored with that number, empty for a new sink. Returns the state to store before the first
        `write`: what a new sink finds at its target belongs in it, else a kill after that write could not be undone.
        Raises OutputError where the target cannot be brought there.
        """

    async def write(self, items: Items) -> bytes:
        """Write these in order; durable when it returns the sink's new state. Of nothing it returns the state as it is."""

    async def close(self) -> None:
        """Let go of the target, also after an `open` that failed. Safe to repeat; the sink may be opened again."""

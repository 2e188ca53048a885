"""Random lives of a frontier, repeatable from a seed: the same seed asks every store the same questions.

`run` plays one seed against a store while a referee, who knows nothing of its inside, checks after every step what must
always hold, and finally drains the store to see that every task ends. It returns the transcript. The model check plays
the same seeds against the in-memory twin and compares: `first_difference` names the first answer that is not the model's.

Tasks, hosts and sessions are named after the seed, so that many seeds may be played on one store, one after the other.
All durations are multiples of an eighth of a second, so that no rounding of a store can make two answers differ.
"""

from __future__ import annotations

from gossamer.testing.interleavings.play import Elapse, Event, Play, first_difference
from gossamer.testing.interleavings.referee import Violation

__all__ = ["Elapse", "Event", "Play", "Violation", "first_difference", "run"]


async def run(frontier: object, elapse: Elapse, seed: int, steps: int = 40) -> list[Event]:
    """Play one seed to its end; raises Violation where the store broke its contract."""
    return await Play(frontier, elapse, seed).run(steps)

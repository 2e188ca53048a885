"""Random lives: repeatable, rich enough to mean something, and kept by the twin ten thousand times over."""

from __future__ import annotations

from collections import Counter

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.model.record import Kind, Leases
from gossamer.testing.fake_clock import FakeClock
from gossamer.testing.interleavings import Event, first_difference, run


async def play(
    seed: int, frontier: MemoryFrontier | None = None, clock: FakeClock | None = None
) -> list[Event]:
    clock = clock or FakeClock()

    async def elapse(seconds: float) -> None:
        clock.advance(seconds)

    return await run(frontier or MemoryFrontier(clock), elapse, seed)


@pytest.mark.timeout(600)
async def test_the_twin_keeps_every_invariant_ten_thousand_times() -> None:
    """The twin is a model: 10,000 random lives of about fifty steps break nothing."""
    for seed in range(10_000):
        await play(seed)


async def test_a_seed_is_repeatable() -> None:
    """The same seed asks the same questions and hears the same answers."""
    for seed in range(20):
        assert first_difference(await play(seed), await play(seed)) is None


async def test_a_difference_is_told_with_the_steps_that_led_there() -> None:
    """The first answer that is not the model's is shown beside the model's, after the steps before it."""
    model = await play(3)
    store = [*model]
    at = max(n for n, event in enumerate(model) if event[0] == "work")
    store[at] = ("work", "something else")
    told = first_difference(model, store)
    assert told is not None
    assert told.startswith(f"step {at}\n")
    assert "something else" in told
    assert str(model[at]) in told


async def test_many_seeds_may_be_played_on_one_store() -> None:
    """Names carry the seed, so one life does not see another one on the same store."""
    clock = FakeClock()
    frontier = MemoryFrontier(clock)
    for seed in range(30):
        await play(seed, frontier, clock)


async def test_the_seeds_reach_every_corner() -> None:
    """300 lives meet every kind of grant, refusal, closure, death, return and end many times."""
    met: Counter[str] = Counter()
    for seed in range(300):
        for event in await play(seed):
            met.update(corners(event))
    rare = {corner: met[corner] for corner in CORNERS if met[corner] < 10}
    assert not rare, f"hardly met: {rare} of {dict(met)}"


CORNERS = ("PAGE", "SEED", "ROBOTS", "suspect", "crashed", "retried", "stale", "late", "reaped", "refused", "known", "dns", "budget", "trap_pattern",
           "robots_unreachable", "max_pages", "max_items", "max_errors", "CANCELLED", "FAILED", "PAUSED", "COMPLETED", "parked", "trimmed", "several sessions",
           "retry_failed", "update")  # fmt: skip


def corners(event: Event) -> list[str]:
    """What one step of a transcript met."""
    name = event[0]
    if name in ("settle", "work", "lease"):
        return granted(event[-1])
    if name == "counters":
        view, counters = event[1:]
        causes = {cause.partition(":")[2] for cause in counters}
        late = ["late"] if view.ended_ago is not None and counters.get("stale") else []
        kept = [cause for cause in ("retried", "stale") if counters.get(cause)]
        return [
            view.state.value,
            *kept,
            *late,
            *(causes & {"dns", "budget", "robots_unreachable", "trap_pattern"}),
            view.reason,
        ]
    if name == "hosts":
        return ["parked" for host in event[1].values() if host.parked_for]
    if name == "sink":
        return ["trimmed" for item in event[4][:1] if event[3][0] and item.number > 1]
    if name == "control":
        return [event[2].value]
    met = {
        "reap": event[-1] and "reaped",
        "push": name == "push" and event[3].known and "known",
        "refused": "refused",
    }
    if name in ("beat", "renew", "release") and event[1] > 0:
        return ["several sessions"]
    return [str(met[name])] if met.get(name) else []


def granted(answer: Leases) -> list[str]:
    met = [Kind(grant.kind).name for grant in answer.grants]
    met += ["suspect" for grant in answer.grants if grant.suspect]
    return met + ["crashed" for grant in answer.grants if grant.crashes]

"""The checks are worth something: stores with one planted bug each are caught, with and without a model beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.backends.memory.rows import Host, Lane, Lease, Record, Task
from gossamer.model.item import Item
from gossamer.model.record import Leases, Outcome
from gossamer.testing.fake_clock import FakeClock
from gossamer.testing.interleavings import Violation, first_difference, run

SEEDS = 150


class TokensOfOthers(MemoryFrontier):
    """Settles whatever number it is told, whoever holds it."""

    def _honour(self, session: str, outcome: Outcome) -> Lease | None:
        lease = self._leases.get(outcome.number)
        return super()._honour(lease.session if lease else session, outcome)


class SlotFreedTwice(MemoryFrontier):
    """Gives back two slots for one lease."""

    def _free(self, lease: Lease) -> None:
        super()._free(lease)
        lease.lane.host.row.open -= 1


class KnownButNotQueued(MemoryFrontier):
    """Marks a key as known and then forgets every seventh record: the classic lost URL."""

    def _give_back(self, record: Record, delay: float = 0.0) -> None:
        if record.id % 7:
            super()._give_back(record, delay)

    def _raise_priority(self, record: Record, priority: int) -> None:
        if record.id % 7:
            super()._raise_priority(record, priority)


class CountsTheStale(MemoryFrontier):
    """Moves the counters before it knows that the token is good."""

    def _number(self, session: str, lane: Lane, record: Record | None = None) -> int:
        number = super()._number(session, lane, record)
        self.__dict__.setdefault("tasks_of", {})[number] = lane.task
        return number

    def _honour(self, session: str, outcome: Outcome) -> Lease | None:
        lease = super()._honour(session, outcome)
        task: Task | None = self.__dict__.get("tasks_of", {}).get(outcome.number)
        if lease is None and task is not None:
            task.counts.update({"done": 1, "done:ok": 1})
        return lease


class PriorityIgnored(MemoryFrontier):
    """Serves a host first in, first out, whatever the priorities are."""

    def _take(self, lane: Lane, n: int) -> list[Record]:
        lane.queue.sort(key=lambda record: record.id)
        taken = super()._take(lane, n)
        lane.queue.sort(key=lambda record: record.turn)
        return taken


class RobotsTwice(MemoryFrontier):
    """Forgets that somebody is asking for the host's robots already."""

    def _occupy(self, lane: Lane, record: Record | None = None) -> None:
        super()._occupy(lane, record)
        lane.host.row.robots_open = False


class NumbersReused(MemoryFrontier):
    """Numbers an item by what is in the log, as a table without a sequence does once it is trimmed."""

    async def advance(self, task: str, partition: int, sink: str, number: int, state: bytes = b"") -> None:
        await super().advance(task, partition, sink, number, state)
        kept = [item.number for row in self._tasks.values() for item in row.items]
        self._last_item = max(kept, default=0)


class ParkingForgotten(MemoryFrontier):
    """Does not read the column that says how long a host is parked."""

    def _end_attempt(self, lease: Lease, outcome: Outcome) -> None:
        super()._end_attempt(lease, outcome)
        lease.lane.host.row.parked_until = 0.0


class ImpoliteLimit(MemoryFrontier):
    """Tests the slots once for the whole call instead of for each host granted from."""

    def _free_slots(self, host: Host) -> int:
        return super()._free_slots(host) + 1


class DeadKeepTheirLeases(MemoryFrontier):
    """Ends a session that is silent and forgets what it held."""

    async def reap(self) -> int:
        held, self._leases = self._leases, {}
        try:
            return await super().reap()
        finally:
            self._leases = held


class ClosedLaneSwallows(MemoryFrontier):
    """Gives a host up, but lets what comes later wait there for ever."""

    def _give_back(self, record: Record, delay: float = 0.0) -> None:
        closed, record.lane.closed = record.lane.closed, None
        super()._give_back(record, delay)
        record.lane.closed = closed


class LateSettleLosesTheRecord(MemoryFrontier):
    """Drops the lease of an ended task, but not its record back into the queue: retry-failed would wait for ever."""

    def _return(self, lease: Lease) -> None:
        if lease.lane.task.is_over:
            self._free(lease)
        else:
            super()._return(lease)


class EndUnnoticed(MemoryFrontier):
    """Completes a task when its last record is settled, but not when its last host is given up over its robots."""

    watched: frozenset[Task] | None = None

    def _settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        numbers = {outcome.number for outcome in outcomes}
        settled = [lease for lease in self._leases.values() if lease.number in numbers and lease.record]
        self.watched = frozenset(lease.lane.task for lease in settled)
        try:
            return super()._settle(session, outcomes, want)
        finally:
            self.watched = None

    def _check_end(self, task: Task) -> None:
        if self.watched is None or task in self.watched:
            super()._check_end(task)


class NewestHostFirst(MemoryFrontier):
    """Serves the host that became ready last, so that some wait for ever."""

    def _ready_lanes(self, task: Task) -> list[Lane]:
        return super()._ready_lanes(task)[::-1]


class NobodySuspect(MemoryFrontier):
    """Gives the records of dead sessions back as if nothing had happened."""

    def _return(self, lease: Lease) -> None:
        if lease.record is not None:
            lease.record.suspect = False
        super()._return(lease)


class LimitSeenAtTheEnd(MemoryFrontier):
    """Looks at a task's limits once for the whole call, and takes what comes behind the outcome that reached one."""

    ends = False

    def _check_end(self, task: Task) -> None:
        self.ends = True
        super()._check_end(task)
        self.ends = False

    def _check_limits(self, task: Task) -> None:
        if self.ends:
            super()._check_limits(task)


class GivenUpIsNoFailure(MemoryFrontier):
    """Counts the verdicts of FAILED towards the limit, and not what ended with its host."""

    def _account_given_up(self) -> None:
        before = {record.lane.task: record.lane.task.errors for record in self._given_up}
        super()._account_given_up()
        for task, errors in before.items():
            task.errors = errors


class NothingForgiven(MemoryFrontier):
    """Retries what failed, and goes on counting from there: the task fails again at once, or too early."""

    def _retry_failed(self, task: Task) -> None:
        errors = task.errors
        super()._retry_failed(task)
        task.errors = errors


class KeysLost(MemoryFrontier):
    """Writes items without their keys."""

    def _log(self, task: Task, items: Sequence[Item]) -> None:
        super()._log(task, [Item(item.data) for item in items])


class BodyOfAnotherAttempt(MemoryFrontier):
    """Names the body of whatever attempt there was, also of one that was to be repeated."""

    def _retry(self, record: Record, outcome: Outcome) -> None:
        record.body = outcome.body or record.body
        super()._retry(record, outcome)


SEEN_BY_THE_REFEREE = [
    TokensOfOthers,
    SlotFreedTwice,
    KnownButNotQueued,
    CountsTheStale,
    PriorityIgnored,
    RobotsTwice,
    NumbersReused,
    ParkingForgotten,
    ImpoliteLimit,
    DeadKeepTheirLeases,
    ClosedLaneSwallows,
    LateSettleLosesTheRecord,
    EndUnnoticed,
    LimitSeenAtTheEnd,
    GivenUpIsNoFailure,
    NothingForgiven,
    KeysLost,
    BodyOfAnotherAttempt,
]
SEEN_BESIDE_THE_MODEL = [*SEEN_BY_THE_REFEREE, NewestHostFirst, NobodySuspect]


async def play(store: type[MemoryFrontier], seed: int) -> list[tuple[object, ...]]:
    clock = FakeClock()

    async def elapse(seconds: float) -> None:
        clock.advance(seconds)

    return await run(store(clock), elapse, seed)


@pytest.mark.parametrize("mutant", SEEN_BY_THE_REFEREE)
async def test_the_referee_alone_catches_a_planted_bug(mutant: type[MemoryFrontier]) -> None:
    """A store with this bug breaks an invariant within a few seeds, with no model to compare it with."""
    for seed in range(SEEDS):
        try:
            await play(mutant, seed)
        except Violation:
            return
    pytest.fail(f"{mutant.__name__} played {SEEDS} seeds and nobody noticed")


@pytest.mark.parametrize("mutant", SEEN_BESIDE_THE_MODEL)
async def test_the_model_check_catches_a_planted_bug(mutant: type[MemoryFrontier]) -> None:
    """A store with this bug gives an answer within a few seeds that the model does not give."""
    for seed in range(SEEDS):
        try:
            played = await play(mutant, seed)
        except Violation:
            return
        if first_difference(await play(MemoryFrontier, seed), played):
            return
    pytest.fail(f"{mutant.__name__} played {SEEDS} seeds and gave the model's answers")

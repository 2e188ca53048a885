"""Settles: the one place where an attempt ends, and everything that becomes true with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.backends.memory.granting import Granting
from gossamer.backends.memory.rows import Lane, Lease, Record, Task
from gossamer.model.hostrow import obey
from gossamer.model.record import REDIRECTED, TERMINAL, Kind, Leases, Outcome, State, Verdict
from gossamer.ports.frontier import KEPT_SAMPLES


class Settling(Granting):
    """The outcomes of one call."""

    def _settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        stale: list[int] = []
        settled: list[tuple[Lease, Outcome]] = []
        for outcome in outcomes:
            lease = self._honour(session, outcome.number)
            if lease is None:
                stale.append(outcome.number)
            else:
                self._end_attempt(lease, outcome)
                settled.append((lease, outcome))
        for lease, outcome in settled:
            if lease.record is not None:
                self._take_effects(lease.lane.task, lease.record, outcome)
        for task in dict.fromkeys(lease.lane.task for lease, _ in settled):
            self._check_end(task)
        self._refresh()
        answer = self._lease(session, want) if session in self._sessions else Leases()
        answer.stale = stale
        return answer

    def _honour(self, session: str, number: int) -> Lease | None:
        """The lease, if the token is good. A late one of an ended task frees its slot, and nothing else."""
        lease = self._leases.get(number)
        if lease is None:
            return None
        task = lease.lane.task
        if lease.session == session and not task.is_over:
            return lease
        task.counts["stale"] += 1
        if lease.session == session:
            self._return(lease)
        return None

    def _return(self, lease: Lease) -> None:
        """Free the slot and let the record wait as before the lease."""
        self._free(lease)
        if lease.record is not None:
            self._give_back(lease.record)

    def _end_attempt(self, lease: Lease, outcome: Outcome) -> None:
        """The slot, the host and the record; the rest follows when all records of the call are settled."""
        self._free(lease)
        obey(lease.lane.host.row, outcome.host, outcome.sent_ago, self._now)
        if lease.record is not None:
            self._end_record(lease.record, outcome)
        if outcome.host is not None and outcome.host.give_up and lease.lane.host.row.name:
            self._close_lane(lease.lane, State.FAILED, outcome.host.give_up)

    def _end_record(self, record: Record, outcome: Outcome) -> None:
        if outcome.verdict in TERMINAL:
            self._end(record, State(outcome.verdict), outcome.code)
            if record.kind is Kind.PAGE and record.state is State.DONE and outcome.code != REDIRECTED:
                self._count_page(record.lane)
        elif outcome.verdict is Verdict.RETRY:
            self._retry(record, outcome)
        else:
            self._give_back(record)

    def _count_page(self, lane: Lane) -> None:
        lane.task.pages += 1
        lane.pages += 1
        if self._is_spent(lane):
            self._close_lane(lane, State.SKIPPED, "budget")

    def _retry(self, record: Record, outcome: Outcome) -> None:
        record.retries += outcome.burned
        record.crashes += outcome.crashed
        record.suspect = record.suspect or outcome.crashed
        if outcome.priority is not None:
            record.priority = outcome.priority
        if outcome.request is not None:
            record.request = outcome.request
        if record.kind is not Kind.SEED:
            record.lane.task.counts["retried"] += 1
        self._give_back(record, outcome.delay)

    def _take_effects(self, task: Task, record: Record, outcome: Outcome) -> None:
        self._push(task, outcome.links, record.link.url)
        for item in outcome.items:
            self._last_item += 1
            task.items.append((self._last_item, item))
        task.counts["items"] += len(outcome.items)
        task.counts.update(outcome.counts)
        for counter, example in outcome.samples:
            kept = task.samples.setdefault(counter, [])
            if len(kept) < KEPT_SAMPLES:
                kept.append(example)

"""Settles: the one place where an attempt ends, and everything that becomes true with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gossamer.backends.memory.granting import Granting
from gossamer.backends.memory.rows import Lease, Record, Task
from gossamer.model.hostrow import obey
from gossamer.model.item import Item
from gossamer.model.record import REDIRECTED, TERMINAL, Kind, Leases, LoggedItem, Outcome, State, Verdict


class Settling(Granting):
    """The outcomes of one call."""

    def _settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        stale: list[int] = []
        settled: list[tuple[Lease, Outcome]] = []
        for outcome in outcomes:
            lease = self._honour(session, outcome)
            if lease is None:
                stale.append(outcome.number)
            else:
                self._end_attempt(lease, outcome)
                settled.append((lease, outcome))
                self._check_limits(lease.lane.task)
        self._close_lanes(settled)
        self._take_effects(settled)
        self._account_given_up()
        for task in self._tasks.values():
            self._check_end(task)
        self._refresh()
        answer = self._lease(session, want) if session in self._sessions else Leases()
        answer.stale = stale
        return answer

    def _honour(self, session: str, outcome: Outcome) -> Lease | None:
        """The lease, if the token is good. A late one of an ended task frees its slot, and its host was asked: nothing else."""
        lease = self._leases.get(outcome.number)
        if lease is None:
            named = self._tasks.get(outcome.task)
            if named is not None:
                named.counts["stale"] += 1
            return None
        task = lease.lane.task
        if lease.session == session and not task.is_over:
            return lease
        task.counts["stale"] += 1
        if lease.session == session:
            obey(lease.lane.host.row, None, outcome.sent_ago, self._now)
            self._return(lease)
        return None

    def _return(self, lease: Lease) -> None:
        """Free the slot and let the record wait as before the lease."""
        self._free(lease)
        if lease.record is not None:
            self._give_back(lease.record)

    def _end_attempt(self, lease: Lease, outcome: Outcome) -> None:
        """The slot, the host and the record; the rest follows when all outcomes of the call came so far."""
        self._free(lease)
        obey(lease.lane.host.row, outcome.host, outcome.sent_ago, self._now)
        if lease.record is None:
            return
        task = lease.lane.task
        task.counts["items"] += len(outcome.items)
        if outcome.verdict in TERMINAL:
            self._end(lease.record, State(outcome.verdict), outcome.code)
            lease.record.body = outcome.body or lease.record.body
            task.errors += outcome.verdict is Verdict.FAILED
            if _is_page(lease, outcome):
                task.pages += 1
                lease.lane.pages += 1
        elif outcome.verdict is Verdict.RETRY:
            self._retry(lease.record, outcome)
        else:
            self._give_back(lease.record)

    def _close_lanes(self, settled: Sequence[tuple[Lease, Outcome]]) -> None:
        """First the hosts that were given up, then those whose page budget is spent; the last word stays."""
        for lease, outcome in settled:
            if outcome.host is not None and outcome.host.give_up and lease.lane.host.row.name:
                self._close_lane(lease.lane, State.FAILED, outcome.host.give_up)
        for lease, outcome in settled:
            if _is_page(lease, outcome) and self._is_spent(lease.lane):
                self._close_lane(lease.lane, State.SKIPPED, "budget")

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

    def _take_effects(self, settled: Sequence[tuple[Lease, Outcome]]) -> None:
        """Task by task, in the order in which the call met them: links, items, counters, samples."""
        by_task: dict[Task, list[tuple[Record, Outcome]]] = {}
        for lease, outcome in settled:
            if lease.record is not None:
                by_task.setdefault(lease.lane.task, []).append((lease.record, outcome))
        for task, ended in by_task.items():
            for record, outcome in ended:
                self._push(task, outcome.links, record.link.url)
                self._log(task, outcome.items)
                task.counts.update(outcome.counts)
                self._keep_samples(task, outcome.samples)

    def _log(self, task: Task, items: Sequence[Item]) -> None:
        for item in items:
            self._last_item += 1
            task.items.append(LoggedItem(self._last_item, item.data, item.key))


def _is_page(lease: Lease, outcome: Outcome) -> bool:
    """Whether the outcome counts against page budgets: an answer that was not just the way to another one."""
    is_page = lease.record is not None and lease.record.kind is Kind.PAGE
    return is_page and outcome.verdict is Verdict.DONE and outcome.code != REDIRECTED

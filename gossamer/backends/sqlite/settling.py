"""The one transaction that ends attempts: verdicts, links, items, counters and host orders together, or nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from gossamer.backends.sqlite.items import append
from gossamer.backends.sqlite.leasing import lease, tick
from gossamer.backends.sqlite.ledger import SEED_HOST, Ledger, TaskRow, text
from gossamer.backends.sqlite.pushing import HostIds, end_closed, end_lane, push
from gossamer.backends.sqlite.sessions import is_alive
from gossamer.backends.sqlite.tasks import check_limits, complete
from gossamer.model.hostrow import obey
from gossamer.model.record import REDIRECTED, TERMINAL, Kind, Leases, Outcome, State, Verdict

TOKENS = """SELECT json_group_array(json_array(l.number, l.record, l.task, l.host, l.kind, l.session, r.priority)) FROM json_each(?) j
 JOIN lease l ON l.number = j.value LEFT JOIN record r ON r.id = l.record"""
ENDED = """UPDATE record SET state = j.value ->> 1, code = j.value ->> 2 FROM json_each(?) j WHERE record.id = j.value ->> 0"""
AGAIN = """UPDATE record SET priority = j.value ->> 1, due = j.value ->> 2, retries = retries + (j.value ->> 3),
 crashes = crashes + (j.value ->> 4), suspect = suspect OR (j.value ->> 4), request = coalesce(j.value ->> 5, request)
 FROM json_each(?) j WHERE record.id = j.value ->> 0"""
BACK = "INSERT INTO queue (task, host, sunk, id) SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)"
LATER = "INSERT INTO delayed (due, id, task, host) SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)"
KEPT = "INSERT OR REPLACE INTO body (task, record, key) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)"


class Token(msgspec.Struct, array_like=True, gc=False):
    """A lease as it was granted, with what settling must know of its record."""

    number: int
    record: int | None
    task: int
    host: int
    kind: Kind
    session: str
    priority: int | None


_tokens = msgspec.json.Decoder(list[Token])


class Settling:
    """One settle call, from tokens to sums."""

    def __init__(self, ledger: Ledger, ids: HostIds) -> None:
        self.ledger = ledger
        self.ids = ids
        self.ended: list[tuple[int, int, str]] = []
        self.bodies: list[tuple[int, int, str]] = []
        self.again: list[tuple[object, ...]] = []
        self.back: list[tuple[int, int, int, int]] = []
        self.later: list[tuple[float, int, int, int]] = []
        self.closing: list[tuple[TaskRow, int, State, str]] = []
        self.full: dict[tuple[int, int], int] = {}  # pages that this call adds to lanes with a page budget
        self.returned: set[tuple[int, int]] = set()  # (task, host) of what waits again
        self.tasks: dict[int, list[tuple[int | None, Outcome]]] = {}

    def run(self, session: str, outcomes: Sequence[Outcome], answer: Leases) -> None:
        ledger, db = self.ledger, self.ledger.db
        numbers = text([outcome.number for outcome in outcomes])
        tokens = {
            token.number: token for token in _tokens.decode(db.execute(TOKENS, (numbers,)).fetchone()[0])
        }
        held = {token.number: token for token in tokens.values() if token.session == session}
        if held:
            db.execute(
                "DELETE FROM lease WHERE number IN (SELECT value FROM json_each(?))", (text(list(held)),)
            )
        ledger.load_hosts({token.host for token in held.values()})
        for outcome in outcomes:
            if outcome.number in held:
                token = held.pop(outcome.number)
                del tokens[outcome.number]  # whoever names it again in this call is too late
                good = self.apply(outcome, token)
            else:
                self.count_stale(outcome, tokens.get(outcome.number))
                good = False
            if not good:
                answer.stale.append(outcome.number)
        self.write()

    def count_stale(self, outcome: Outcome, token: Token | None) -> None:
        """For the task whose lease it is; where there is no lease, for the task that the outcome names, if it is there."""
        if token is not None:
            self.ledger.counts[token.task]["stale"] += 1
            return
        named = self.ledger.find(outcome.task) if outcome.task else None
        if named is not None:
            self.ledger.counts[named.id]["stale"] += 1

    def apply(self, outcome: Outcome, token: Token) -> bool:
        """Free the slot and take the outcome; False where it comes too late because its task has ended."""
        ledger = self.ledger
        task = ledger.task(token.task)
        row = ledger.hosts[token.host]
        row.open -= 1
        ledger.touched.add(token.host)
        if token.kind is Kind.ROBOTS:
            row.robots_open = False
        else:
            ledger.lanes[token.host, token.task][1] -= 1
            task.leased -= 1
            task.leased_pages -= token.kind is Kind.PAGE
            ledger.changed_tasks.add(task.id)
        if task.is_over:
            ledger.counts[task.id]["stale"] += 1
            obey(row, None, outcome.sent_ago, ledger.now)  # it is too late, but the host was asked
            if token.record is not None:
                self.give_back(token, token.record, token.priority or 0)
            return False
        obey(row, outcome.host, outcome.sent_ago, ledger.now)
        if token.record is not None:
            self.decide(outcome, token, token.record, task)
            self.tasks.setdefault(task.id, []).append((token.record, outcome))
            task.items += len(outcome.items)
            task.logged += len(outcome.items)
            check_limits(ledger, task)  # what comes behind it in this call is too late
        if outcome.host is not None and outcome.host.give_up and row.name:
            self.closing.append((task, token.host, State.FAILED, outcome.host.give_up))
        return True

    def decide(self, outcome: Outcome, token: Token, record: int, task: TaskRow) -> None:
        """Where the record goes: to its end, back to its queue, or to a later hour."""
        counts = self.ledger.counts[task.id]
        if outcome.verdict in TERMINAL:
            self.ended.append((record, int(outcome.verdict), outcome.code))
            task.terminal += 1
            task.errors += outcome.verdict is Verdict.FAILED
            if outcome.body is not None:
                self.bodies.append((task.id, record, outcome.body))
            state = State(int(outcome.verdict)).name.lower()
            counts[state] += 1
            counts[f"{state}:{outcome.code or 'ok'}"] += 1
            if outcome.verdict is Verdict.DONE and token.kind is Kind.PAGE and outcome.code != REDIRECTED:
                self.count_page(token, task)
            return
        priority = token.priority or 0
        due = None
        if outcome.verdict is Verdict.RETRY:
            priority = priority if outcome.priority is None else outcome.priority
            due = round(self.ledger.now + outcome.delay, 6) if outcome.delay > 0 else None
            request = None if outcome.request is None else outcome.request.decode()
            self.again.append((record, priority, due, int(outcome.burned), int(outcome.crashed), request))
            task.lowest = min(task.lowest, priority)
            counts["retried"] += token.kind is not Kind.SEED
        if due is None:
            self.give_back(token, record, priority)
        else:
            self.later.append((due, record, task.id, token.host))
            self.returned.add((task.id, token.host))

    def give_back(self, token: Token, record: int, priority: int) -> None:
        self.back.append((token.task, token.host, -priority, record))
        self.ledger.lanes[token.host, token.task][0] += 1
        self.returned.add((token.task, token.host))

    def count_page(self, token: Token, task: TaskRow) -> None:
        task.pages += 1
        self.ledger.lanes[token.host, task.id][2] += 1
        if task.spec.wish.pages_per_host is not None:
            place = (task.id, token.host)
            self.full[place] = self.full.get(place, 0) + 1

    def write(self) -> None:
        db = self.ledger.db
        for sql, rows in ((ENDED, self.ended), (AGAIN, self.again), (BACK, self.back), (LATER, self.later),
                          (KEPT, self.bodies)):  # fmt: skip
            if rows:
                db.execute(sql, (text(rows),))
        end_closed(self.ledger, self.returned)
        self.close_full_lanes()
        for task, host, state, code in self.closing:
            end_lane(self.ledger, task, host, state, code)
        for task_id, settled in self.tasks.items():
            self.write_effects(self.ledger.task(task_id), settled)
        for task in list(self.ledger.tasks.values()):
            complete(self.ledger, task)

    def close_full_lanes(self) -> None:
        self.ledger.write_lanes()
        for task_id, host in self.full:
            task = self.ledger.task(task_id)
            sql = "SELECT pages FROM lane WHERE task = ? AND host = ?"
            pages = self.ledger.db.execute(sql, (task_id, host)).fetchone()[0]
            if host != SEED_HOST and pages >= (task.spec.wish.pages_per_host or 0):
                self.closing.append((task, host, State.SKIPPED, "budget"))

    def write_effects(self, task: TaskRow, settled: list[tuple[int | None, Outcome]]) -> None:
        ledger = self.ledger
        push(
            ledger, task, [(record, outcome.links) for record, outcome in settled if outcome.links], self.ids
        )
        items = [item for _, outcome in settled for item in outcome.items]
        if items:
            append(ledger, task, items)
        samples: list[tuple[int, str, str]] = []
        for _, outcome in settled:
            if outcome.counts:
                ledger.counts[task.id].update(outcome.counts)
            if outcome.samples:
                samples += [(task.id, name, example) for name, example in outcome.samples]
        ledger.keep_samples(samples)


def settle(
    ledger: Ledger,
    ids: HostIds,
    session: str,
    outcomes: Sequence[Outcome],
    want: Mapping[str, int],
    answer: Leases,
) -> None:
    """End the attempts, then lease what the freed slots may take."""
    tick(ledger)
    if outcomes:
        Settling(ledger, ids).run(session, outcomes, answer)
    ledger.refresh()
    if want and is_alive(ledger.db, session):
        lease(ledger, session, want, answer)

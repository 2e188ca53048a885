"""Grants: from the index of ready lanes to the heads of a few queues, never over all that is pending."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import takewhile

import msgspec

from gossamer.backends.sqlite.database import one
from gossamer.backends.sqlite.ledger import (
    HOST_OBJECT,
    LANE_COLUMNS,
    SEED_HOST,
    LaneRow,
    Ledger,
    TaskRow,
    text,
)
from gossamer.backends.sqlite.pushing import end_closed, end_lane
from gossamer.backends.sqlite.tasks import complete, retry_some
from gossamer.model.hostrow import (
    NO_LIMIT,
    Asking,
    free_slots,
    is_in_flight,
    knows_robots,
    ready_at,
    robots_url,
    view,
)
from gossamer.model.record import Grant, Kind, Leases, State
from gossamer.model.task import TaskState

TICK_DELAYED = 1_000
TICK_RETRIED = 500
LOOKED_AT = 32  # ready lanes that are looked into at once to say whether asking again is worth it

LANES = f"""SELECT json_group_array(json_array({LANE_COLUMNS})), json_group_array({HOST_OBJECT}) FROM (
 SELECT * FROM lane WHERE task = ? AND ready_at IS NOT NULL AND ready_at <= ? {{}} LIMIT ?) l JOIN host h ON h.id = l.host"""
READY = LANES.format("ORDER BY ready_at, host")
READY_SEEDS = LANES.format(f"AND host = {SEED_HOST}")
HEADS = """SELECT json_group_array(json_array(r.id, r.host, r.kind, r.url, r.priority, r.depth, r.hops, r.request, r.retries,
 r.crashes, json(iif(r.suspect, 'true', 'false')))) FROM ({}) w CROSS JOIN record r ON r.id = w.id"""
HEAD = "SELECT * FROM (SELECT id FROM queue WHERE task = ? AND host = ? ORDER BY sunk, id LIMIT ?)"
MOST_HOSTS = 128  # in one reading of heads: SQLite joins no more than 500 selects
UNQUEUE = """DELETE FROM queue WHERE task = ? AND (host, sunk, id) IN (
 SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"""


class Head(msgspec.Struct, array_like=True, gc=False):
    """A record at the front of its queue."""

    id: int
    host: int
    kind: Kind
    url: str
    priority: int
    depth: int
    hops: int
    request: str | None
    retries: int
    crashes: int
    suspect: bool


_lanes = msgspec.json.Decoder(list[LaneRow])
_heads = msgspec.json.Decoder(list[Head])


@lru_cache
def heads_of(size: int) -> str:
    return HEADS.format(" UNION ALL ".join([HEAD] * size))


def tick(ledger: Ledger) -> None:
    """What time alone brings about: delayed records fall due, retry-failed goes on in bounded steps."""
    db = ledger.db
    sql = "SELECT json_group_array(json_array(due, id, task, host)) FROM (SELECT * FROM delayed WHERE due <= ? LIMIT ?)"
    due = msgspec.json.decode(db.execute(sql, (ledger.now, TICK_DELAYED)).fetchone()[0])
    if due:
        ids = text([row[1] for row in due])
        db.execute(
            """INSERT INTO queue (task, host, sunk, id) SELECT r.task, r.host, -r.priority, r.id
               FROM json_each(?) j JOIN record r ON r.id = j.value""",
            (ids,),
        )
        db.execute("UPDATE record SET due = NULL WHERE id IN (SELECT value FROM json_each(?))", (ids,))
        db.execute(
            "DELETE FROM delayed WHERE (due, id) IN (SELECT d.due, d.id FROM delayed d WHERE d.due <= ? ORDER BY d.due, d.id LIMIT ?)",
            (ledger.now, TICK_DELAYED),
        )
        for _, _, task, host in due:
            ledger.lanes[host, task][0] += 1
            ledger.fed.add(host)
        ledger.write_lanes()
        end_closed(ledger, {(task, host) for _, _, task, host in due})
    if one(db, "SELECT 1 FROM task WHERE retrying IS NOT NULL LIMIT 1"):
        for task in ledger.all_tasks("WHERE retrying IS NOT NULL"):
            retry_some(ledger, task, TICK_RETRIED)


def lease(ledger: Ledger, session: str, want: Mapping[str, int], answer: Leases) -> None:
    """Grant what is polite now into `answer`, task by task."""
    served: list[Granting] = []
    for name, wanted in want.items():
        task = ledger.named(name)
        if task.state is not TaskState.RUNNING:
            answer.ended[name] = task.state.value
            continue
        if task.log_is_full:
            continue
        granting = Granting(ledger, session, task, wanted)
        if wanted > 0:
            granting.run(answer)
        served.append(granting)
    waits = [wait for granting in served if (wait := granting.wait()) is not None]
    answer.wait = min(waits) if waits else None


class Granting:
    """One task's share of one lease call."""

    def __init__(self, ledger: Ledger, session: str, task: TaskRow, wanted: int) -> None:
        self.ledger = ledger
        self.session = session
        self.task = task
        self.wish = task.spec.wish
        self.left = wanted
        self.pages = self._pages_left()
        self.picks: list[tuple[int, int]] = []  # (host, how many)
        self.robots: list[int] = []

    def run(self, answer: Leases) -> None:
        """From at most as many lanes as are wanted, robots first; their hosts move behind those that waited longer."""
        for lane, asking in self._ready(self.left):
            if self.left <= 0:
                break
            self._choose(lane, asking)
        self._grant_robots(answer)
        granted = set(self.robots) | self._grant_pages(answer)
        for host in granted:
            row = self.ledger.hosts[host]
            answer.hosts[row.name] = view(row, self.ledger.now)
        if granted or self.ledger.touched:
            self.ledger.touched |= granted
            self.ledger.refresh(granted)
        complete(self.ledger, self.task)

    def wait(self) -> float | None:
        """Seconds until the task may be granted something more; None when nothing is in sight."""
        db, now = self.ledger.db, self.ledger.now
        self.pages = self._pages_left()
        if self._is_more_ready():
            return 0.0
        ready = None
        if self.pages > 0:  # else pages must end first, however soon a host is ready
            sql = "SELECT min(ready_at) FROM lane WHERE task = ? AND ready_at > ?"
            ready = one(db, sql, self.task.id, now)
        due = one(db, "SELECT due FROM delayed WHERE task = ? ORDER BY due, id LIMIT 1", self.task.id)
        times = [max(0.0, at - now) for at in (ready, due) if at is not None]
        return min(times) if times else None

    def _is_more_ready(self) -> bool:
        """Whether a lane was left only because the caller wanted no more. Those before it get their hours anew."""
        most = 1  # nearly always the first one answers
        while lanes := self._ready(most):
            late = [lane.host for lane, asking in takewhile(lambda each: not self._is_expected(*each), lanes)]
            if late:
                self.ledger.touched.update(late)
                self.ledger.refresh()
            if len(late) < len(lanes):
                return True
            most = LOOKED_AT
        return False

    # What a lane may have

    def _pages_left(self) -> float:
        task = self.task
        return (
            NO_LIMIT if task.spec.max_pages is None else task.spec.max_pages - task.pages - task.leased_pages
        )

    def _ready(self, most: int) -> list[tuple[LaneRow, Asking]]:
        """The lanes that are ready, longest first, each with what is asked of its host; without pages left, the seeds' alone."""
        ledger = self.ledger
        sql = READY if self.pages > 0 else READY_SEEDS
        found = ledger.db.execute(sql, (self.task.id, ledger.now, most)).fetchone()
        lanes = _lanes.decode(found[0])
        if not lanes:
            return []
        ledger.keep_hosts(found[1])
        everyone: dict[int, list[LaneRow]] = {}
        for row in ledger.lanes_of([lane.host for lane in lanes]):
            everyone.setdefault(row.host, []).append(row)
        return [(lane, ledger.asking(everyone[lane.host])) for lane in lanes]

    def _choose(self, lane: LaneRow, asking: Asking) -> None:
        """Decide how much of this lane is granted: its robots first, then as many records as there is room for."""
        if self._is_spent(lane):
            # Its budget was cut by an update, or its closure lifted by retry-failed: nothing else would close it.
            end_lane(self.ledger, self.task, lane.host, State.SKIPPED, "budget")
        elif not self._is_still_ready(lane, asking):
            self.ledger.touched.add(lane.host)  # a task was resumed or updated since: its hour is set anew
        elif not self._lacks_robots(lane):
            count = min(self._room(lane, asking), self.left, lane.pending)
            if count > 0:
                self.picks.append((lane.host, count))
                self.left -= count
                self.pages -= count if lane.host != SEED_HOST else 0
        else:
            self.robots.append(lane.host)
            self.left -= 1

    def _is_spent(self, lane: LaneRow) -> bool:
        budget = self.wish.pages_per_host
        return lane.host != SEED_HOST and budget is not None and lane.pages >= budget

    def _is_still_ready(self, lane: LaneRow, asking: Asking) -> bool:
        row = self.ledger.hosts[lane.host]
        if lane.host != SEED_HOST and is_in_flight(self.wish, lane.pages, lane.open):
            return False
        ready = ready_at(row, self.wish, asking, lane.ready_at, granted=False, now=self.ledger.now)
        return ready is not None and ready <= self.ledger.now

    def _lacks_robots(self, lane: LaneRow) -> bool:
        return self.wish.robots and not knows_robots(self.ledger.hosts[lane.host], self.ledger.now)

    def _room(self, lane: LaneRow, asking: Asking) -> int:
        """How many records may be leased from here: slots of the host, budget at the host, budget of the task."""
        room = free_slots(self.ledger.hosts[lane.host], asking)
        if lane.host == SEED_HOST:
            return room
        budget = self.wish.pages_per_host
        here = NO_LIMIT if budget is None else budget - lane.pages - lane.open
        return int(max(min(room, here, self.pages), 0))

    def _is_expected(self, lane: LaneRow, asking: Asking) -> bool:
        """Whether asking again would close this ready lane, or grant something of it."""
        return self._is_spent(lane) or self._is_still_ready(lane, asking)

    # The grants themselves

    def _grant_robots(self, answer: Leases) -> None:
        if not self.robots:
            return
        number = self._insert([(None, host, Kind.ROBOTS) for host in self.robots])
        for at, host in enumerate(self.robots):
            row = self.ledger.hosts[host]
            row.robots_open = True
            row.open += 1
            answer.grants.append(
                Grant(
                    number + at,
                    self.task.name,
                    Kind.ROBOTS,
                    robots_url(row),
                    row.name,
                    0,
                    0,
                    0,
                    b"",
                    0,
                    0,
                    suspect=False,
                )
            )

    def _grant_pages(self, answer: Leases) -> set[int]:
        """Grant what was picked; the hosts it is of."""
        ledger, task = self.ledger, self.task
        heads = [
            head
            for at in range(0, len(self.picks), MOST_HOSTS)
            for head in self._heads(self.picks[at : at + MOST_HOSTS])
        ]
        if not heads:
            return set()
        ledger.db.execute(UNQUEUE, (task.id, text([(head.host, -head.priority, head.id) for head in heads])))
        number = self._insert([(head.id, head.host, head.kind) for head in heads])
        for at, head in enumerate(heads):
            lane = ledger.lanes[head.host, task.id]
            lane[0] -= 1
            lane[1] += 1
            row = ledger.hosts[head.host]
            row.open += 1
            task.leased += 1
            task.leased_pages += head.kind is Kind.PAGE
            answer.grants.append(
                Grant(
                    number + at, task.name, head.kind, head.url, row.name, head.priority, head.depth, head.hops,
                    head.request.encode() if head.request else b"", head.retries, head.crashes, head.suspect,
                )
            )  # fmt: skip
        ledger.changed_tasks.add(task.id)
        return {head.host for head in heads}

    def _heads(self, picks: list[tuple[int, int]]) -> list[Head]:
        """The fronts of these queues by one statement; its size is rounded up, so that few statements are ever prepared."""
        size = 1 << (len(picks) - 1).bit_length()
        args: list[int] = []
        for host, count in picks + [(-1, 0)] * (size - len(picks)):
            args += (self.task.id, host, count)
        return _heads.decode(self.ledger.db.execute(heads_of(size), args).fetchone()[0])

    def _insert(self, rows: list[tuple[int | None, int, Kind]]) -> int:
        """Write leases for (record, host, kind); the number of the first."""
        sql = """INSERT INTO lease (session, record, task, host, kind)
                 SELECT ?, value ->> 0, ?, value ->> 1, value ->> 2 FROM json_each(?)"""
        self.ledger.db.execute(sql, (self.session, self.task.id, text(rows)))
        return (
            int(one(self.ledger.db, "SELECT seq FROM sqlite_sequence WHERE name = 'lease'")) - len(rows) + 1
        )

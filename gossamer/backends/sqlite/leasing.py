"""Grants: from the index of ready lanes to the heads of a few queues, never over all that is pending."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

from gossamer.backends.sqlite.database import one
from gossamer.backends.sqlite.ledger import HOST_OBJECT, LANE_COLUMNS, LaneRow, Ledger, TaskRow, text
from gossamer.model.hostrow import free_slots, knows_robots, robots_url, view
from gossamer.model.record import Grant, Kind, Leases
from gossamer.model.task import TaskState

TICK_DELAYED = 1_000
TICK_RETRIED = 500

READY = f"""SELECT json_group_array(json_array({LANE_COLUMNS})), json_group_array({HOST_OBJECT}) FROM (
 SELECT * FROM lane WHERE task = ? AND ready_at IS NOT NULL AND ready_at <= ? ORDER BY ready_at, host LIMIT ?) l
 JOIN host h ON h.id = l.host"""
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
    from gossamer.backends.sqlite.tasks import retry_some

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
    if one(db, "SELECT 1 FROM task WHERE retrying LIMIT 1"):
        for task in ledger.all_tasks("WHERE retrying"):
            retry_some(ledger, task, TICK_RETRIED)


def lease(ledger: Ledger, session: str, want: Mapping[str, int], answer: Leases) -> None:
    """Grant what is polite now into `answer`, task by task."""
    waits: list[float] = []
    for name, wanted in want.items():
        task = ledger.named(name)
        if task.state is not TaskState.RUNNING:
            answer.ended[name] = task.state.value
            continue
        short = False
        if wanted > 0:
            short = Granting(ledger, session, task, wanted).run(answer)
        wait = next_ready(ledger, task, short=short)
        if wait is not None:
            waits.append(wait)
    answer.wait = min(waits) if waits else None


def next_ready(ledger: Ledger, task: TaskRow, *, short: bool) -> float | None:
    """Seconds until this task may be granted something more; None when nothing is in sight."""
    db = ledger.db
    ready = one(db, "SELECT min(ready_at) FROM lane WHERE task = ? AND ready_at IS NOT NULL", task.id)
    if ready is not None and ready <= ledger.now:
        if not short:
            return 0.0
        ready = one(db, "SELECT min(ready_at) FROM lane WHERE task = ? AND ready_at > ?", task.id, ledger.now)
    due = one(db, "SELECT due FROM delayed WHERE task = ? ORDER BY due, id LIMIT 1", task.id)
    times = [at - ledger.now for at in (ready, due) if at is not None]
    return max(0.0, min(times)) if times else None


class Granting:
    """One task's share of one lease call."""

    def __init__(self, ledger: Ledger, session: str, task: TaskRow, wanted: int) -> None:
        self.ledger = ledger
        self.session = session
        self.task = task
        self.left = wanted
        self.pages: float = float("inf")
        if task.spec.max_pages is not None:
            self.pages = task.spec.max_pages - task.pages - task.leased_pages
        self.picks: list[tuple[int, int]] = []  # (host, how many)
        self.robots: list[int] = []
        self.short = False  # lanes were ready, but a page budget forbade more

    def run(self, answer: Leases) -> bool:
        """Fill `answer`; True when the page budget, not the lack of free slots, left ready lanes ungranted."""
        found = self.ledger.db.execute(READY, (self.task.id, self.ledger.now, self.left)).fetchone()
        lanes = _lanes.decode(found[0])
        if not lanes:
            return False
        self.ledger.keep_hosts(found[1])
        everyone: dict[int, list[LaneRow]] = {}
        for row in self.ledger.lanes_of([lane.host for lane in lanes]):
            everyone.setdefault(row.host, []).append(row)
        for lane in lanes:
            if self.left <= 0:
                break
            self.choose(lane, everyone[lane.host])
        self.grant_robots(answer)
        self.grant_pages(answer)
        granted = {host for host, _ in self.picks} | set(self.robots)
        for host in granted:
            granted_from = self.ledger.hosts[host]
            answer.hosts[granted_from.name] = view(granted_from, self.ledger.now)
        self.ledger.touched |= granted
        self.ledger.refresh(granted)
        return self.short

    def choose(self, lane: LaneRow, lanes: list[LaneRow]) -> None:
        """Decide how much of this lane is granted: its robots first, then as many records as there are slots."""
        wish = self.task.spec.wish
        row = self.ledger.hosts[lane.host]
        free = free_slots(row, self.ledger.asking(lanes))
        if wish.robots and not knows_robots(row, self.ledger.now):
            if not row.robots_open and free > 0:
                self.robots.append(lane.host)
                self.left -= 1
            return
        if wish.pages_per_host is not None:
            free = min(free, wish.pages_per_host - lane.pages - lane.open)
        if self.pages <= 0:
            self.short = True
        count = int(min(free, self.left, self.pages, lane.pending))
        if count > 0:
            self.picks.append((lane.host, count))
            self.left -= count
            self.pages -= count

    def grant_robots(self, answer: Leases) -> None:
        for host in self.robots:
            row = self.ledger.hosts[host]
            row.robots_open = True
            row.open += 1
            number = self.insert([(None, host, Kind.ROBOTS)])
            answer.grants.append(
                Grant(
                    number,
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

    def grant_pages(self, answer: Leases) -> None:
        if not self.picks:
            return
        ledger, task = self.ledger, self.task
        heads = [head for at in range(0, len(self.picks), MOST_HOSTS) for head in self.heads(self.picks[at : at + MOST_HOSTS])]
        if not heads:
            return
        ledger.db.execute(UNQUEUE, (task.id, text([(head.host, -head.priority, head.id) for head in heads])))
        number = self.insert([(head.id, head.host, head.kind) for head in heads])
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

    def heads(self, picks: list[tuple[int, int]]) -> list[Head]:
        """The fronts of these queues by one statement; its size is rounded up, so that few statements are ever prepared."""
        size = 1 << (len(picks) - 1).bit_length()
        args: list[int] = []
        for host, count in picks + [(-1, 0)] * (size - len(picks)):
            args += (self.task.id, host, count)
        return _heads.decode(self.ledger.db.execute(heads_of(size), args).fetchone()[0])

    def insert(self, rows: list[tuple[int | None, int, Kind]]) -> int:
        """Write leases for (record, host, kind); the number of the first."""
        sql = """INSERT INTO lease (session, record, task, host, kind)
                 SELECT ?, value ->> 0, ?, value ->> 1, value ->> 2 FROM json_each(?)"""
        last = self.ledger.db.execute(sql, (self.session, self.task.id, text(rows))).lastrowid
        # INSERT … SELECT leaves lastrowid unset in some versions: ask the sequence then.
        last = one(self.ledger.db, "SELECT seq FROM sqlite_sequence WHERE name = 'lease'") or last or 0
        return int(last) - len(rows) + 1

"""What one transaction knows and changes: the rows it loaded, the sums it owes, written back together at its end.

Lanes and counters change by sums only, so a row need not be read to be changed; hosts and tasks are read whole, changed by the
rules in `model` and written whole.
"""

from __future__ import annotations

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from functools import lru_cache

import msgspec

from gossamer.model.hostrow import Asking, HostRow, is_in_flight, ready_at
from gossamer.model.task import ENDED, TaskSpec, TaskState, TaskView, UnknownTask
from gossamer.ports.frontier import KEPT_SAMPLES

SEED_HOST = 1  # the row of the pseudo host of seeds, without slots or pace


class TaskRow(msgspec.Struct, array_like=True):
    """A row of `task`."""

    id: int
    name: str
    spec_text: str
    state: TaskState
    reason: str
    seeding: bool
    retrying: int | None
    closures: int
    opened: float
    ended: float | None
    discovered: int
    terminal: int
    leased: int
    leased_pages: int
    pages: int
    items: int
    lowest: int  # no record has a lower priority: what is found again at this one or below cannot rise
    logged: int  # items in the log
    errors: int  # records that FAILED since it was opened or last retried

    @property
    def spec(self) -> TaskSpec:
        return read_spec(self.spec_text)

    @property
    def is_over(self) -> bool:
        return self.state in ENDED

    @property
    def log_is_full(self) -> bool:
        return self.spec.log_limit is not None and self.logged >= self.spec.log_limit

    def view(self, now: float) -> TaskView:
        open_records = self.discovered - self.terminal
        leased = 0 if self.is_over else self.leased
        return TaskView(
            spec=self.spec,
            state=self.state,
            reason=self.reason,
            seeding=self.seeding,
            opened_ago=now - self.opened,
            ended_ago=None if self.ended is None else now - self.ended,
            discovered=self.discovered,
            pending=0 if self.is_over else open_records - leased,
            leased=leased,
            terminal=self.terminal,
        )


class LaneRow(msgspec.Struct, array_like=True):
    """A row of `lane`: one task on one host."""

    host: int
    task: int
    pending: int
    open: int
    pages: int
    ready_at: float | None
    first_delay: float
    closed: bool


TASK_COLUMNS = """id, name, spec, state, reason, json(iif(seeding, 'true', 'false')), retrying,
 closures, opened, ended, discovered, terminal, leased, leased_pages, pages, items, lowest, logged, errors"""
HOST_OBJECT = """json_object('id', h.id, 'name', h.name, 'scheme', h.scheme, 'open', h.open, 'next_turn', h.next_turn, 'last_sent', h.last_sent,
 'parked_until', h.parked_until, 'level', h.level, 'trouble', h.trouble, 'bad_since', h.bad_since, 'delay', h.delay,
 'latency', h.latency, 'crawl_delay', h.crawl_delay, 'robots_version', h.robots_version, 'robots_until', h.robots_until,
 'robots_open', json(iif(h.robots_open, 'true', 'false')))"""
LANE_COLUMNS = """l.host, l.task, l.pending, l.open, l.pages, l.ready_at, l.first_delay,
 json(iif(l.closed_state IS NULL, 'false', 'true'))"""

_encode = msgspec.json.encode
_tasks = msgspec.json.Decoder(list[TaskRow])
_hosts = msgspec.json.Decoder(list[HostRow])
_lanes = msgspec.json.Decoder(list[LaneRow])


def text(value: object) -> str:
    """JSON as SQLite takes it."""
    return _encode(value).decode()


@lru_cache(256)
def read_spec(stored: str) -> TaskSpec:
    return msgspec.json.decode(stored, type=TaskSpec)


class Ledger:
    """The state of one transaction."""

    def __init__(self, db: sqlite3.Connection, now: float) -> None:
        self.db = db
        self.now = now
        self.tasks: dict[int, TaskRow] = {}
        self.hosts: dict[int, HostRow] = {}
        self.lanes: dict[tuple[int, int], list[int]] = defaultdict(
            lambda: [0, 0, 0]
        )  # sums: pending, open, pages
        self.counts: dict[int, Counter[str]] = defaultdict(Counter)
        self.touched: set[int] = set()  # hosts with a slot, turn or closure changed
        self.fed: set[int] = set()  # hosts that only got new records
        self.changed_tasks: set[int] = set()
        self.given_up: list[
            tuple[int, int, str, str]
        ] = []  # (record, task, code, URL) that ended with its host

    # Tasks

    def named(self, name: str) -> TaskRow:
        """The task of that name; UnknownTask where there is none."""
        found = self.find(name)
        if found is None:
            raise UnknownTask(f"There is no task named {name!r}", hint="`gossamer tasks` lists them")
        return found

    def find(self, name: str) -> TaskRow | None:
        for row in self.tasks.values():
            if row.name == name:
                return row
        return next(iter(self._load_tasks("WHERE name = ?", name)), None)

    def task(self, task_id: int) -> TaskRow:
        if task_id not in self.tasks:
            self._load_tasks("WHERE id = ?", task_id)
        return self.tasks[task_id]

    def all_tasks(self, where: str = "") -> list[TaskRow]:
        return self._load_tasks(where)

    def _load_tasks(self, where: str, *args: object) -> list[TaskRow]:
        sql = f"SELECT json_group_array(json_array({TASK_COLUMNS})) FROM (SELECT * FROM task {where} ORDER BY id)"
        rows = _tasks.decode(self.db.execute(sql, args).fetchone()[0])
        return [self.tasks.setdefault(row.id, row) for row in rows]

    # Hosts and lanes

    def load_hosts(self, ids: Iterable[int]) -> None:
        wanted = [one for one in ids if one not in self.hosts]
        if wanted:
            sql = f"SELECT json_group_array({HOST_OBJECT}) FROM json_each(?) j JOIN host h ON h.id = j.value"
            self.keep_hosts(self.db.execute(sql, (text(wanted),)).fetchone()[0])

    def keep_hosts(self, rows: str) -> None:
        """Rows just read; one that this transaction holds already stays as it was changed."""
        for row in _hosts.decode(rows):
            self.hosts.setdefault(row.id, row)

    def lanes_of(self, hosts: Iterable[int]) -> list[LaneRow]:
        sql = f"SELECT json_group_array(json_array({LANE_COLUMNS})) FROM json_each(?) j JOIN lane l ON l.host = j.value"
        return _lanes.decode(self.db.execute(sql, (text(list(hosts)),)).fetchone()[0])

    def asking(self, lanes: Iterable[LaneRow]) -> Asking:
        """What the running tasks that have something due or open at a host ask of it."""
        return [
            (self.task(lane.task).spec.wish, lane.first_delay)
            for lane in lanes
            if (lane.pending > 0 or lane.open > 0) and self.task(lane.task).state is TaskState.RUNNING
        ]

    def refresh(self, granted: AbstractSet[int] = frozenset()) -> None:
        """Say of each lane whose host was touched when it may be leased from next."""
        self.write_lanes()
        candidates = self.touched | (self.fed - self.touched)
        if self.fed - self.touched:
            sql = """SELECT json_group_array(DISTINCT l.host) FROM json_each(?) j JOIN lane l ON l.host = j.value
                     WHERE l.ready_at IS NULL AND l.pending > 0 AND l.closed_state IS NULL"""
            sleeping = self.db.execute(sql, (text(list(self.fed - self.touched)),)).fetchone()[0]
            candidates = self.touched | set(msgspec.json.decode(sleeping, type=list[int]))
        if candidates:
            self.load_hosts(candidates)
            changed = self._ready_times(self.lanes_of(candidates), granted)
            if changed:
                sql = """UPDATE lane SET ready_at = j.value ->> 2 FROM json_each(?) j
                         WHERE lane.host = j.value ->> 0 AND lane.task = j.value ->> 1"""
                self.db.execute(sql, (text(changed),))
        self.touched.clear()
        self.fed.clear()

    def _ready_times(
        self, rows: list[LaneRow], granted: AbstractSet[int]
    ) -> list[tuple[int, int, float | None]]:
        by_host: dict[int, list[LaneRow]] = defaultdict(list)
        for row in rows:
            by_host[row.host].append(row)
        changed: list[tuple[int, int, float | None]] = []
        for host, lanes in by_host.items():
            asking = self.asking(lanes)
            for lane in lanes:
                ready = None
                wish = self.task(lane.task).spec.wish
                waits = host != SEED_HOST and is_in_flight(wish, lane.pages, lane.open)
                if lane.pending > 0 and not lane.closed and not waits:
                    ready = ready_at(
                        self.hosts[host], wish, asking, lane.ready_at, granted=host in granted, now=self.now
                    )
                if ready != lane.ready_at:
                    changed.append((lane.host, lane.task, ready))
        return changed

    # Writing back

    def write_lanes(self) -> None:
        if self.lanes:
            rows = [(host, task, *sums) for (host, task), sums in self.lanes.items() if any(sums)]
            sql = """UPDATE lane SET pending = pending + (j.value ->> 2), open = open + (j.value ->> 3),
                       pages = pages + (j.value ->> 4)
                     FROM json_each(?) j WHERE lane.host = j.value ->> 0 AND lane.task = j.value ->> 1"""
            self.db.execute(sql, (text(rows),))
            self.lanes.clear()

    def write(self) -> None:
        """Everything that is still owed."""
        self.write_lanes()
        self._write_hosts()
        self._write_counts()
        if self.given_up:
            # The first discovered are the examples: which closure came first within a call is nobody's business.
            self.keep_samples((task, f"failed:{code}", url) for _, task, code, url in sorted(self.given_up))
            self.given_up.clear()
        for task_id in self.changed_tasks:
            row = self.tasks[task_id]
            self.db.execute(
                """UPDATE task SET spec = ?, state = ?, reason = ?, seeding = ?, retrying = ?, closures = ?, ended = ?,
                     discovered = ?, terminal = ?, leased = ?, leased_pages = ?, pages = ?, items = ?, lowest = ?,
                     logged = ?, errors = ? WHERE id = ?""",
                (row.spec_text, row.state.value, row.reason, row.seeding, row.retrying, row.closures, row.ended,
                 row.discovered, row.terminal, row.leased, row.leased_pages, row.pages, row.items, row.lowest, row.logged,
                 row.errors, row.id),
            )  # fmt: skip
        self.changed_tasks.clear()

    def keep_samples(self, samples: Iterable[tuple[int, str, str]]) -> None:
        """The first few examples of each counter of a task stay: (task, counter, example)."""
        for task, name, example in samples:
            sql = """INSERT INTO sample (task, name, place, example)
                     SELECT ?1, ?2, count(*), ?3 FROM sample WHERE task = ?1 AND name = ?2 HAVING count(*) < ?4"""
            self.db.execute(sql, (task, name, example, KEPT_SAMPLES))

    def _write_hosts(self) -> None:
        for host, row in self.hosts.items():
            if row.robots is not None:
                self.db.execute("UPDATE host SET robots = ? WHERE id = ?", (row.robots, host))
        rows = [
            (host, row.open, row.next_turn, row.parked_until, row.level, row.trouble, row.bad_since, row.delay,
             row.latency, row.crawl_delay, row.robots_version, row.robots_until, int(row.robots_open), row.last_sent)
            for host, row in self.hosts.items()
        ]  # fmt: skip
        if rows:
            sql = """UPDATE host SET open = j.value ->> 1, next_turn = j.value ->> 2, parked_until = j.value ->> 3,
                       level = j.value ->> 4, trouble = j.value ->> 5, bad_since = j.value ->> 6, delay = j.value ->> 7,
                       latency = j.value ->> 8, crawl_delay = j.value ->> 9, robots_version = j.value ->> 10,
                       robots_until = j.value ->> 11, robots_open = j.value ->> 12, last_sent = j.value ->> 13
                     FROM json_each(?) j WHERE host.id = j.value ->> 0"""
            self.db.execute(sql, (text(rows),))

    def _write_counts(self) -> None:
        rows = [(task, name, n) for task, names in self.counts.items() for name, n in names.items() if n]
        if rows:
            sql = """INSERT INTO counter (task, name, value) SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)
                     WHERE true ON CONFLICT DO UPDATE SET value = counter.value + excluded.value"""
            self.db.execute(sql, (text(rows),))
            self.counts.clear()

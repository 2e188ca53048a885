"""What people ask: sums, examples, the life of one URL, the rows of hosts. All on readings that wait for no writer."""

from __future__ import annotations

import sqlite3
import struct
from collections import Counter
from collections.abc import Sequence

import msgspec

from gossamer.backends.sqlite.ledger import HOST_OBJECT, SEED_HOST, Ledger, text
from gossamer.model.host import HostView
from gossamer.model.hostrow import HostRow, view
from gossamer.model.record import State
from gossamer.ports.frontier import Explained, SessionView

FOUND = """SELECT r.id, r.url, r.state, r.code, r.depth, r.priority, r.retries, r.crashes, r.suspect, r.due, r.host,
 coalesce(p.url, ''), EXISTS (SELECT 1 FROM lease WHERE lease.record = r.id),
 (SELECT key FROM body WHERE body.task = r.task AND body.record = r.id)
 FROM known k JOIN record r ON r.id = k.id LEFT JOIN record p ON p.id = r.parent
 WHERE k.task = ? AND k.bucket IN (0, ?) AND k.k1 = ? AND k.k2 = ?"""


def counters(ledger: Ledger, name: str) -> dict[str, int]:
    task = ledger.named(name)
    view = task.view(ledger.now)
    sums = {"done": 0, "failed": 0, "skipped": 0, "retried": 0, "stale": 0, "bytes": 0}
    rows = ledger.db.execute(
        "SELECT name, value FROM counter WHERE task = ? AND value != 0", (task.id,)
    ).fetchall()
    return (
        sums
        | dict(rows)
        | {
            "discovered": view.discovered,
            "pending": view.pending,
            "leased": view.leased,
            "cancelled": view.discovered - view.terminal if task.is_over else 0,
            "pages": task.pages,
            "items": task.items,
        }
    )


def samples(ledger: Ledger, name: str) -> dict[str, list[str]]:
    task = ledger.named(name)
    found: dict[str, list[str]] = {}
    sql = "SELECT name, example FROM sample WHERE task = ? ORDER BY name, place"
    for counter, example in ledger.db.execute(sql, (task.id,)).fetchall():
        found.setdefault(counter, []).append(example)
    return found


def explain(ledger: Ledger, name: str, key: bytes, host: str) -> Explained | None:
    task = ledger.named(name)
    row = ledger.db.execute("SELECT id FROM host WHERE name = ?", (host,)).fetchone()
    k1, k2 = struct.unpack("<2q", key)
    found = ledger.db.execute(FOUND, (task.id, row[0] if row else SEED_HOST, k1, k2)).fetchone()
    if found is None:
        return None
    _, url, state, code, depth, priority, retries, crashes, suspect, due, host_id, parent, leased, body = (
        found
    )
    state = State(state)
    if state is State.PENDING and task.is_over:
        state, code = State.CANCELLED, task.reason
    elif state is State.PENDING and leased:
        state = State.LEASED
    ledger.load_hosts([host_id])
    return Explained(
        url=url,
        state=state,
        code=code or "",
        depth=depth,
        priority=priority,
        retries=retries,
        crashes=crashes,
        suspect=bool(suspect),
        found_on=parent,
        body=body,
        due_in=max(0.0, due - ledger.now) if due is not None and state is State.PENDING else 0.0,
        host=view(ledger.hosts[host_id], ledger.now),
    )


def hosts(db: sqlite3.Connection, names: Sequence[str], now: float) -> dict[str, HostView]:
    sql = f"SELECT {HOST_OBJECT}, h.robots FROM json_each(?) j JOIN host h ON h.name = j.value"
    found = {}
    for row, robots in db.execute(sql, (text(list(names)),)).fetchall():
        host = msgspec.json.decode(row, type=HostRow)
        host.robots = bytes(robots or b"")
        found[host.name] = view(host, now, robots=True)
    return found


def sessions(db: sqlite3.Connection, now: float) -> list[SessionView]:
    sql = """SELECT l.session, t.name, h.name, count(*) FROM lease l JOIN task t ON t.id = l.task JOIN host h ON h.id = l.host
             GROUP BY l.session, l.task, l.host"""
    held: dict[str, list[tuple[str, str, int]]] = {}
    for session, task, host, count in db.execute(sql).fetchall():
        held.setdefault(session, []).append((task, host, count))
    sql = "SELECT name, worker, beat FROM session ORDER BY worker, name"
    found = []
    for name, worker, beat in db.execute(sql).fetchall():
        tasks, hosts_ = Counter[str](), Counter[str]()
        for task, host, count in held.get(name, ()):
            tasks[task] += count
            hosts_[host] += count
        found.append(
            SessionView(
                session=name, worker=worker, beat_ago=max(now - beat, 0.0), leases=tasks, hosts=hosts_
            )
        )
    return found

"""Sessions: one row and one locked file each. A process that dies lets go of its lock, and is known to be dead at once."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from gossamer.backends.sqlite.database import one
from gossamer.backends.sqlite.ledger import Ledger, text
from gossamer.model.hostrow import effective_delay
from gossamer.model.record import Kind
from gossamer.ports.frontier import SESSION_TTL

HELD = (
    """SELECT json_group_array(json_array(number, record, task, host, kind)) FROM lease WHERE session = ?"""
)
RETURN = """INSERT INTO queue (task, host, sunk, id) SELECT r.task, r.host, -r.priority, r.id
 FROM json_each(?) j JOIN record r ON r.id = j.value"""


def is_alive(db: sqlite3.Connection, session: str) -> bool:
    return one(db, "SELECT 1 FROM session WHERE name = ?", session) is not None


class SessionLocks:
    """The lock files of a state folder: held by the living, free when their process is gone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: dict[str, int] = {}

    def take(self, session: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(self._folder / session, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        fcntl.flock(handle, fcntl.LOCK_EX)
        self._held[session] = handle

    def drop(self, session: str) -> None:
        handle = self._held.pop(session, None)
        if handle is not None:
            os.close(handle)
        with contextlib.suppress(
            OSError
        ):  # it may be gone already, and an empty file left behind does no harm
            (self._folder / session).unlink()

    def is_orphaned(self, session: str) -> bool:
        """True when the process that opened the session is certainly gone."""
        if session in self._held:
            return False
        try:
            handle = os.open(self._folder / session, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return True
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(handle)
        return True

    def close(self) -> None:
        for session in list(self._held):
            self.drop(session)


def open_session(ledger: Ledger, worker: str) -> str:
    session = secrets.token_hex(16)
    ledger.db.execute(
        "INSERT INTO session (name, worker, beat) VALUES (?, ?, ?)", (session, worker, ledger.now)
    )
    return session


def beat(ledger: Ledger, session: str) -> bool:
    return ledger.db.execute("UPDATE session SET beat = ? WHERE name = ?", (ledger.now, session)).rowcount > 0


def grace(ledger: Ledger, last_seen: float) -> None:
    """After a time in which nobody could reach the store, nobody is dead for not having reached it."""
    if ledger.now - last_seen > SESSION_TTL:
        ledger.db.execute("UPDATE session SET beat = ?", (ledger.now,))


def give_back(ledger: Ledger, session: str, numbers: Sequence[int] | None, *, lost: bool) -> int:
    """Return leases to their queues. `lost`: nobody knows how far they got, so they are suspects and the host's turn passes."""
    db = ledger.db
    held = msgspec.json.decode(db.execute(HELD, (session,)).fetchone()[0])
    chosen = held if numbers is None else [row for row in held if row[0] in set(numbers)]
    if not chosen:
        return 0
    db.execute(
        "DELETE FROM lease WHERE number IN (SELECT value FROM json_each(?))",
        (text([row[0] for row in chosen]),),
    )
    ledger.load_hosts({row[3] for row in chosen})
    if lost:
        for host, lanes in group(ledger, {row[3] for row in chosen}).items():
            ledger.hosts[host].next_turn = max(
                ledger.hosts[host].next_turn,
                ledger.now + effective_delay(ledger.hosts[host], ledger.asking(lanes)),
            )
    for _, _, task_id, host, kind in chosen:
        row = ledger.hosts[host]
        row.open -= 1
        ledger.touched.add(host)
        if kind == Kind.ROBOTS:
            row.robots_open = False
            continue
        task = ledger.task(task_id)
        task.leased -= 1
        task.leased_pages -= kind == Kind.PAGE
        ledger.changed_tasks.add(task_id)
        lane = ledger.lanes[host, task_id]
        lane[0] += 1
        lane[1] -= 1
    records = text([row[1] for row in chosen if row[1] is not None])
    if lost:
        db.execute("UPDATE record SET suspect = 1 WHERE id IN (SELECT value FROM json_each(?))", (records,))
    db.execute(RETURN, (records,))
    end_closed(ledger, {(row[2], row[3]) for row in chosen if row[1] is not None})
    return len(chosen)


def end_closed(ledger: Ledger, places: set[tuple[int, int]]) -> None:
    """What came back to a lane that was closed meanwhile ends like the rest of it."""
    from gossamer.backends.sqlite.pushing import end_lane
    from gossamer.model.record import State

    for task_id, host in places:
        task = ledger.task(task_id)
        if task.closures:
            sql = "SELECT closed_state, closed_code FROM lane WHERE task = ? AND host = ? AND closed_state IS NOT NULL"
            found = ledger.db.execute(sql, (task_id, host)).fetchone()
            if found:
                end_lane(ledger, task, host, State(found[0]), found[1])


def group(ledger: Ledger, hosts: set[int]) -> dict[int, list]:  # type: ignore[type-arg]
    lanes: dict[int, list] = {}  # type: ignore[type-arg]
    for lane in ledger.lanes_of(hosts):
        lanes.setdefault(lane.host, []).append(lane)
    return lanes


def end(ledger: Ledger, session: str) -> None:
    ledger.db.execute("DELETE FROM session WHERE name = ?", (session,))


def reap(ledger: Ledger, locks: SessionLocks) -> int:
    """End the sessions that stopped beating, or whose process is gone."""
    dead = [
        name
        for name, beat in ledger.db.execute("SELECT name, beat FROM session").fetchall()
        if ledger.now - beat > SESSION_TTL or locks.is_orphaned(name)
    ]
    for name in dead:
        end(ledger, name)
        give_back(ledger, name, None, lost=True)
        locks.drop(name)
    return len(dead)

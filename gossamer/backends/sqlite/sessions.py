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
from gossamer.backends.sqlite.ledger import LaneRow, Ledger, text
from gossamer.backends.sqlite.pushing import end_closed
from gossamer.backends.sqlite.tasks import complete
from gossamer.model.hostrow import effective_delay
from gossamer.model.record import Kind
from gossamer.ports.frontier import SESSION_TTL

HELD = """SELECT json_group_array(json_array(number, record, task, host, kind)) FROM lease
 WHERE session IN (SELECT value FROM json_each(?))"""
Held = tuple[int, int | None, int, int, int]
"""A lease: number, record, task, host, kind."""

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
    """Return leases (all when None); how many there were. `lost`: nobody knows how far they got."""
    wanted = None if numbers is None else set(numbers)
    chosen = [row for row in held_by(ledger, [session]) if wanted is None or row[0] in wanted]
    put_back(ledger, chosen, pausing=lost, lost=lost)
    return len(chosen)


def close(ledger: Ledger, session: str) -> None:
    """Return everything and end the session. Nobody says whether its requests went out, so its hosts pause."""
    put_back(ledger, held_by(ledger, [session]), pausing=True)
    end(ledger, session)


def held_by(ledger: Ledger, sessions: Sequence[str]) -> list[Held]:
    found: list[Held] = msgspec.json.decode(ledger.db.execute(HELD, (text(sessions),)).fetchone()[0])
    return found


def put_back(ledger: Ledger, chosen: Sequence[Held], *, pausing: bool = False, lost: bool = False) -> None:
    """Return leases to their queues. `pausing`: the turn of their hosts passes; `lost`: their records become suspects."""
    if not chosen:
        return
    db = ledger.db
    db.execute(
        "DELETE FROM lease WHERE number IN (SELECT value FROM json_each(?))",
        (text([row[0] for row in chosen]),),
    )
    ledger.load_hosts({row[3] for row in chosen})
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
    ledger.write_lanes()
    end_closed(ledger, {(row[2], row[3]) for row in chosen if row[1] is not None})
    if pausing:  # before a task ends, for it asks for its delay until then
        pause(ledger, {row[3] for row in chosen})
    for task_id in {row[2] for row in chosen}:
        complete(ledger, ledger.task(task_id))


def pause(ledger: Ledger, hosts: set[int]) -> None:
    """Nobody knows when the lost requests went out: the next one waits as if that was now."""
    lanes: dict[int, list[LaneRow]] = {}
    for lane in ledger.lanes_of(hosts):
        lanes.setdefault(lane.host, []).append(lane)
    for host, asked in lanes.items():
        row = ledger.hosts[host]
        if row.name:
            row.next_turn = max(row.next_turn, ledger.now + effective_delay(row, ledger.asking(asked)))


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
        locks.drop(name)
    put_back(ledger, held_by(ledger, dead), pausing=True, lost=True)
    return len(dead)

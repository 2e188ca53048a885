"""The item log: numbers in commit order, one cursor a sink, trimmed behind the slowest."""

from __future__ import annotations

import sqlite3

import msgspec

from gossamer.backends.sqlite.ledger import Ledger


class Logged(msgspec.Struct, array_like=True):
    """An item as it is read: its JSON text stays untouched."""

    number: int
    data: str


_logged = msgspec.json.Decoder(list[Logged])


def read(db: sqlite3.Connection, task: str, after: int, limit: int) -> list[tuple[int, bytes]]:
    sql = """SELECT json_group_array(json_array(number, data)) FROM (SELECT number, data FROM item
             WHERE number > ? AND task = (SELECT id FROM task WHERE name = ?) ORDER BY number LIMIT ?)"""
    return [
        (row.number, row.data.encode())
        for row in _logged.decode(db.execute(sql, (after, task, limit)).fetchone()[0])
    ]


def cursor(ledger: Ledger, task: str, sink: str) -> tuple[int, bytes]:
    row = ledger.named(task)
    ledger.db.execute(
        "INSERT INTO cursor (task, sink, number, state) VALUES (?, ?, 0, x'') ON CONFLICT DO NOTHING",
        (row.id, sink),
    )
    number, state = ledger.db.execute(
        "SELECT number, state FROM cursor WHERE task = ? AND sink = ?", (row.id, sink)
    ).fetchone()
    return int(number), bytes(state)


def advance(ledger: Ledger, task: str, sink: str, number: int, state: bytes) -> None:
    row = ledger.named(task)
    ledger.db.execute(
        """INSERT INTO cursor (task, sink, number, state) VALUES (?, ?, ?, ?)
           ON CONFLICT DO UPDATE SET number = excluded.number, state = excluded.state WHERE excluded.number >= cursor.number""",
        (row.id, sink, number, state),
    )
    trimmed = ledger.db.execute(
        "DELETE FROM item WHERE task = ?1 AND number <= (SELECT min(number) FROM cursor WHERE task = ?1)",
        (row.id,),
    ).rowcount
    if trimmed:
        row.logged -= trimmed
        ledger.changed_tasks.add(row.id)

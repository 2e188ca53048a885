"""The item log: numbers in commit order, one cursor a sink, trimmed behind the slowest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from gossamer.backends.sqlite.database import one
from gossamer.backends.sqlite.ledger import Ledger, TaskRow
from gossamer.model.item import Item
from gossamer.model.record import LoggedItem
from gossamer.ports.frontier import check_stand, within_log


class Row(msgspec.Struct, array_like=True):
    """A row of `item` as it is read: its JSON text stays untouched."""

    number: int
    data: str
    key: str | None


_rows = msgspec.json.Decoder(list[Row])

PLAIN = "INSERT INTO item (task, data) SELECT ?, value FROM json_each(?)"
# A key is kept as JSON, so that no character of it is lost on the way.
KEYED = (
    "INSERT INTO item (task, data, key) SELECT ?, value -> 0, nullif(value -> 1, 'null') FROM json_each(?)"
)


def append(ledger: Ledger, task: TaskRow, items: Sequence[Item]) -> None:
    """Write items into the log by one statement.

    Each is a JSON text already; in an array they are one argument, and come out as they went in.
    """
    keys = [item.key for item in items]
    if keys.count(None) == len(keys):
        sql, texts = PLAIN, [item.data for item in items]
    else:
        sql = KEYED
        texts = [b"[%b,%b]" % (item.data, msgspec.json.encode(item.key)) for item in items]
    ledger.db.execute(sql, (task.id, b"[" + b",".join(texts) + b"]"))


def read(db: sqlite3.Connection, task: str, after: int, limit: int) -> list[LoggedItem]:
    sql = """SELECT json_group_array(json_array(number, data, json(key))) FROM (SELECT number, data, key FROM item
             WHERE number > ? AND task = (SELECT id FROM task WHERE name = ?) ORDER BY number LIMIT ?)"""
    within_log(task, "", after, last_number(db))
    return [
        LoggedItem(row.number, row.data.encode(), row.key)
        for row in _rows.decode(db.execute(sql, (after, task, limit)).fetchone()[0])
    ]


def cursor(ledger: Ledger, task: str, sink: str) -> tuple[int, bytes]:
    row = ledger.named(task)
    last = last_number(ledger.db)
    ledger.db.execute(
        "INSERT INTO cursor (task, sink, number, state) VALUES (?, ?, 0, x'') ON CONFLICT DO NOTHING",
        (row.id, sink),
    )
    number, state = ledger.db.execute(
        "SELECT number, state FROM cursor WHERE task = ? AND sink = ?", (row.id, sink)
    ).fetchone()
    within_log(task, sink, number, last)
    return int(number), bytes(state)


def advance(ledger: Ledger, task: str, sink: str, number: int, state: bytes, after: int | None) -> None:
    row = ledger.named(task)
    within_log(task, sink, number, last_number(ledger.db))
    if after is not None:
        sql = "SELECT number FROM cursor WHERE task = ? AND sink = ?"
        check_stand(task, sink, one(ledger.db, sql, row.id, sink) or 0, number, after)
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


def last_number(db: sqlite3.Connection) -> int:
    """The highest number that an item of this store ever had."""
    found = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'item'").fetchone()
    return int(found[0]) if found else 0

"""Links become records: the insert into `known` is the one judge of what is new."""

from __future__ import annotations

import sqlite3
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import msgspec

from gossamer.backends.sqlite.database import one
from gossamer.backends.sqlite.ledger import SEED_HOST, Ledger, TaskRow, text
from gossamer.model.record import Kind, Link, State
from gossamer.model.traps import BEYOND_BUDGET, budget_name
from gossamer.ports.frontier import KEPT_SAMPLES, SAMPLE_LENGTH

OWN_KEYS = 0  # the bucket of authors' own keys, which are unique over all hosts

BLOCK = 64  # rows bound at once
PLACES = f"({', '.join('?' * 12)})"
FILL_BLOCK = f"""INSERT INTO temp.inbox (k1, k2, host, bucket, url, request, priority, depth, hops, kind, parent, delay)
 VALUES {", ".join([PLACES] * BLOCK)}"""
FILL = """INSERT INTO temp.inbox SELECT ? + key, value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5,
 value ->> 6, value ->> 7, value ->> 8, value ->> 9, value ->> 10, value ->> 11 FROM json_each(?)"""
NEW = """WITH asked (at, bucket, k1, k2) AS ({}) SELECT at FROM asked WHERE NOT EXISTS (
 SELECT 1 FROM known k WHERE k.task = ? AND k.bucket = asked.bucket AND k.k1 = asked.k1 AND k.k2 = asked.k2)"""
NEW_BLOCK = NEW.format(f"VALUES {', '.join(['(?, ?, ?, ?)'] * BLOCK)}")
NEW_REST = NEW.format("SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(?)")
JUDGE = """INSERT INTO known (task, bucket, k1, k2, id) SELECT ?, bucket, k1, k2, ? + pos FROM temp.inbox WHERE true
 ON CONFLICT DO NOTHING"""
RECORD = """INSERT INTO record (id, task, host, parent, url, request, priority, depth, hops, kind)
 SELECT k.id, k.task, i.host, i.parent, i.url, i.request, i.priority, i.depth, i.hops, i.kind FROM temp.inbox i
 CROSS JOIN known k ON k.task = ? AND k.bucket = i.bucket AND k.k1 = i.k1 AND k.k2 = i.k2 WHERE k.id = ? + i.pos"""
ENQUEUE = """INSERT INTO queue (task, host, sunk, id)
 SELECT task, host, -priority, id FROM record WHERE id >= ? AND due IS NULL AND state = 0"""
POSTPONE = """UPDATE record SET due = ? + i.delay FROM temp.inbox i WHERE i.delay > 0 AND record.id = ? + i.pos AND record.id >= ?
 AND record.state = 0"""
DELAY = "INSERT INTO delayed (due, id, task, host) SELECT due, id, task, host FROM record WHERE id >= ? AND due IS NOT NULL"
LANES = """INSERT INTO lane (host, task, pending, first_delay)
 SELECT host, task, sum(due IS NULL AND state = 0), iif(host IN (SELECT h.id FROM json_each(?) e JOIN host h ON h.name = e.value), 0, ?)
 FROM record WHERE id >= ? GROUP BY host, task
 ON CONFLICT DO UPDATE SET pending = lane.pending + excluded.pending"""
RAISED = """SELECT json_group_array(json_array(id, host, old, new, due)) FROM (
 SELECT r.id, r.host, r.priority AS old, max(i.priority) AS new, r.due FROM temp.inbox i
 CROSS JOIN known k ON k.task = ? AND k.bucket = i.bucket AND k.k1 = i.k1 AND k.k2 = i.k2
 CROSS JOIN record r ON r.id = k.id
 WHERE k.id != ? + i.pos AND r.state = 0 AND i.priority > r.priority
   AND NOT EXISTS (SELECT 1 FROM lease WHERE lease.record = r.id) GROUP BY r.id)"""

FIRST = """SELECT r.id, substr(r.url, 1, ?) FROM (SELECT id FROM queue WHERE task = ? AND host = ?
 UNION ALL SELECT id FROM delayed WHERE task = ? AND host = ? ORDER BY id LIMIT ?) w CROSS JOIN record r ON r.id = w.id"""


Row = tuple[int, int, int, int, str, str | None, int, int, int, int, int | None, float]
"""k1, k2, host, bucket, url, request, priority, depth, hops, kind, parent, delay."""


def push(
    ledger: Ledger, task: TaskRow, batches: Sequence[tuple[int | None, Sequence[Link]]], hosts: HostIds
) -> int:
    """Make records of what is new in (id of the record it was found on, links) batches; how many were new."""
    links = [link for _, links in batches for link in links]
    if not links:
        return 0
    db, total = ledger.db, len(links)
    parents = [parent for parent, links in batches for _ in links]
    ids = hosts.of(ledger, links)
    keys = struct.unpack(f"<{2 * total}q", b"".join([link.key for link in links]))
    priorities = [link.priority for link in links]
    task.lowest = min(task.lowest, *priorities)
    places: Sequence[int] = range(total)
    if hosts.mostly_known:
        places = worth_filling(db, task, links, keys, ids)
    base = (one(db, "SELECT max(id) FROM record") or 0) + 1
    new = 0
    if places:
        fill(db, rows_of(links, parents, keys, ids, places))
        new = db.execute(JUDGE, (task.id, base)).rowcount
    hosts.mostly_known = new < total / 2
    if new:
        make_records(ledger, task, base, new, is_delayed=any(link.delay > 0 for link in links))
    if new < len(places) and max(priorities) > task.lowest:
        raise_priorities(ledger, task, base)
    return new


def make_records(ledger: Ledger, task: TaskRow, base: int, new: int, *, is_delayed: bool) -> None:
    """From what was judged to be new: records, in their queues or among the delayed."""
    db = ledger.db
    db.execute(RECORD, (task.id, base))
    if task.spec.pages_per_pattern is not None:
        end_beyond_budget(ledger, task, task.spec.pages_per_pattern, base)
    if is_delayed:
        db.execute(POSTPONE, (ledger.now, base, base))
        db.execute(DELAY, (base,))
    db.execute(ENQUEUE, (base,))
    open_lanes(ledger, task, base)
    task.discovered += new
    ledger.changed_tasks.add(task.id)
    sql = "SELECT json_group_array(DISTINCT host) FROM record WHERE id >= ?"
    ledger.fed.update(msgspec.json.decode(one(db, sql, base)))


def worth_filling(
    db: sqlite3.Connection, task: TaskRow, links: Sequence[Link], keys: Sequence[int], ids: dict[str, int]
) -> list[int]:
    """The places of links that are new, or that may rise. Where most are known and cannot, to ask for three numbers a link is
    cheaper than to carry all of it into the inbox; the insert judges what is left all the same."""
    args: list[int] = []
    kept: list[int] = []
    for at, link in enumerate(links):
        if link.priority > task.lowest:
            kept.append(at)
        else:
            args += (at, OWN_KEYS if link.own_key else ids[link.host], keys[2 * at], keys[2 * at + 1])
    full = len(args) - len(args) % (4 * BLOCK)
    for start in range(0, full, 4 * BLOCK):
        kept += [
            at for (at,) in db.execute(NEW_BLOCK, (*args[start : start + 4 * BLOCK], task.id)).fetchall()
        ]
    if full < len(args):
        rest = [args[at : at + 4] for at in range(full, len(args), 4)]
        kept += [at for (at,) in db.execute(NEW_REST, (text(rest), task.id)).fetchall()]
    return sorted(kept)


def end_beyond_budget(ledger: Ledger, task: TaskRow, budget: int, base: int) -> None:
    """Of the new pages, those whose URL pattern has used up its budget are known, and end before they are asked for."""
    db = ledger.db
    sql = "SELECT json_group_array(json_array(id, url)) FROM (SELECT id, url FROM record WHERE id >= ? AND kind = ? ORDER BY id)"
    found = [
        (record, url, budget_name(url))
        for record, url in msgspec.json.decode(one(db, sql, base, int(Kind.PAGE)))
    ]
    sql = """SELECT json_group_array(json_array(p.name, p.taken)) FROM json_each(?) j
             JOIN pattern p ON p.task = ? AND p.name = j.value"""
    names = text(list({name for _, _, name in found}))
    taken = Counter(dict(msgspec.json.decode(one(db, sql, names, task.id))))
    beyond = []
    for record, url, name in found:
        if taken[name] >= budget:
            beyond.append((record, url))
        else:
            taken[name] += 1
    sql = """INSERT INTO pattern (task, name, taken) SELECT ?, value ->> 0, value ->> 1 FROM json_each(?) WHERE true
             ON CONFLICT DO UPDATE SET taken = excluded.taken"""
    db.execute(sql, (task.id, text(list(taken.items()))))
    if beyond:
        sql = "UPDATE record SET state = ?, code = ? WHERE id IN (SELECT value FROM json_each(?))"
        db.execute(sql, (int(State.SKIPPED), BEYOND_BUDGET, text([record for record, _ in beyond])))
        task.terminal += len(beyond)
        ledger.counts[task.id]["skipped"] += len(beyond)
        ledger.counts[task.id][f"skipped:{BEYOND_BUDGET}"] += len(beyond)
        examples = [(task.id, f"skipped:{BEYOND_BUDGET}", url[:SAMPLE_LENGTH]) for _, url in beyond]
        ledger.keep_samples(examples[:KEPT_SAMPLES])


def fill(db: sqlite3.Connection, rows: list[Row]) -> None:
    """Put the rows into the inbox: most as bound values, which are taken faster than JSON is parsed; the rest as one JSON.

    Either way a statement takes many rows, so the interpreter lock changes hands a few times and not once a row.
    """
    db.execute("DELETE FROM temp.inbox")
    full = len(rows) - len(rows) % BLOCK
    for start in range(0, full, BLOCK):
        db.execute(FILL_BLOCK, tuple(chain.from_iterable(rows[start : start + BLOCK])))
    if full < len(rows):
        db.execute(FILL, (full + 1, text(rows[full:])))


def rows_of(
    links: Sequence[Link],
    parents: Sequence[int | None],
    keys: Sequence[int],
    ids: dict[str, int],
    places: Iterable[int],
) -> list[Row]:
    return [
        (
            keys[2 * at],
            keys[2 * at + 1],
            host := ids[link.host],
            OWN_KEYS if link.own_key else host,
            link.url,
            link.request.decode() if link.request else None,
            link.priority,
            link.depth,
            link.hops,
            int(link.kind),
            parents[at],
            link.delay,
        )
        for at in places
        for link in (links[at],)
    ]


def open_lanes(ledger: Ledger, task: TaskRow, base: int) -> None:
    """Count the new records into their lanes; a host's first pace is fixed when its lane is made."""
    wish = task.spec.wish
    ledger.db.execute(LANES, (text(wish.eager), wish.first_delay, base))
    if task.closures:
        sql = """SELECT DISTINCT l.host, l.closed_state, l.closed_code FROM record r
                 JOIN lane l ON l.host = r.host AND l.task = r.task WHERE r.id >= ? AND l.closed_state IS NOT NULL"""
        for host, state, code in ledger.db.execute(sql, (base,)).fetchall():
            end_lane(ledger, task, host, State(state), code)


def raise_priorities(ledger: Ledger, task: TaskRow, base: int) -> None:
    """A known record that still waits moves up to the higher priority it was found with."""
    found = msgspec.json.decode(ledger.db.execute(RAISED, (task.id, base)).fetchone()[0])
    waiting = [(host, -old, record, -new) for record, host, old, new, due in found if due is None]
    if waiting:
        sql = """UPDATE queue SET sunk = j.value ->> 3 FROM json_each(?) j
                 WHERE queue.task = ? AND queue.host = j.value ->> 0 AND queue.sunk = j.value ->> 1 AND queue.id = j.value ->> 2"""
        ledger.db.execute(sql, (text(waiting), task.id))
    if found:
        sql = "UPDATE record SET priority = j.value ->> 3 FROM json_each(?) j WHERE record.id = j.value ->> 0"
        ledger.db.execute(sql, (text(found),))


def end_lane(ledger: Ledger, task: TaskRow, host: int, state: State, code: str) -> None:
    """Close the task's lane on this host and end what waits there: one order, however many records."""
    db = ledger.db
    ledger.write_lanes()
    if state is State.FAILED:
        args = (SAMPLE_LENGTH, task.id, host, task.id, host, KEPT_SAMPLES)
        ledger.given_up += [
            (record, task.id, code, url) for record, url in db.execute(FIRST, args).fetchall()
        ]
    ended = db.execute(
        """UPDATE record SET state = ?, code = ? WHERE id IN (SELECT id FROM queue WHERE task = ? AND host = ?
             UNION ALL SELECT id FROM delayed WHERE task = ? AND host = ?)""",
        (int(state), code, task.id, host, task.id, host),
    ).rowcount
    db.execute("DELETE FROM queue WHERE task = ? AND host = ?", (task.id, host))
    db.execute("DELETE FROM delayed WHERE task = ? AND host = ?", (task.id, host))
    db.execute(
        "UPDATE lane SET pending = 0, ready_at = NULL, closed_state = ?, closed_code = ? WHERE host = ? AND task = ?",
        (int(state), code, host, task.id),
    )
    task.closures += 1
    task.terminal += ended
    task.errors += ended if state is State.FAILED else 0
    ledger.changed_tasks.add(task.id)
    ledger.counts[task.id][state.name.lower()] += ended
    ledger.counts[task.id][f"{state.name.lower()}:{code or 'ok'}"] += ended
    ledger.touched.add(host)


def end_closed(ledger: Ledger, places: Iterable[tuple[int, int]]) -> None:
    """What came back to a (task, host) that was closed meanwhile ends like the rest of it."""
    for task_id, host in places:
        task = ledger.task(task_id)
        if task.closures:
            sql = "SELECT closed_state, closed_code FROM lane WHERE task = ? AND host = ? AND closed_state IS NOT NULL"
            found = ledger.db.execute(sql, (task_id, host)).fetchone()
            if found:
                end_lane(ledger, task, host, State(found[0]), found[1])


class HostIds:
    """Names of hosts to their row numbers, remembered. Rows are never removed, so a memory is never wrong."""

    LIMIT = 500_000
    mostly_known = False  # of the last links that were pushed, most were not new

    def __init__(self) -> None:
        self._ids: dict[str, int] = {"": SEED_HOST}

    def forget(self) -> None:
        """After a rollback: rows that were met in it are not there."""
        self._ids = {"": SEED_HOST}

    def of(self, ledger: Ledger, links: Iterable[Link]) -> dict[str, int]:
        """Row numbers for the hosts of these links; hosts met for the first time get theirs in the order given."""
        fresh: dict[str, str] = {}
        for link in links:
            if link.host not in self._ids and link.host not in fresh:
                fresh[link.host] = link.url.partition(":")[0]
        if fresh:
            if len(self._ids) > self.LIMIT:
                self.forget()
                return self.of(ledger, links)
            ledger.db.execute(
                "INSERT INTO host (name, scheme) SELECT value ->> 0, value ->> 1 FROM json_each(?) WHERE true ON CONFLICT DO NOTHING",
                (text(list(fresh.items())),),
            )
            sql = "SELECT json_group_array(json_array(h.name, h.id)) FROM json_each(?) j JOIN host h ON h.name = j.value"
            self._ids.update(msgspec.json.decode(ledger.db.execute(sql, (text(list(fresh)),)).fetchone()[0]))
        return self._ids

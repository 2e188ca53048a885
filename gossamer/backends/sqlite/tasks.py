"""Tasks: opened once, ordered about by one row's change, ended by whoever settles the last record."""

from __future__ import annotations

import msgspec

from gossamer.backends.sqlite.ledger import Ledger, TaskRow, text
from gossamer.model.errors import UsageError
from gossamer.model.task import (
    CHANGES,
    ENDED,
    LEADS_TO,
    Command,
    IllegalChange,
    TaskEnded,
    TaskSpec,
    TaskState,
    limit_reached,
)

TABLES_OF_TASK = (
    "lane",
    "record",
    "known",
    "queue",
    "delayed",
    "item",
    "cursor",
    "counter",
    "sample",
    "body",
    "pattern",
)


def open_task(ledger: Ledger, spec: TaskSpec) -> TaskRow:
    sql = "INSERT INTO task (name, spec, state, opened) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    ledger.db.execute(sql, (spec.name, text(spec), TaskState.RUNNING.value, ledger.now))
    return ledger.named(spec.name)


def accepts(task: TaskRow) -> None:
    """Raise TaskEnded for a task that takes no more URLs."""
    if task.is_over:
        raise TaskEnded(
            f"The task {task.name!r} is {task.state.value} and takes no more URLs",
            hint="open it with keep_open, or begin a new one",
        )


def control(ledger: Ledger, name: str, command: Command, reason: str, spec: TaskSpec | None) -> TaskRow:
    task = ledger.named(name)
    ledger.changed_tasks.add(task.id)
    if command is Command.SEEDED:
        task.seeding = False
    elif command is Command.UPDATE:
        if spec is None or spec.name != name:
            raise UsageError(
                "An update needs the new spec of the same task",
                where=name,
                hint="pass spec= with the name of the task",
            )
        task.spec_text = text(spec)
        # What is in flight may have room by another page budget, or has none any more.
        ledger.touched |= hosts_leased(ledger, task)
    elif command is Command.RETRY_FAILED:
        retry_failed(task)
    else:
        change(ledger, task, LEADS_TO[command], reason)
    complete(ledger, task)
    ledger.refresh()
    return task


def change(ledger: Ledger, task: TaskRow, to: TaskState, reason: str) -> None:
    if task.state is to and to in ENDED:
        return
    if to not in CHANGES[task.state] or (task.is_over and to not in ENDED and task.state is not to):
        raise IllegalChange(
            f"The task {task.name!r} is {task.state.value} and cannot become {to.value}",
            hint="`gossamer tasks` shows the states; an ended task goes on with `gossamer retry-failed`",
        )
    if to in ENDED:
        end_task(ledger, task, to, reason)
    else:
        task.state, task.reason = to, reason


def end_task(ledger: Ledger, task: TaskRow, state: TaskState, reason: str) -> None:
    """One row says that everything still open is CANCELLED."""
    task.state, task.reason, task.ended = state, reason, ledger.now
    task.retrying = None
    ledger.changed_tasks.add(task.id)


def complete(ledger: Ledger, task: TaskRow) -> None:
    """End a running task that has reached a limit, or that has nothing PENDING and nothing LEASED."""
    check_limits(ledger, task)
    if task.state is not TaskState.RUNNING or task.terminal != task.discovered:
        return
    if not (task.seeding or task.retrying is not None or task.spec.keep_open):
        end_task(ledger, task, TaskState.COMPLETED, "")


def check_limits(ledger: Ledger, task: TaskRow) -> None:
    """End a running task that has reached one of its limits."""
    if task.state is TaskState.RUNNING:
        end = limit_reached(task.spec, pages=task.pages, items=task.items, errors=task.errors)
        if end is not None:
            end_task(ledger, task, *end)


def retry_failed(task: TaskRow) -> None:
    """An ended task runs again; from the first FAILED record on, they are brought back."""
    if task.is_over:
        task.state, task.reason, task.ended = TaskState.RUNNING, "", None
    task.retrying = task.errors = 0


def retry_some(ledger: Ledger, task: TaskRow, limit: int) -> None:
    """Bring back a bounded number of FAILED records, with a fresh budget and their lanes open."""
    db = ledger.db
    sql = """SELECT json_group_array(json_array(id, host, code)) FROM (
             SELECT id, host, code FROM record WHERE task = ? AND state = 3 AND id > ? ORDER BY id LIMIT ?)"""
    found = msgspec.json.decode(db.execute(sql, (task.id, task.retrying, limit + 1)).fetchone()[0])
    ledger.changed_tasks.add(task.id)
    more = len(found) > limit
    found = found[:limit]
    task.retrying = found[-1][0] if more else None
    if found:
        ids = text([row[0] for row in found])
        db.execute(
            """INSERT INTO queue (task, host, sunk, id) SELECT r.task, r.host, -r.priority, r.id
               FROM json_each(?) j JOIN record r ON r.id = j.value""",
            (ids,),
        )
        db.execute(
            """UPDATE record SET state = 0, code = NULL, retries = 0, crashes = 0, suspect = 0, due = NULL
               WHERE id IN (SELECT value FROM json_each(?))""",
            (ids,),
        )
        hosts = text(list({row[1] for row in found}))
        db.execute(
            """UPDATE lane SET closed_state = NULL, closed_code = NULL
               WHERE task = ? AND host IN (SELECT value FROM json_each(?))""",
            (task.id, hosts),
        )
        task.terminal -= len(found)
        counts = ledger.counts[task.id]
        counts["failed"] -= len(found)
        for _, host, code in found:
            counts[f"failed:{code or 'ok'}"] -= 1
            ledger.lanes[host, task.id][0] += 1
            ledger.fed.add(host)
        ledger.write_lanes()
    complete(ledger, task)


def forget(ledger: Ledger, name: str) -> None:
    """Remove every row of the task; hosts stay, for their pace and rules are all tasks'."""
    task = ledger.named(name)
    sql = "SELECT 1 FROM lease WHERE task = ? AND record IS NOT NULL LIMIT 1"
    if ledger.db.execute(sql, (task.id,)).fetchone():
        raise IllegalChange(
            f"The task {name!r} is being worked on",
            hint="stop its workers first (Ctrl-C, or `gossamer cancel`)",
        )
    end_robots_leases(ledger, task)
    for table in TABLES_OF_TASK:
        ledger.db.execute(f"DELETE FROM {table} WHERE task = ?", (task.id,))
    ledger.db.execute("DELETE FROM task WHERE id = ?", (task.id,))
    del ledger.tasks[task.id]
    ledger.refresh()


def end_robots_leases(ledger: Ledger, task: TaskRow) -> None:
    """Somebody else may ask for the robots that this task was asking for; who comes back with them is too late."""
    hosts = hosts_leased(ledger, task)
    ledger.load_hosts(hosts)
    for host in hosts:
        row = ledger.hosts[host]
        row.open -= 1
        row.robots_open = False
    ledger.touched |= hosts
    ledger.db.execute("DELETE FROM lease WHERE task = ?", (task.id,))


def hosts_leased(ledger: Ledger, task: TaskRow) -> set[int]:
    """The hosts at which something of the task is leased."""
    sql = "SELECT DISTINCT host FROM lease WHERE task = ?"
    return {host for (host,) in ledger.db.execute(sql, (task.id,)).fetchall()}

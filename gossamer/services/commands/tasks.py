"""`gossamer tasks`, and the commands that steer one: pause, resume, cancel, retry-failed.

Each steers by one row of the frontier, so it works on a crawl that runs in another terminal, and on one that does not
run at all.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from cyclopts import Parameter

from gossamer.model.errors import UsageError
from gossamer.services import figures
from gossamer.services.commands.flags import Frontier, Namespace
from gossamer.services.options import STATE

if TYPE_CHECKING:
    from gossamer.model.task import Command, TaskView
    from gossamer.ports.frontier import Frontier as Store

T = TypeVar("T")
STOPPED = "STOPPED"
"""Shown of a task that is RUNNING to the store while no process runs it."""
COUNTED = 1_000
"""Unwritten items that are counted; of more it is said that they are more."""
State = Annotated[Path, Parameter(name="--state", metavar="DIR", help="Where the crawls are kept.")]
Json = Annotated[bool, Parameter(name="--json", help="For programs: JSON on stdout.")]
TaskName = Annotated[str, Parameter(metavar="TASK", help="As `gossamer tasks` lists it.")]


def tasks(
    task: Annotated[str | None, Parameter(metavar="TASK", help="Sum up this one only.")] = None,
    /,
    *,
    state: State = STATE,
    frontier: Frontier = "",
    namespace: Namespace = "",
    as_json: Json = False,
) -> int:
    """List the crawls of this folder, or sum up one of them."""
    if task is not None:
        _tell_one(wait_for(_told(Place(state, frontier, namespace), task)), state, as_json=as_json)
        return 0
    rows = wait_for(_listed(Place(state, frontier, namespace)))
    if as_json:
        print(json.dumps(rows))
    elif not rows:
        print(
            f"No crawl is kept in {figures.plain(str(state))} yet. Start one: gossamer crawl URL",
            file=sys.stderr,
        )
    else:
        _print(rows)
    return 0


def pause(
    task: TaskName, /, *, state: State = STATE, frontier: Frontier = "", namespace: Namespace = ""
) -> int:
    """Let a crawl rest until it is resumed."""
    from gossamer.model.task import Command

    wait_for(_order(Place(state, frontier, namespace), task, Command.PAUSE, "PAUSED"))
    _say(f"{task} rests. It goes on with: gossamer resume {task}{_state_option(state)}")
    return 0


def resume(
    task: TaskName, /, *, state: State = STATE, frontier: Frontier = "", namespace: Namespace = ""
) -> int:
    """Let a paused crawl go on."""
    from gossamer.model.task import Command

    view = wait_for(_order(Place(state, frontier, namespace), task, Command.RESUME, "RUNNING"))
    if view.state.value == "COMPLETED":
        _say(f"{task} had nothing left to do: it is COMPLETED.")
    else:
        _say(f"{task} goes on. If its command no longer runs, start it again.")
    return 0


def cancel(
    task: TaskName, /, *, state: State = STATE, frontier: Frontier = "", namespace: Namespace = ""
) -> int:
    """End a crawl, keeping what it has."""
    from gossamer.model.task import Command

    wait_for(_order(Place(state, frontier, namespace), task, Command.CANCEL))
    _say(f"{task} is cancelled; what it had collected stays.")
    return 0


def retry_failed(
    task: TaskName, /, *, state: State = STATE, frontier: Frontier = "", namespace: Namespace = ""
) -> int:
    """Give the FAILED pages of a crawl another chance."""
    number = wait_for(_retry_failed(Place(state, frontier, namespace), task))
    if number:
        pages = figures.counted(number, "failed page waits", "failed pages wait")
        _say(f"{pages} for another try. Start the crawl's command again, or leave it running.")
    else:
        _say(f"No page of {task} has failed.")
    return 0


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """The result of a short conversation with the frontier. asyncio costs 30 ms to import, which --help saves."""
    import asyncio

    return asyncio.run(work)


def opened(state: Path, url: str = "", namespace: str = "") -> Any:
    """The shared frontier, or that of a state directory that exists; as an async context manager."""
    if url:
        from gossamer.services import wiring

        return wiring.open_frontier(state, url, namespace)
    if not state.is_dir():
        raise UsageError(
            "There is no crawl here: the state directory does not exist",
            where=str(state),
            hint="change to the folder where the crawl was started, or name it with --state DIR",
        )
    if not os.access(state, os.W_OK):
        raise UsageError(
            "Reading this state needs write permission, because whoever reads takes part in its locks and its log",
            where=str(state),
            hint="ask as the user who crawls, or copy the folder and name the copy with --state",
        )
    from gossamer.services import wiring

    return wiring.open_frontier(state)


async def find_task(frontier: Store, name: str) -> TaskView:
    """The task of this name; raises UsageError with the nearest name."""
    found = await frontier.tasks()
    for view in found:
        if view.spec.name == name:
            return view
    import difflib

    names = [view.spec.name for view in found]
    near = difflib.get_close_matches(name, names, n=1)
    hint = near[0] if near else f"one of {', '.join(names[:5])}" if names else "gossamer crawl URL makes one"
    raise UsageError(
        f"There is no task {figures.plain(name)!r}", where="gossamer tasks", hint=figures.plain(hint)
    )


async def _listed(place: Place) -> list[dict[str, Any]]:
    async with opened(*place) as frontier:
        return [await _read_row(frontier, place, view) for view in await frontier.tasks()]


async def _read_row(
    frontier: Store, place: Place, view: TaskView, counters: dict[str, int] | None = None
) -> dict[str, Any]:
    """What is shown of one task. Items that wait for their file are counted where nobody is about to write them."""
    from gossamer.services.wiring import runner

    name = view.spec.name
    is_run = bool(place.frontier) or runner(place.state, name) is not None
    unwritten = 0 if is_run else len(await frontier.read(name, 0, 0, COUNTED))
    return _row(view, counters or await frontier.counters(name), is_run=is_run, unwritten=unwritten)


class Place(NamedTuple):
    """Where the tasks are that a command is about."""

    state: Path
    frontier: str = ""
    namespace: str = ""


class Told(NamedTuple):
    """Everything that the frontier counts of one task."""

    row: dict[str, Any]
    counters: dict[str, int]
    samples: dict[str, list[str]]


async def _told(place: Place, task: str) -> Told:
    async with opened(*place) as frontier:
        view = await find_task(frontier, task)
        counters = await frontier.counters(task)
        row = await _read_row(frontier, place, view, counters)
        return Told(row, counters, await frontier.samples(task))


def _tell_one(told: Told, state: Path, *, as_json: bool) -> None:
    """The figures of one task with what was left out and why, as the end of its run shows them."""
    from gossamer.services.summary import Ending, account_lines

    row = told.row
    ending = Ending.of(
        row["task"],
        row["state"],
        told.counters,
        told.samples,
        seconds=0.0,
        reason=row["reason"],
        state_dir=state,
    )
    if as_json:
        parts = ("answers", "failures", "skips", "counts", "dropped", "invalid", "refused", "samples")
        print(json.dumps(row | {name: getattr(ending, name) for name in parts}))
        return
    name, status, *_, started, ended = _cells(row)
    print(
        figures.plain(f"{name}  {status}  started {started}" + ("" if ended == "–" else f", ended {ended}"))
    )
    print("\n".join(["", *account_lines(ending)]))
    if row["unwritten"]:
        print("\nThe same command again writes what is not written yet.")


def _row(view: TaskView, counters: dict[str, int], *, is_run: bool, unwritten: int) -> dict[str, Any]:
    wanted = ("pages", "items", "failed", "skipped", "retried", "pending", "leased", "bytes")
    running = view.state.value == "RUNNING"
    return {
        "task": view.spec.name,
        "state": view.state.value,
        "reason": "" if running else view.reason,  # who resumed it is no reason
        "is_run": is_run,
        "unwritten": unwritten,
        **{name: counters.get(name, 0) for name in wanted},
        "opened_ago": round(view.opened_ago, 1),
        "ended_ago": None if view.ended_ago is None else round(view.ended_ago, 1),
    }


def _print(rows: list[dict[str, Any]]) -> None:
    from gossamer.services.listing import Column, write_table

    columns = [
        Column("TASK", style="bold"),
        Column("STATE"),
        *(Column(title, right=True) for title in ("PAGES", "ITEMS", "FAILED", "SKIPPED", "WAITING")),
        Column("STARTED"),
        Column("ENDED"),
    ]
    write_table(columns, [_cells(row) for row in rows])


def _cells(row: dict[str, Any]) -> list[str]:
    status = STOPPED if row["state"] == "RUNNING" and not row["is_run"] else row["state"]
    status += f" ({row['reason']})" if row["reason"] else ""
    if row["unwritten"]:
        more = "or more " if row["unwritten"] == COUNTED else ""
        status += f", {row['unwritten']:,} {more}item{'s' if row['unwritten'] > 1 else ''} not written"
    return [
        row["task"],
        status,
        *(f"{row[name]:,}" for name in ("pages", "items", "failed", "skipped")),
        f"{row['pending'] + row['leased']:,}",
        figures.ago(row["opened_ago"]),
        "–" if row["ended_ago"] is None else figures.ago(row["ended_ago"]),
    ]


async def _order(place: Place, task: str, command: Command, there: str | None = None) -> TaskView:
    """Obeyed, or so already: who wants a task to rest does not mind that it rests."""
    async with opened(*place) as frontier:
        view = await find_task(frontier, task)
        return view if view.state.value == there else await _obeyed(frontier, task, command)


async def _retry_failed(place: Place, task: str) -> int:
    """How many there were. Nothing is ordered where none failed: an ended task would run again for nothing."""
    from gossamer.model.task import Command

    async with opened(*place) as frontier:
        await find_task(frontier, task)
        counters: dict[str, int] = await frontier.counters(task)
        number = counters.get("failed", 0)
        if number:
            await _obeyed(frontier, task, Command.RETRY_FAILED)
        return number


async def _obeyed(frontier: Store, task: str, command: Command) -> TaskView:
    from gossamer.model.task import IllegalChange

    try:
        return await frontier.control(task, command, reason="user")
    except IllegalChange as error:
        # At the keyboard this is a command that does not fit, not a crawl that failed.
        raise UsageError(error.what, where=error.where, hint=error.hint or "gossamer tasks") from None


def _state_option(state: Path) -> str:
    from gossamer.services.summary import quoted

    return "" if state == STATE else f" --state {quoted(str(state))}"


def _say(line: str) -> None:
    print(figures.plain(line))

"""`gossamer top`: a frontier while it is worked on: workers, tasks, hosts, rates."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gossamer.services import figures
from gossamer.services.commands.flags import Frontier, Namespace
from gossamer.services.commands.tasks import Json, State, opened, wait_for
from gossamer.services.options import STATE

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gossamer.ports.frontier import Frontier as Store

SHOWN = 15  # rows of each table; the busiest first
LATE = 5.0  # seconds without a beat that are worth a colour


def top(
    *,
    frontier: Frontier = "",
    namespace: Namespace = "",
    state: State = STATE,
    every: Annotated[float, Parameter(metavar="S", help="Seconds between two looks (1).")] = 1.0,
    once: Annotated[bool, Parameter(help="Look twice, print it, and end.")] = False,
    as_json: Json = False,
) -> int:
    """Watch a frontier: who works, on what, how fast. Ctrl-C ends it and nothing else."""
    every = min(max(every, 0.2), 60.0)
    with contextlib.suppress(KeyboardInterrupt):
        wait_for(_watch(state, frontier, namespace, every, once=once or as_json, as_json=as_json))
    return 0


async def _watch(state: Path, url: str, namespace: str, every: float, *, once: bool, as_json: bool) -> None:
    import asyncio

    async with opened(state, url, namespace) as store:
        before = await look(store)
        await asyncio.sleep(min(every, 1.0))
        now = rated(await look(store), before)
        if as_json:
            print(json.dumps(now))
            return
        from rich.console import Console

        console = Console()
        if once or not sys.stdout.isatty():
            console.print(screen(now))
            return
        from rich.live import Live

        with Live(screen(now), console=console, screen=True, auto_refresh=False) as live:
            while True:
                await asyncio.sleep(every)
                before, now = now, rated(await look(store), now)
                live.update(screen(now), refresh=True)


async def look(store: Store) -> dict[str, Any]:
    """One reading, as JSON knows it."""
    sessions = await store.sessions()
    tasks = []
    for view in await store.tasks():
        recent = view.ended_ago is None or view.ended_ago < 60
        if recent:
            counters = await store.counters(view.spec.name)
            wanted = ("pages", "items", "failed", "retried", "pending", "leased", "stale", "bytes")
            row = {"task": view.spec.name, "state": view.state.value, "priority": view.spec.priority}
            tasks.append(row | {name: counters.get(name, 0) for name in wanted})
    hosts: Counter[str] = Counter()
    for session in sessions:
        hosts.update({name or "(seeds)": n for name, n in session.hosts.items()})
    return {
        "at": time.monotonic(),
        "workers": [
            {"worker": one.worker, "beat_ago": round(one.beat_ago, 1), "leases": sum(one.leases.values()), "tasks": len(one.leases)}
            for one in sessions
        ],
        "tasks": tasks,
        "hosts": [{"host": name, "leases": n} for name, n in hosts.most_common(SHOWN)],
    }  # fmt: skip


def rated(now: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """The reading with what was done since the one before."""
    span = max(now["at"] - before["at"], 1e-3)
    earlier = {row["task"]: row for row in before["tasks"]}
    for row in now["tasks"]:
        was = earlier.get(row["task"], row)
        row["pages_per_second"] = round((row["pages"] - was["pages"]) / span, 1)
        row["bytes_per_second"] = round((row["bytes"] - was["bytes"]) / span)
    return now


def screen(now: dict[str, Any]) -> RenderableType:
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table

    def table(*columns: str) -> Table:
        made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for at, column in enumerate(columns):
            made.add_column(column, justify="left" if at == 0 else "right")
        return made

    rate = sum(row["pages_per_second"] for row in now["tasks"])
    size = sum(row["bytes_per_second"] for row in now["tasks"])
    leases = sum(row["leases"] for row in now["workers"])
    head = (
        f"[bold]{figures.counted(len(now['workers']), 'worker')}[/]   [bold]{rate:,.1f}[/] pages/s   {figures.size(size)}/s   "
        f"{leases:,} leases   {sum(row['pending'] for row in now['tasks']):,} waiting"
    )
    tasks = table(
        "TASK", "STATE", "PAGES/S", "PAGES", "ITEMS", "WAITING", "LEASED", "RETRIED", "FAILED", "LATE"
    )
    for row in sorted(now["tasks"], key=lambda row: -row["pages_per_second"])[:SHOWN]:
        numbers = (
            row[name] for name in ("pages", "items", "pending", "leased", "retried", "failed", "stale")
        )
        tasks.add_row(
            escape(figures.plain(row["task"])),
            row["state"],
            f"{row['pages_per_second']:,.1f}",
            *(f"{n:,}" for n in numbers),
        )
    workers = table("WORKER", "LEASES", "TASKS", "BEAT")
    for row in sorted(now["workers"], key=lambda row: -row["leases"])[:SHOWN]:
        beat = f"{row['beat_ago']:.1f} s"
        beat = f"[red]{beat}[/]" if row["beat_ago"] > LATE else beat
        workers.add_row(escape(figures.plain(row["worker"])), f"{row['leases']:,}", str(row["tasks"]), beat)
    hosts = table("HOST", "LEASES")
    for row in now["hosts"]:
        hosts.add_row(escape(figures.plain(row["host"])), f"{row['leases']:,}")
    return Group(head, "", tasks, "", workers, "", hosts)

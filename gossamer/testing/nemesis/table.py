"""Results of many runs as one table for people."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any


def table(results: Path) -> str:
    """Markdown: one row for each kind of fault, and their sum."""
    runs: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in results.read_text(encoding="utf-8").splitlines():
        run = json.loads(line)
        runs[run["kind"]].append(run)
    lines = [
        "| fault | runs | void | pages | faults | not as it must be | fetched again | late settles refused |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [_row(kind, some) for kind, some in sorted(runs.items())]
    return "\n".join([*lines, _row("**all**", [run for some in runs.values() for run in some])])


def _row(kind: str, runs: list[dict[str, Any]]) -> str:
    void = sum(bool(run["void"]) for run in runs)
    wrong = sum(bool(run["complaints"]) for run in runs)
    sums = (sum(run[name] for run in runs) for name in ("pages", "faults"))
    pages, faults = sums
    again, stale = (sum(run[name] for run in runs) for name in ("refetched", "stale"))
    return f"| {kind} | {len(runs)} | {void} | {pages:,} | {faults} | {wrong} | {again} | {stale} |"

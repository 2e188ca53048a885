"""All programs side by side on the same local site: `python -m benchmarks.compare`.

    --scenario small,large   which (all if not given)
    --only scrapy,crawlee    which programs
    --quick                  small and once: does it work at all
    --pages 300              every site has so many pages

Every scenario leaves one record in .bench/results.jsonl, also when it fails. A full run ends by writing RESULTS.md from
these records; `python -m benchmarks.report` does it again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import report
from benchmarks.machine import describe
from benchmarks.measuring import ROOT
from benchmarks.programs import ALL
from benchmarks.scenarios import SCENARIOS, Plan


def perform(name: str, plan: Plan, typed: str, machine: dict[str, str]) -> dict[str, Any]:
    """Run a scenario; whatever goes wrong is part of its record."""
    print(f"{name}: {SCENARIOS[name].__doc__}", file=sys.stderr, flush=True)
    partial = plan.pages is not None or set(plan.only) != set(ALL)
    record: dict[str, Any] = {
        "scenario": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": plan.quick,
        "partial": partial,
        "rounds": plan.times,
        "typed": typed,
        "machine": machine,
    }
    start = time.perf_counter()
    try:
        record |= SCENARIOS[name](plan)
    except Exception as error:  # noqa: BLE001  (a failed scenario is shown as failed, never dropped)
        said = f"{type(error).__name__}: {error}"
        record["problem"] = said.replace(str(plan.folder), "…").replace(str(ROOT), ".")
    record["took"] = round(time.perf_counter() - start, 1)
    if record.get("problem"):
        print(f"  FAILED: {record['problem']}", file=sys.stderr, flush=True)
    return record


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.compare", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--scenario", action="append", metavar="NAME,…", help=", ".join(SCENARIOS))
    parser.add_argument("--only", action="append", metavar="PROGRAM,…", help=", ".join(ALL))
    parser.add_argument("--quick", action="store_true", help="small and once: figures of no worth")
    parser.add_argument("--pages", type=int, help="pages of every site")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each program (3)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that one run may take (300)")
    parser.add_argument("--dir", type=Path, default=ROOT / ".bench", help="a folder on a real disk (.bench)")
    options = parser.parse_args()
    options.scenario = _names(parser, options.scenario, tuple(SCENARIOS))
    options.only = _names(parser, options.only, ALL)
    if options.pages is not None and options.pages <= 41:
        parser.error("--pages: a page has 40 links, so a site has more than 41 pages")
    if options.rounds < 1:
        parser.error("--rounds: 1 or more")
    return options


def _names(
    parser: argparse.ArgumentParser, given: list[str] | None, names: tuple[str, ...]
) -> tuple[str, ...]:
    wanted = [name for one in given or () for name in one.split(",")] or list(names)
    for name in wanted:
        if name not in names:
            parser.error(f"there is no {name!r}: {', '.join(names)}")
    return tuple(name for name in names if name in wanted)


def main() -> int:
    options = arguments()
    folder = options.dir.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    plan = Plan(folder, options.quick, options.only, options.rounds, options.pages, options.timeout)
    typed = " ".join(["python -m benchmarks.compare", *sys.argv[1:]])
    records = []
    for name in options.scenario:
        records.append(perform(name, plan, typed, describe(folder)))
        with report.RECORDS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(records[-1]) + "\n")
    print(report.render(records))
    if not options.quick and not any(record["partial"] for record in records):
        report.write()
    return 1 if any(record.get("problem") for record in records) else 0


if __name__ == "__main__":
    sys.exit(main())

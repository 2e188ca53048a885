"""`python -m gossamer.testing.nemesis`: many runs, one line each; what went wrong is told at once."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from gossamer.testing.nemesis.faults import KINDS
from gossamer.testing.nemesis.running import Plan, run
from gossamer.testing.nemesis.table import table


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m gossamer.testing.nemesis", description="Faults against a cluster."
    )
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--seeds", default="1-3", help="such as 7 or 1-20")
    parser.add_argument("--pages", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--faults", type=int, default=3)
    parser.add_argument("--results", type=Path, help="a file that gets one JSON object a run")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print such a file as a table, and end")
    options = parser.parse_args()
    if options.table:
        print(table(options.table))
        return 0
    first, _, last = options.seeds.partition("-")
    wrong = 0
    for seed in range(int(first), int(last or first) + 1):
        for kind in options.kinds.split(","):
            plan = Plan(seed, kind, pages=options.pages, workers=options.workers, faults=options.faults)
            with tempfile.TemporaryDirectory(prefix="nemesis-") as folder:
                verdict = run(plan, Path(folder))
            print(verdict.line(), flush=True)
            for complaint in verdict.complaints[:20]:
                print(f"    {complaint}", flush=True)
            wrong += not verdict.is_good
            if options.results:
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(verdict)) + "\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Writes RESULTS.md from the stored records: `python -m benchmarks.report`.

For each scenario the newest full run counts, even if it failed and an older one did not. Where there is none, the newest
small one is shown and called by its name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks import readme
from benchmarks.figures import Figure, Record, figures, summary
from benchmarks.measuring import ROOT
from benchmarks.scenarios import SCENARIOS

RECORDS = ROOT / ".bench" / "results.jsonl"
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
SEPARATELY = {"fdatasync_p50_ms", "disk", "commit"}
"""Facts that differ from record to record: told with each."""


def stored() -> list[Record]:
    """What counts of each scenario that was ever run here, in their order."""
    found: dict[str, Record] = {}
    for line in RECORDS.read_text(encoding="utf-8").splitlines() if RECORDS.exists() else ():
        record = json.loads(line)
        before = found.get(record["scenario"])
        if before is None or _is_full(record) or not _is_full(before):
            found[record["scenario"]] = record
    return [found[name] for name in SCENARIOS if name in found]


def write(path: Path = RESULTS) -> None:
    records = stored()
    missing = [name for name in SCENARIOS if name not in {record["scenario"] for record in records}]
    path.write_text(render(records, missing), encoding="utf-8")
    readme.write(records)


def render(records: Sequence[Record], missing: Iterable[str] = ()) -> str:
    """The whole page."""
    parts = ["# Results", _INTRODUCTION, *_machines(records), "## Figures", _figures(records, missing)]
    for record in records:
        parts += _section(record)
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """Written by `make bench`; how it is done is told in [README.md](README.md). Time is taken outside the programs, from process
start to exit. A run counts only if every page of the site is in the program's output exactly once; otherwise it is void."""


def _is_full(record: Record) -> bool:
    return not record["quick"] and not record["partial"]


def _machines(records: Sequence[Record]) -> Iterator[str]:
    """What was measured on: once where it was the same for all."""
    found: dict[str, list[str]] = {}
    for record in records:
        lines = [f"- {name}: {fact}" for name, fact in record["machine"].items() if name not in SEPARATELY]
        found.setdefault("\n".join(lines), []).append(record["scenario"])
    for said, names in found.items():
        yield (f"For {', '.join(names)}:\n\n" if len(found) > 1 else "") + said


def _figures(records: Sequence[Record], missing: Iterable[str]) -> str:
    rows = [["figure", "wanted", "measured", "met"]]
    for record in records:
        rows += [[one.what, one.wanted, one.measured, _met(one, record)] for one in figures(record)]
    rows += [[f"`{name}`", "all its figures", "not run", "—"] for name in missing]
    return _table(rows)


def _met(figure: Figure, record: Record) -> str:
    if record.get("problem"):
        return "**FAILED**"
    if not _is_full(record):
        return "small run, no figure"
    return {True: "yes", False: "**no**", None: "—"}[figure.met]


def _section(record: Record) -> Iterator[str]:
    name = record["scenario"]
    kind = "" if _is_full(record) else " (a small run: figures of no worth)"
    yield f"## {name}{kind}"
    yield str(SCENARIOS[name].__doc__)
    if record.get("problem"):
        yield f"**FAILED**: {_plain(record['problem'])}"
    if "programs" in record:
        yield _programs(record)
    if "rates" in record.get("programs", {}).get("gossamer", {}):
        yield _tenths(record["programs"]["gossamer"])
    if record.get("figures"):
        yield _facts(record["figures"])
    yield "\n".join(f"- {line}" for line in _circumstances(record))


def _programs(record: Record) -> str:
    rows = [["program", "pages", "pages/s", "all runs", "CPU µs/page", "peak MiB", "CPU busy", "server busy"]]
    for name, program in record["programs"].items():
        found = summary(program)
        if found is None:
            rows.append([name, f"{program['pages']:,}", "**void**", *["—"] * 5])
            continue
        rates = ", ".join(f"{rate:,.0f}" for rate in found.rates)
        row = [name, f"{found.pages:,}", f"**{found.rate:,.0f}**", rates, f"{found.cpu_per_page:,.0f}"]
        rows.append(
            [*row, f"{found.peak_rss_mib:,.0f}", f"{found.program_busy:.2f}", f"{found.server_busy:.2f}"]
        )
    return (
        _table(rows) + "\n\nBusy: CPU seconds per second of the median run; 1.00 is one core without a pause."
    )


def _tenths(program: Record) -> str:
    rows = [["tenth", *map(str, range(1, 11))]]
    rows.append(["pages/s", *[f"{rate:,}" for rate in program["rates"]]])
    rows.append(["MiB at its end", *[f"{rss:,}" for rss in program["rss_mib"][1:]]])
    return _table(rows)


def _facts(found: dict[str, Any]) -> str:
    rows = [["", ""]]
    for name, value in found.items():
        if isinstance(value, dict):
            value = ", ".join(f"{inner.replace('_', ' ')} {_number(one)}" for inner, one in value.items())
        rows.append([name.replace("_", " "), _number(value)])
    return _table(rows)


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _circumstances(record: Record) -> Iterator[str]:
    yield f"{record['at']}, took {record['took']:,.0f} s, by `{record['typed']}`"
    if "cores" in record:
        rounds = record["rounds"] if record["scenario"] != "long" else 1
        yield f"{rounds} interleaved {'runs' if rounds > 1 else 'run'} of each program; {record['cores']}"
    yield f"disk: {record['machine']['disk']}; {record['machine']['commit']}"
    commands = [record.get("command"), *(one.get("command") for one in record.get("programs", {}).values())]
    for command in dict.fromkeys(filter(None, commands)):
        yield f"`{command}`"


def _table(rows: list[list[str]]) -> str:
    head, *body = ["| " + " | ".join(map(_plain, row)) + " |" for row in rows]
    return "\n".join([head, "|" + " --- |" * len(rows[0]), *body])


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "/").split())


if __name__ == "__main__":
    write()
    print(f"{RESULTS.relative_to(ROOT)} is written")

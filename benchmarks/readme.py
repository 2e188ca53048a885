"""The few figures that the README shows, in each of its languages, between its two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import Record, summary
from benchmarks.measuring import ROOT
from benchmarks.programs import CRAWLEE, GOSSAMER, SCRAPY

MARKS = re.compile(r"(<!-- ratios: begin.*?-->\n).*?(<!-- ratios: end -->)", re.DOTALL)
PAGES = {
    "README.md": {
        "head": ("pages per second", "Scrapy", "Crawlee (in memory)", "Gossamer (durable)"),
        "small": "12.8 KB, 40 links each",
        "large": "240 KB over TLS, gzip",
    },
    "README.zh.md": {
        "head": ("每秒页数", "Scrapy", "Crawlee（内存中）", "Gossamer（持久化）"),
        "small": "12.8 KB，每页 40 个链接",
        "large": "240 KB，TLS，gzip",
    },
}


def write(records: Sequence[Record]) -> None:
    """Renew the table of each README; records that are no full runs leave it as it is."""
    full = {record["scenario"]: record for record in records if not (record["quick"] or record["partial"])}
    for name, words in PAGES.items():
        rows = [
            row for scenario in ("small", "large") if (row := _row(full.get(scenario), str(words[scenario])))
        ]
        if rows:
            head = words["head"]
            lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *rows]
            _put(ROOT / name, "\n".join(lines))


def _row(record: Record | None, what: str) -> str | None:
    if record is None or record.get("problem"):
        return None
    found = {name: summary(record["programs"][name]) for name in (SCRAPY, CRAWLEE, GOSSAMER)}
    rates = {name: one.rate for name, one in found.items() if one is not None}
    if len(rates) < len(found):
        return None
    ours = rates[GOSSAMER]
    cells = [f"{rates[name]:,.0f}" for name in (SCRAPY, CRAWLEE)]
    return f"| {what} | {' | '.join(cells)} | **{ours:,.0f}** ({ours / rates[SCRAPY]:.1f}×, {ours / rates[CRAWLEE]:.1f}×) |"


def _put(page: Path, table: str) -> None:
    text = page.read_text(encoding="utf-8")
    renewed, times = MARKS.subn(lambda match: f"{match[1]}\n{table}\n\n{match[2]}", text)
    if times != 1:
        raise RuntimeError(f"{page.name} has {times} places for the ratios, not one")
    page.write_text(renewed, encoding="utf-8")

"""A table for people: Rich on a terminal, aligned columns elsewhere, the same words in both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NamedTuple, TextIO

from gossamer.services import figures


class Column(NamedTuple):
    """A heading; figures stand at the right."""

    title: str
    right: bool = False
    style: str = ""
    wrap: bool = False


def write_table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], stream: TextIO | None = None
) -> None:
    """All cells are foreign words until shown otherwise, so none of them can steer the terminal."""
    stream = sys.stdout if stream is None else stream
    cells = [[figures.plain(cell) for cell in row] for row in rows]
    if stream.isatty():
        _rich(columns, cells, stream)
    else:
        stream.write("".join(f"{line}\n" for line in aligned(columns, cells)))


def aligned(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> list[str]:
    """Two blanks between columns, nothing at the end of a line: easy to read and to cut."""
    from rich.cells import cell_len

    table = [[column.title for column in columns], *rows]
    widths = [max(cell_len(row[index]) for row in table) for index in range(len(columns))]
    lines = []
    for row in table:
        line = []
        for column, width, cell in zip(columns, widths, row, strict=True):
            blank = " " * (width - cell_len(cell))
            line.append(blank + cell if column.right else cell + blank)
        lines.append("  ".join(line).rstrip())
    return lines


def _rich(columns: Sequence[Column], rows: Sequence[Sequence[str]], stream: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bright_black")
    for column in columns:
        table.add_column(
            column.title,
            justify="right" if column.right else "left",
            style=column.style or None,
            no_wrap=not column.wrap,
            overflow="fold" if column.wrap else "ellipsis",
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=stream, highlight=False, markup=False, emoji=False).print(table)

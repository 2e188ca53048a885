"""`gossamer settings`: every setting there is, and what it is in this folder."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gossamer.services import figures

if TYPE_CHECKING:
    from gossamer.services.settings import Described, Loaded


def settings(
    name: Annotated[str | None, Parameter(metavar="NAME", help="Tell of this one only.")] = None,
    /,
    *,
    config: Annotated[Path | None, Parameter(metavar="FILE", help="The settings file.")] = None,
    spider: Annotated[
        str | None, Parameter(metavar="NAME", help="With the file's table of this spider.")
    ] = None,
    markdown: Annotated[bool, Parameter(help="The reference page, without this folder's values.")] = False,
    as_json: Annotated[bool, Parameter(name="--json", help="For programs.")] = False,
) -> int:
    """List all settings, and what they are here."""
    from gossamer.services.settings import describe, find_file, load

    if markdown:
        print(reference(describe()), end="")
        return 0
    rows = describe() if name is None else [_named(name)]
    loaded = load({}, file=find_file(config), env=os.environ, spider=spider)
    if as_json:
        print(json.dumps([_document(row, loaded) for row in rows]))
    elif name is not None:
        _print_one(rows[0], loaded)
    else:
        _print_all(rows, loaded)
    return 0


def reference(rows: list[Described]) -> str:
    """The page docs/reference/settings.md."""
    lines = [
        "# Settings",
        "",
        "Written by `gossamer settings --markdown`. How settings are given, and which place wins:",
        "[Give settings](../how-to/settings.md).",
        "",
        "| setting | type | default | bounds | meaning |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        cells = [f"`{row.name}`", row.type, f"`{row.default}`", row.bounds, row.meaning]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _named(name: str) -> Described:
    from gossamer.services.settings import convert, describe

    for row in describe():
        if row.name == name:
            return row
    convert(name, None, "gossamer settings")  # raises, and names the nearest
    raise AssertionError(name)


def _value(row: Described, loaded: Loaded) -> str:
    """What the setting is here, where it is not the default."""
    from gossamer.services.settings import SECRET
    from gossamer.services.values import FIELDS, as_text

    if row.name not in loaded.origin:
        return ""
    value = getattr(loaded.settings, row.name)
    return "(set, not shown)" if row.name in SECRET and value else as_text(value, FIELDS[row.name].unit)


def _document(row: Described, loaded: Loaded) -> dict[str, Any]:
    from gossamer.services.settings import SECRET

    value = getattr(loaded.settings, row.name)
    hidden = row.name in SECRET and row.name in loaded.origin and value
    return {
        **row._asdict(),
        "value": None if hidden else value,
        "origin": loaded.origin.get(row.name, "default"),
    }


def _print_all(rows: list[Described], loaded: Loaded) -> None:
    from gossamer.services.listing import Column, write_table

    columns = [
        Column("SETTING", style="bold"),
        Column("TYPE"),
        Column("DEFAULT", wrap=True),
        Column("MEANING", wrap=True),
    ]
    table = []
    for row in rows:
        meaning = f"{row.meaning} ({row.bounds})" if row.bounds else row.meaning
        table.append([row.name, row.type, _shortened(row.default), meaning])
    write_table(columns, table)
    here = [
        [row.name, _value(row, loaded), loaded.origin[row.name]] for row in rows if row.name in loaded.origin
    ]
    if here:
        print()
        write_table(
            [Column("HERE", style="bold"), Column("VALUE", wrap=True), Column("FROM", wrap=True)], here
        )


def _print_one(row: Described, loaded: Loaded) -> None:
    value = _value(row, loaded)
    lines = [
        ("Meaning", row.meaning),
        ("Type", f"{row.type}, {row.bounds}" if row.bounds else row.type),
        ("Default", row.default),
        ("Here", f"{value}  from {loaded.origin[row.name]}" if value else "the default"),
        ("Write", f"{row.name}=… in the spider's code · {row.name} = … in gossamer.toml"),
        ("", f"GOSSAMER_{row.name.upper()}=… in the environment · -s {row.name}=… on the command line"),
    ]
    print(row.name)
    for label, text in lines:
        sys.stdout.write(f"  {label:<10}{figures.plain(text)}\n")


def _shortened(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:23]}…"

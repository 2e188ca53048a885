"""`gossamer demo` and `gossamer bench`: what the product can do, shown on this machine without any network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter


def demo(
    *,
    folder: Annotated[Path, Parameter(metavar="DIR", help="Where the results are left.")] = Path(
        "gossamer-demo"
    ),
    as_json: Annotated[bool, Parameter(name="--json", help="End with one JSON object.")] = False,
    quiet: Annotated[bool, Parameter(alias="-q", help="No progress.")] = False,
) -> int:
    """Crawl a small shop that is served on this machine."""
    from gossamer.services import demo as room

    return int(room.demo(folder=folder, json=as_json, quiet=quiet))


def bench(
    *,
    pages: Annotated[int, Parameter(metavar="N", help="Pages of the site that is crawled.")] = 5000,
    workers: Annotated[int, Parameter(metavar="N", help="Worker processes.")] = 1,
    as_json: Annotated[bool, Parameter(name="--json", help="End with one JSON object.")] = False,
    quiet: Annotated[bool, Parameter(alias="-q", help="No progress.")] = False,
) -> int:
    """Measure pages per second on this machine."""
    from gossamer.services import bench as room

    return int(room.bench(pages=pages, workers=workers, json=as_json, quiet=quiet))

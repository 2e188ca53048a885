"""A spider as a library: `await spider.run()` in a script or a notebook."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gossamer.model.settings import Settings
from gossamer.services.options import STATE
from gossamer.services.performing import Performance
from gossamer.services.progress import make_view
from gossamer.services.seeding import check_start
from gossamer.services.settings import Given, find_file, load
from gossamer.services.submission import name_with, spec_of
from gossamer.services.summary import Ending
from gossamer.spiders import Spider


async def run_spider(
    spider: Spider,
    *,
    args: Mapping[str, Any] | None = None,
    state: Path | str = STATE,
    output: Path | str | None = None,
    fresh: bool = False,
    quiet: bool = True,
    **settings: Any,
) -> Ending:
    """Run in the caller's event loop, in this process; signals stay the caller's. The hard limit of handlers is only
    reported here: a notebook cannot be replaced.

    Settings have the order that they have everywhere; what is given here takes the place of the command line."""
    loaded: Settings = load(
        spider.settings,
        file=find_file(),
        env=os.environ,
        cli={name: Given(value, f"{spider.name}.run({name}=…)") for name, value in settings.items()},
        spider=spider.name,
    ).settings
    check_start(spider, loaded)
    name = name_with(spider.name, sorted(args.items())) if args else spider.name
    target = Path(output) if output is not None else Path(f"{name}.jsonl")
    spec = spec_of(name, spider, loaded, target)
    view = make_view(quiet=quiet, stream=sys.stderr)
    with view:
        return await Performance(spider, spec, Path(state), target, view, fresh=fresh).run()

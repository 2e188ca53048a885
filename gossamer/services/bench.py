"""`gossamer bench`: how fast this machine crawls the shipped synthetic site, everything durable."""

from __future__ import annotations

import tempfile
from pathlib import Path

from gossamer.services.options import RunOptions
from gossamer.services.settings import Given
from gossamer.services.simple import simple_spider
from gossamer.services.site import serve


def bench(*, pages: int, workers: int = 1, json: bool = False, quiet: bool = False) -> int:
    """Crawl `pages` pages of 12.8 KB with 40 links each: robots on, frontier on disk, items to JSONL."""
    from gossamer.services.crew import duty_of
    from gossamer.services.running import conduct

    with (
        tempfile.TemporaryDirectory(prefix="gossamer-bench-", dir=".") as folder,
        serve("bench", "--pages", str(pages)) as site,
    ):
        state = Path(folder) / "state"
        options = RunOptions(
            state=state,
            output=Path(folder) / "items.jsonl",
            workers=workers,
            json=json,
            quiet=quiet,
            keeps_nothing=True,
        )
        host = site["url"].split("//")[1].split(":")[0]
        options.settings = {
            "private_hosts": Given([host], "the benchmark"),
            "concurrency": Given(64, "the benchmark"),
            "per_host": Given(256 * workers, "the benchmark"),
            "delay": Given(0.0, "the benchmark"),
        }
        select = {"price": ".price"}
        spider = simple_spider("bench", [site["url"]], select)
        duty = duty_of(str(state), "bench", urls=(site["url"],), select=select)
        return conduct(spider, "bench", options.resolve().settings, options, duty)

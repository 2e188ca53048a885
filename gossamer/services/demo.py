"""`gossamer demo`: a small shop on this machine, crawled while you watch."""

from __future__ import annotations

import json as jsonlib
import sys
from pathlib import Path
from typing import Any

from gossamer.model.errors import ExitCode
from gossamer.services.options import RunOptions
from gossamer.services.settings import Given
from gossamer.services.site import serve

ROWS = 5


def demo(*, folder: Path, json: bool = False, quiet: bool = False) -> int:
    """Crawl the shipped shop; leave its products in `folder`. One page of it answers 503 for ever, so 3 would be the
    exit code of an ordinary crawl; a demo that shows this has succeeded."""
    from gossamer.services.running import conduct
    from gossamer.services.shop import shop_spider

    folder.mkdir(parents=True, exist_ok=True)
    output = folder / "products.jsonl"
    with serve("shop") as site:
        if not quiet:
            say(
                f"A small shop is open at {site['url']} (on this machine only). Crawling it with examples/shop.py …\n"
            )
        spider = shop_spider(site["url"])
        options = RunOptions(state=folder / "state", output=output, fresh=True, json=json, quiet=quiet)
        options.settings = {
            "private_hosts": Given([site["url"].split("//")[1].split(":")[0]], "the demo"),
            "per_host": Given(16, "the demo"),
            "retry_delay": Given(0.3, "the demo"),
        }
        settings = options.resolve(spider.settings, spider=spider.name).settings
        code = conduct(spider, spider.name, settings, options, None)
    if not quiet:
        show(output)
    return int(ExitCode.COMPLETED) if code == ExitCode.PAGES_FAILED else code


def show(output: Path) -> None:
    """A few of the rows, and what to do next."""
    rows: list[dict[str, Any]] = []
    with output.open(encoding="utf-8") as file:
        for line, _ in zip(file, range(ROWS), strict=False):
            rows.append(jsonlib.loads(line))
    say("\nThe one page that failed is meant to: it answers 503 for ever, to show how failures are told.")
    say(f"\nThe first of {output}:\n")
    for row in rows:
        say(f"  {row['price']:>10}  {row['name'][:44]:<44}  {row['stock'][:20]}")
    say(
        "\nNext: look at examples/shop.py, the spider that did this, then write your own:"
        "\n  gossamer crawl https://example.com/ --max-pages 20      no code at all"
        "\n  gossamer run my_spider.py                               see docs/tutorial/first-spider.md\n"
    )


def say(line: str) -> None:
    print(line, file=sys.stderr)

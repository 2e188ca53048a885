"""The programs that are compared: how each is called, and whether it did the work.

All do the same: from one URL follow all links, obey robots.txt, and write {"url", "title", "prices"} of every page as a
JSON line, with 64 requests at once and without delays.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.machine import PEERS
from benchmarks.measuring import ROOT
from benchmarks.serving import Site

SPIDERS = Path("benchmarks/peers")
GOSSAMER, SCRAPY, CRAWLEE = "gossamer", "scrapy", "crawlee"
ALL = (SCRAPY, CRAWLEE, GOSSAMER)
ITEMS = "items.jsonl"


class Missing(Exception):  # noqa: N818  (a fact about this machine)
    """The program is not installed."""


def command(name: str, site: Site, folder: Path, *more: str) -> list[str]:
    """Its command line; raises Missing with what to do."""
    output = str(folder / ITEMS)
    if name == GOSSAMER:
        return _gossamer(site, folder, output, *more)
    python = PEERS / "bin" / "python"
    if not python.exists():
        raise Missing(f"{name} is not installed: run `make .venv-peers/.ready`")
    if name == SCRAPY:
        words = [str(PEERS / "bin" / "scrapy"), "runspider", str(SPIDERS / "scrapy_spider.py")]
        words += ["-a", f"start={site.url}", "-O", f"{output}:jsonl"]
        return [*words, "-s", "ASYNCIO_EVENT_LOOP=uvloop.Loop"]
    return [str(python), str(SPIDERS / "crawlee_parsel.py"), site.url, output]


def gossamer_program() -> str:
    found = Path(sys.executable).with_name("gossamer")
    if not found.exists():
        raise Missing(
            "gossamer is not installed beside this Python: run `make setup` and use .venv/bin/python"
        )
    return str(found)


def _gossamer(site: Site, folder: Path, output: str, *more: str) -> list[str]:
    settings = {"concurrency": "64", "per_host": "512", "delay": "0", "log_level": "warning"}
    if site.ca is not None:
        settings["ca_file"] = site.ca
    words = [gossamer_program(), "run", str(SPIDERS / "gossamer_spider.py"), "-a", f"start={site.url}"]
    words += ["--allow", site.host, "--state", str(folder / "state"), "--output", output, "--json"]
    for setting, value in settings.items():
        words += ["-s", f"{setting}={value}"]
    return [*words, *more]


def shown(words: list[str], site: Site, folder: Path) -> str:
    """The command line for people, without the folders of this machine."""
    text = " ".join(words).replace(str(folder), "DIR").replace(site.url, "URL").replace(site.host, "HOST")
    return text.replace(f"{ROOT}/", "").replace(f"{Path(sys.executable).parent}/", "")


def wrong(output: Path, site: Site) -> str | None:
    """What is wrong with these items; None if every page of the site is there once, as it is."""
    pages = site.pages
    seen = bytearray(pages.count)
    lines = 0
    try:
        with output.open("rb") as file:
            for line in file:
                lines += 1
                item = json.loads(line)
                number = _number(item["url"], site)
                if number is None:
                    return f"an item of a page that is not of the site: {item['url'][:100]}"
                if item["title"] != f"Page {number:0{pages.width}}" or item["prices"] != 1:
                    return f"a wrong item: {json.dumps(item)[:200]}"
                seen[number] = 1
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        return f"line {lines} of its items cannot be read: {error!r}".replace(str(output), ITEMS)
    if sum(seen) != pages.count or lines != pages.count:
        return f"{lines:,} items of {sum(seen):,} distinct pages; the site has {pages.count:,}"
    return None


def _number(url: str, site: Site) -> int | None:
    """Which page that is; None if it is none."""
    path = url.removeprefix(site.url.rstrip("/"))
    last = path.rpartition("/")[2]
    number = int(last) if last.isdecimal() else 0
    return number if number < site.pages.count and path == site.pages.path(number) else None

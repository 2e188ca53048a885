"""A crawl of hostile sites in this process, and what the product itself tells of it afterwards."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile_origin import GOOD, HOSTILE, titled

from gossamer import Page, Spider
from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.model.record import State
from gossamer.model.url import canonical, fingerprint, host_key
from gossamer.ports.frontier import Explained
from gossamer.services.summary import Ending
from gossamer.testing.contracts.transport import Site

QUICK: Mapping[str, Any] = {
    "delay": 0,
    "retries": 0,
    "retry_delay": 0.01,
    "max_body": 200_000,
    "private_hosts": ["127.0.0.1"],
}
PATIENCE = 20.0  # far beyond what any crawl here takes: a hang is a failure with a name
LONGEST_LINE = 1_500
OK = (State.DONE, "")


@dataclass
class Crawl:
    """One crawl that has ended."""

    ending: Ending
    folder: Path
    lines: list[str] = field(default_factory=list)
    """What was logged."""

    @property
    def items(self) -> list[dict[str, Any]]:
        file = self.folder / "items.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def item(self, url: str) -> dict[str, Any]:
        """The only item of this page."""
        [found] = [item for item in self.items if item["url"] == url]
        return found

    async def explain(self, url: str, method: str = "GET", body: bytes | None = None) -> Explained | None:
        """The life of a request, as the frontier tells it."""
        url = canonical(url)
        key = fingerprint(method, url, body)
        async with SqliteFrontier(self.folder / "state" / "frontier.db") as frontier:
            return await frontier.explain(self.ending.task, key, host_key(url))

    async def ended(self, url: str) -> tuple[State, str] | None:
        """How the record of this URL ended; None if there is none."""
        found = await self.explain(url)
        return None if found is None else (found.state, found.code)

    async def counters(self) -> dict[str, int]:
        async with SqliteFrontier(self.folder / "state" / "frontier.db") as frontier:
            return await frontier.counters(self.ending.task)

    async def settings(self) -> bytes:
        """What is kept with the task, as JSON."""
        async with SqliteFrontier(self.folder / "state" / "frontier.db") as frontier:
            [task] = await frontier.tasks([self.ending.task])
            return task.spec.settings

    async def wrongs(self, here: Site, state: State = State.DONE, code: str = "") -> list[str]:
        """What is not as it must be, where `HOSTILE` of this site must have ended so; empty if all is well."""
        return await self.complaints(here, {here.url(HOSTILE): (state, code)})

    async def complaints(
        self, here: Site, expected: Mapping[str, tuple[State, str] | None], good: Sequence[str] = GOOD
    ) -> list[str]:
        """What is not as it must be: these records, the site's good pages with their items, the end, the log."""
        pages = {canonical(here.url(path)): path for path in good}
        found = {url: await self.ended(url) for url in [*pages, *expected]}
        wanted = {**dict.fromkeys(pages, OK), **expected}
        titles = [(item["url"], item["title"]) for item in self.items if item["url"] in pages]
        return [
            *(f"{url}: {found[url]}, not {wanted[url]}" for url in wanted if found[url] != wanted[url]),
            *(f"no item, or not one: {url}" for url, path in pages.items() if titles.count((url, titled(path))) != 1),
            *([] if self.ending.state == "COMPLETED" else [f"the task is {self.ending.state}"]),
            *([] if self.ending.waiting == 0 else [f"{self.ending.waiting} records have no end"]),
            *(f"a log line of {len(line)} characters" for line in self.lines if len(line) > LONGEST_LINE),
            *(f"a torn log line: {line!r:.200}" for line in self.lines if "\n" in line or "\r" in line),
        ]  # fmt: skip


def reader(start: Any) -> Spider:
    """A spider that takes a title and a text from every page and follows its links."""
    spider = Spider("hostile", start=start)

    @spider.page()
    def read(page: Page) -> Iterator[Any]:
        yield {"url": page.url, "title": page.title, "text": page.text[:1000]}
        yield page.follow()

    return spider


async def crawl(folder: Path, start: Spider | Sequence[str], **settings: Any) -> Crawl:
    """Crawl to the end in this process."""
    spider = start if isinstance(start, Spider) else reader(list(start))
    with _hearing() as lines:
        async with asyncio.timeout(PATIENCE):
            ending = await spider.run(
                state=folder / "state", output=folder / "items.jsonl", **{**QUICK, **settings}
            )
    return Crawl(ending, folder, lines)


async def crawl_site(folder: Path, here: Site, **settings: Any) -> Crawl:
    """Crawl this site's hostile page and, behind it, its good ones."""
    return await crawl(folder, [here.url(path) for path in (HOSTILE, *GOOD)], **settings)


class _hearing(logging.Handler):  # noqa: N801  (used as a `with` clause)
    """Keeps what is logged inside its block."""

    def __enter__(self) -> list[str]:
        self.lines: list[str] = []
        self._log = logging.getLogger("gossamer")
        self._log.addHandler(self)
        return self.lines

    def __exit__(self, *_error: object) -> None:
        self._log.removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())

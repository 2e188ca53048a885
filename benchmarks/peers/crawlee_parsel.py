"""The benchmark's crawl in Crawlee: `python crawlee_parsel.py URL items.jsonl`.

Tuned for speed as a Crawlee user would: everything in memory, always 64 tasks (the autoscaler cannot take any away),
no sessions, which hold cookies and look for signs of being blocked. The handler writes its line itself, which is
cheaper than a Dataset and its export, for Crawlee exports JSON and CSV, not JSON lines. On uvloop it is no faster.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient


async def main(start: str, output: Path) -> None:
    logging.getLogger().setLevel(logging.ERROR)
    crawler = ParselCrawler(
        configuration=Configuration(log_level="ERROR"),
        storage_client=MemoryStorageClient(),
        # The site's certificate is of its own making. The other peer does not verify either.
        http_client=ImpitHttpClient(verify=False),
        concurrency_settings=ConcurrencySettings(
            min_concurrency=64, desired_concurrency=64, max_concurrency=64
        ),
        respect_robots_txt_file=True,
        use_session_pool=False,
        retry_on_blocked=False,
        configure_logging=False,
    )
    with output.open("w", encoding="utf-8") as lines:

        @crawler.router.default_handler
        async def page(context: ParselCrawlingContext) -> None:
            item = {
                "url": context.request.url,
                "title": context.selector.css("title::text").get(),
                "prices": len(context.selector.css(".price")),
            }
            lines.write(json.dumps(item) + "\n")
            await context.enqueue_links()

        await crawler.run([start])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2])))

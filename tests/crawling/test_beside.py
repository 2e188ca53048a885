"""`page.fetch`: the same politeness, and a failure beside a page is the page's."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any

from test_worker import HOST, Shop, until

from gossamer.model.record import State
from gossamer.ports.transport import FetchError
from gossamer.spiders import Page


def shop_with(pages: dict[str, Any], *wanted: str, **settings: Any) -> Shop:
    """A shop whose pages under /item/ fetch these beside them, for one item."""
    shop = Shop(pages, **settings)

    @shop.spider.page("/item/{n}")
    async def item(page: Page) -> AsyncIterator[Any]:
        statuses = [(await page.fetch(url)).status for url in wanted]
        yield {"url": page.url, "statuses": statuses}

    return shop


async def run(shop: Shop) -> None:
    await asyncio.wait_for((await shop.worker()).run(), 8)


def sending_times(shop: Shop) -> list[float]:
    """When each request went out, kept as the site is asked."""
    times: list[float] = []
    answers = shop.site.send

    async def send(exchange: Any) -> Any:
        answer = await answers(exchange)
        times.append(answer.sent_at)
        return answer

    shop.site.send = send  # type: ignore[method-assign]
    return times


async def test_the_next_page_waits_from_the_last_request_beside() -> None:
    """No two requests to the host are nearer than its delay, whoever sent them."""
    shop = shop_with(
        {"/": [["/item/1", "/item/2"]], "/item/1": [[]], "/item/2": [[]], "/x": [[]], "/y": [[]]},
        "/x", "/y", delay=0.1,
    )  # fmt: skip
    times = sending_times(shop)
    await run(shop)
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert len(times) == 7
    assert min(gaps) >= 0.09


async def test_an_exchange_beside_that_fails_once_costs_one_attempt_of_the_page() -> None:
    """A timeout beside the page is an attempt of the page that failed: it is tried again, and its item comes once."""
    shop = shop_with(
        {"/": [["/item/1"]], "/item/1": [[]], "/x": [FetchError("timeout_header", ""), []]}, "/x", retries=2
    )
    await run(shop)
    assert await shop.ended("/item/1") == (State.DONE, "")
    assert shop.site.asked[f"{HOST}/item/1"] == 2
    assert await shop.items() == 2


async def test_an_exchange_beside_that_always_fails_ends_the_page_with_its_cause() -> None:
    """Within the page's own retry budget, as FAILED with the cause of the exchange."""
    shop = shop_with({"/": [["/item/1"]], "/item/1": [[]], "/x": 503}, "/x", retries=1)
    await run(shop)
    assert await shop.ended("/item/1") == (State.FAILED, "http_503")
    assert shop.site.asked[f"{HOST}/x"] == 2


async def test_a_429_beside_the_page_parks_the_host() -> None:
    """The host said that it is asked too much: the page is not burned, and nobody asks until the parking is over."""
    shop = shop_with(
        {"/": [["/item/1", "/other"]], "/item/1": [[]], "/other": [[]], "/x": 429}, "/x", per_host=1
    )
    worker = await shop.worker()
    running = asyncio.create_task(worker.run())

    async def parked_for() -> float:
        return (await shop.frontier.hosts(["a.example:80"]))["a.example:80"].parked_for

    async def is_parked() -> bool:
        return await parked_for() > 0

    await until(is_parked)
    assert await parked_for() > 1
    worker.stop()
    await asyncio.wait_for(running, 3)


async def test_an_author_may_catch_what_fails_beside() -> None:
    """A handler that can do without the other page goes on, and its item settles."""
    shop = Shop({"/": [["/item/1"]], "/item/1": [[]], "/x": FetchError("tls", "no")})

    @shop.spider.page("/item/{n}")
    async def item(page: Page) -> AsyncIterator[Any]:
        try:
            await page.fetch("/x")
        except FetchError as error:
            yield {"url": page.url, "missing": error.code}

    await run(shop)
    assert await shop.ended("/item/1") == (State.DONE, "")
    assert await shop.items() == 2


async def test_what_an_author_does_without_ends_no_host() -> None:
    """A host that answers its pages is well, however often something beside them fails: it is neither parked nor given up."""
    leaves = {f"/item/{n}": [[]] for n in range(12)}
    shop = Shop({"/": [list(leaves)], **leaves, "/api": 500}, retries=0)

    @shop.spider.page("/item/{n}")
    async def item(page: Page) -> AsyncIterator[Any]:
        with contextlib.suppress(FetchError):
            await page.fetch("/api")
        yield {"url": page.url}

    await run(shop)
    view = (await shop.frontier.hosts(["a.example:80"]))["a.example:80"]
    assert (view.level, view.trouble <= 1) == (0, True)
    assert await shop.items() == 13


async def test_the_next_page_waits_from_a_request_beside_that_failed() -> None:
    """A request that got no answer was sent all the same, and the host's pause counts from its end."""
    shop = shop_with(
        {"/": [["/item/1", "/b"]], "/item/1": [[]], "/b": [[]], "/x": FetchError("reset", "")},
        "/x", delay=0.1, retries=0,
    )  # fmt: skip
    asked: list[tuple[float, str]] = []
    answers = shop.site.send

    async def send(exchange: Any) -> Any:
        asked.append((time.monotonic(), exchange.url))
        return await answers(exchange)

    shop.site.send = send  # type: ignore[method-assign]
    await run(shop)
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(asked)]
    assert min(gaps) >= 0.09, asked


async def test_the_failure_hook_is_told_once() -> None:
    """Also of a page whose handler asked for its 500, and let another 500 pass beside it."""
    shop = Shop({"/": [["/item/1"]], "/item/1": 500, "/x": 500}, retries=0)
    told: list[str] = []

    @shop.spider.page("/item/{n}", any_status=True)
    async def item(page: Page) -> AsyncIterator[Any]:
        yield {"status": (await page.fetch("/x")).status}

    @shop.spider.failed
    def failed(failure: Any) -> None:
        told.append(failure.code)

    await run(shop)
    assert told == ["http_500"]


async def test_waiting_for_the_host_does_not_count_as_the_handlers_time() -> None:
    """The soft limit is for the author's code: three turns of a slow host may take longer."""
    shop = shop_with(
        {"/": [["/item/1"]], "/item/1": [[]], "/x": [[]]}, "/x", "/x", "/x", delay=0.1, handler_soft=0.15
    )
    await run(shop)
    assert await shop.ended("/item/1") == (State.DONE, "")


async def test_another_host_is_the_authors_mistake() -> None:
    """page.fetch refuses what the slot of its page does not cover, and says what to do."""
    shop = shop_with({"/": [["/item/1"]], "/item/1": [[]]}, "http://b.example/")
    await run(shop)
    assert await shop.ended("/item/1") == (State.FAILED, "handler_error")


async def test_nothing_is_remembered_of_pages_that_ended() -> None:
    """What a handler fetched beside its page is forgotten with the page."""
    shop = shop_with({"/": [["/item/1"]], "/item/1": [[]], "/x": [[]]}, "/x")
    worker = await shop.worker()
    visits = worker._visits["shop"]
    await asyncio.wait_for(worker.run(), 5)
    assert visits.besides == {}

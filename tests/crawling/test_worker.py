"""One worker on the frontier in memory and a transport that is told what to answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.crawling import worker as worker_module
from gossamer.crawling.handling import Handling
from gossamer.crawling.pulse import Pulse
from gossamer.crawling.runtime import Runtime
from gossamer.crawling.worker import Worker
from gossamer.model.errors import StateError
from gossamer.model.host import Wish
from gossamer.model.record import State
from gossamer.model.settings import Settings
from gossamer.model.task import Command, TaskSpec, TaskState
from gossamer.model.url import fingerprint, host_key
from gossamer.ports.transport import Answer, Exchange, FetchError
from gossamer.spiders import Page, Spider

HOST = "http://a.example"


class Now:
    """Time as it is; the beat's sleeping is short where a test says so."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Site:
    """A transport to a site in memory. Counts what is open, and can hold answers back at a gate."""

    def __init__(self, pages: dict[str, Any]) -> None:
        self.pages = pages
        self.gate: asyncio.Event | None = None
        self.asked: Counter[str] = Counter()
        self.open = 0
        self.most_open = 0
        self.held = 0  # at the gate
        self.cancelled = 0

    async def send(self, exchange: Exchange) -> Answer:
        self.asked[exchange.url] += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        sent = time.monotonic()
        try:
            if self.gate:
                self.held += 1
                await self.gate.wait()
            await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.open -= 1
        found = self.pages.get(exchange.url.removeprefix(HOST), 404)
        if isinstance(found, list):
            found = found.pop(0) if len(found) > 1 else found[0]
        if isinstance(found, FetchError):
            raise found
        status, links = (found, []) if isinstance(found, int) else (200, found)
        body = "".join(f"<a href='{link}'>x</a>" for link in links).encode()
        headers = [("Content-Type", "text/html")]
        return Answer(status, headers, body, sent, 0.001, 0.001, len(body), "1.1", "192.0.2.1")


class Shop:
    """A task, its spider, its frontier and a worker that is not started yet."""

    def __init__(self, pages: dict[str, Any], **settings: Any) -> None:
        given = {"delay": 0.0, "robots": False, "retry_delay": 0.0, "per_host": 8, **settings}
        self.settings = Settings(**given)
        self.site = Site({path: tuple_to_list(answer) for path, answer in pages.items()})
        self.spider = Spider("shop", start=f"{HOST}/")

        @self.spider.page()
        def page(page: Page) -> Iterator[Any]:
            yield {"url": page.url}
            yield page.follow()

        self.frontier = MemoryFrontier(Now())
        wish = Wish(
            per_host=self.settings.per_host, delay=self.settings.delay or 0.0, robots=self.settings.robots
        )
        self.spec = TaskSpec(name="shop", wish=wish)
        self.runtime = Runtime(self.spec, self.spider, self.settings, hosts=("a.example",))

    async def worker(self, **more: Any) -> Worker:
        if not await self.frontier.tasks(["shop"]):
            await self.frontier.open_task(self.spec)
            await self.frontier.push("shop", self.seeds())
            await self.frontier.control("shop", Command.SEEDED)
        handling = Handling(Pulse(60, lambda *_: None))
        options = {"concurrency": 4, **more}
        return Worker(self.frontier, self.site, {"shop": self.runtime}, handling, Now(), **options)  # type: ignore[arg-type]

    def seeds(self) -> list[Any]:
        from gossamer.crawling.outlinks import Refusals
        from gossamer.model.request import Request

        return self.runtime.outlinks.of_request(Request(f"{HOST}/"), 0, Refusals())

    async def state(self) -> TaskState:
        return (await self.frontier.tasks(["shop"]))[0].state

    async def ended(self, path: str) -> tuple[State, str]:
        url = HOST + path
        told = await self.frontier.explain("shop", fingerprint("GET", url), host_key(url))
        assert told is not None, f"{path} was never pushed"
        return told.state, told.code

    async def items(self) -> int:
        return len(await self.frontier.read("shop", 0, 0, 10_000))


def tuple_to_list(answer: Any) -> Any:
    return list(answer) if isinstance(answer, tuple) else answer


def star(leaves: int) -> dict[str, Any]:
    """A start page with so many pages around it."""
    return {"/": [[f"/{n}" for n in range(leaves)]], **{f"/{n}": [["/"]] for n in range(leaves)}}


async def until(condition: Callable[[], bool | Awaitable[bool]]) -> None:
    async with asyncio.timeout(3):
        while True:
            answer = condition()
            if answer is True or (answer is not False and await answer):
                return
            await asyncio.sleep(0.002)


async def test_it_works_until_its_task_ends() -> None:
    """Every page once, one item each, and the worker ends by itself with the state that the task reached."""
    shop = Shop(star(30))
    worker = await shop.worker()
    await asyncio.wait_for(worker.run(), 5)
    assert await shop.state() is TaskState.COMPLETED
    assert worker.ended == {"shop": "COMPLETED"}
    assert set(shop.site.asked.values()) == {1}
    assert await shop.items() == 31


async def test_answers_that_are_no_page_and_pages_that_cannot_be_had() -> None:
    """404 is DONE, a flaky page is tried again, a broken one FAILED within its budget, and the crawl ends."""
    down, broken = 503, FetchError("tls", "no")
    shop = Shop(
        {"/": [["/missing", "/flaky", "/down", "/tls"]], "/flaky": [503, FetchError("reset", ""), []], "/down": [down], "/tls": [broken]},
        retries=2,
    )  # fmt: skip
    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert await shop.ended("/missing") == (State.DONE, "http_404")
    assert await shop.ended("/flaky") == (State.DONE, "")
    assert await shop.ended("/down") == (State.FAILED, "http_503")
    assert await shop.ended("/tls") == (State.FAILED, "tls")
    assert shop.site.asked[f"{HOST}/down"] == 3
    assert await shop.items() == 2


async def test_no_more_is_open_than_there_are_slots() -> None:
    """Neither of the worker nor of the host."""
    shop = Shop(star(60), per_host=50)
    await asyncio.wait_for((await shop.worker(concurrency=5)).run(), 5)
    assert shop.site.most_open == 5
    shop = Shop(star(60), per_host=3)
    await asyncio.wait_for((await shop.worker(concurrency=50)).run(), 5)
    assert shop.site.most_open == 3


async def test_told_to_stop_it_finishes_what_is_open_and_gives_back_the_rest() -> None:
    """A drain: open pages are settled, leases that were not begun return without suspicion, nothing is fetched twice."""
    shop = Shop(star(40))
    worker = await shop.worker(concurrency=3)
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.asked.total() > 5)
    shop.site.gate = asyncio.Event()
    await until(lambda: shop.site.held == 3)
    worker.stop()
    worker.stop()  # safe to repeat
    await asyncio.sleep(0.02)
    assert not running.done(), "open pages are waited for"
    shop.site.gate.set()
    await asyncio.wait_for(running, 3)
    [task] = await shop.frontier.tasks(["shop"])
    assert task.state is TaskState.RUNNING
    assert task.leased == 0
    assert task.terminal == shop.site.asked.total()
    shop.site.gate = None
    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert set(shop.site.asked.values()) == {1}
    assert await shop.state() is TaskState.COMPLETED


async def test_a_drain_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are still open when its time is over are aborted and returned."""
    monkeypatch.setattr(worker_module, "DRAIN", 0.05)
    shop = Shop(star(10))
    shop.site.gate = asyncio.Event()
    worker = await shop.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.open == 1)
    worker.stop()
    await asyncio.wait_for(running, 3)
    assert shop.site.cancelled == 1
    assert (await shop.frontier.tasks(["shop"]))[0].leased == 0
    assert await shop.ended("/") == (State.PENDING, "")


@pytest.mark.parametrize("concurrency", [1, 4])
async def test_a_cancelled_task_has_its_exchanges_aborted(concurrency: int) -> None:
    """Cancel is heard within two seconds though all that is open hangs, also by a worker that is full; its sockets close."""
    shop = Shop(star(10))
    worker = await shop.worker(concurrency=concurrency)
    running = asyncio.create_task(worker.run())
    shop.site.gate = asyncio.Event()
    await until(lambda: shop.site.open == 1)
    await shop.frontier.control("shop", Command.CANCEL)
    await asyncio.wait_for(running, 2)
    assert shop.site.cancelled == 1
    assert worker.ended == {"shop": "CANCELLED"}
    assert await shop.items() == 0


async def test_a_paused_task_is_waited_for() -> None:
    """Nothing is fetched while it is paused; resumed, it goes on to its end."""
    shop = Shop(star(20))
    worker = await shop.worker()
    await shop.frontier.control("shop", Command.PAUSE)
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0.05)
    assert shop.site.asked.total() == 0
    assert not running.done()
    await shop.frontier.control("shop", Command.RESUME)
    worker.wake()
    await asyncio.wait_for(running, 5)
    assert await shop.state() is TaskState.COMPLETED


async def test_a_handler_that_ends_in_a_cancellation_of_its_own_has_failed() -> None:
    """It waited for a task that was cancelled: that is its mistake, told once, and not a lease to give back for ever."""
    shop = Shop({"/": [["/odd"]], "/odd": [[]]})

    @shop.spider.page("/odd")
    async def odd(page: Page) -> None:
        task = asyncio.create_task(asyncio.sleep(60))
        task.cancel()
        await task

    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert await shop.ended("/odd") == (State.FAILED, "handler_error")
    assert shop.site.asked[f"{HOST}/odd"] == 1


async def test_a_store_that_fails_ends_the_worker_with_its_words() -> None:
    """The error of the store is raised by run, and every exchange is aborted."""
    shop = Shop(star(100))
    worker = await shop.worker()
    settle = shop.frontier.settle
    calls = 0

    async def full(session: str, outcomes: Sequence[Any], want: Any) -> Any:
        nonlocal calls
        calls += bool(outcomes)
        if calls > 2:
            raise StateError("The disk is full")
        return await settle(session, outcomes, want)

    shop.frontier.settle = full  # type: ignore[method-assign]
    with pytest.raises(StateError, match="disk is full"):
        await asyncio.wait_for(worker.run(), 5)
    assert shop.site.open == 0


async def test_a_mistake_in_a_visit_ends_the_worker_and_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What no visit may raise is a fault of this program: it is raised, not swallowed with the page."""
    shop = Shop(star(3))

    async def wrong(exchange: Exchange) -> Answer:
        raise ZeroDivisionError("a fault of the transport")

    shop.site.send = wrong  # type: ignore[method-assign]
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for((await shop.worker()).run(), 5)
    assert (await shop.frontier.tasks(["shop"]))[0].leased == 0


async def test_a_link_is_remembered_only_when_its_settle_was_accepted() -> None:
    """A stale outcome acknowledges nothing, so another page that has the same links pushes them."""
    shop = Shop(star(5))
    worker = await shop.worker()
    settle = shop.frontier.settle

    async def stale(session: str, outcomes: Sequence[Any], want: Any) -> Any:
        leases = await settle(session, outcomes, want)
        leases.stale = [outcome.number for outcome in outcomes]
        return leases

    shop.frontier.settle = stale  # type: ignore[method-assign]
    await asyncio.wait_for(worker.run(), 5)
    assert len(shop.runtime.outlinks.known) == 0


async def test_a_raising_handler_costs_its_page_alone(caplog: pytest.LogCaptureFixture) -> None:
    """FAILED(handler_error) without items or links, told with its place; all others are handled."""
    shop = Shop({"/": [["/bad", "/good"]], "/bad": [["/hidden"]], "/good": [[]]})

    @shop.spider.page("/bad")
    def bad(page: Page) -> Iterator[Any]:
        yield {"url": page.url}
        yield page.follow()
        raise KeyError("price")

    with caplog.at_level(logging.ERROR, "gossamer"):
        await asyncio.wait_for((await shop.worker()).run(), 5)
    assert await shop.ended("/bad") == (State.FAILED, "handler_error")
    assert await shop.ended("/good") == (State.DONE, "")
    assert await shop.items() == 2
    assert shop.site.asked[f"{HOST}/hidden"] == 0


async def test_a_handler_that_waits_too_long_is_cancelled() -> None:
    """The soft limit: FAILED(handler_timeout), and the crawl goes on."""
    shop = Shop({"/": [["/slow", "/good"]], "/slow": [[]], "/good": [[]]}, handler_soft=0.05)

    @shop.spider.page("/slow")
    async def slow(page: Page) -> None:
        await asyncio.sleep(30)

    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert await shop.ended("/slow") == (State.FAILED, "handler_timeout")
    assert await shop.ended("/good") == (State.DONE, "")


async def test_an_author_may_have_what_is_no_page_after_its_last_attempt() -> None:
    """A route with any_status gets the 500 that stays, and its item settles with the failure; the failure hook is told as well."""
    shop = Shop({"/": [["/down"]], "/down": 500}, retries=1)
    told: list[str] = []

    @shop.spider.page("/down", any_status=True)
    def down(page: Page) -> Iterator[Any]:
        yield {"url": page.url, "status": page.status}

    @shop.spider.failed
    def failed(failure: Any) -> None:
        told.append(failure.code)

    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert await shop.ended("/down") == (State.FAILED, "http_500")
    assert shop.site.asked[f"{HOST}/down"] == 2
    assert (told, await shop.items()) == (["http_500"], 2)


async def test_the_failure_hook_hears_of_redirects_that_lead_nowhere() -> None:
    """A page that redirects to itself is given up, and the author is told like for every other cause."""
    shop = Shop({"/": [["/self"]]})
    told: list[tuple[str, str]] = []

    @shop.spider.failed
    def failed(failure: Any) -> None:
        told.append((failure.url, failure.code))

    answers = shop.site.send

    async def send(exchange: Exchange) -> Answer:
        answer = await answers(exchange)
        if exchange.url != f"{HOST}/self":
            return answer
        return Answer(302, [("Location", "/self")], b"", answer.sent_at, 0.001, 0.001, 0, "1.1", "192.0.2.1")

    shop.site.send = send  # type: ignore[method-assign]
    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert told == [(f"{HOST}/self", "redirect_loop")]


async def test_robots_are_asked_first_and_obeyed() -> None:
    """One lease of its own for the rules; a denied page is SKIPPED and never asked for."""
    shop = Shop(star(3), robots=True)
    shop.site.pages["/robots.txt"] = 200
    answers = shop.site.send
    order: list[str] = []

    async def send(exchange: Exchange) -> Answer:
        order.append(exchange.url.removeprefix(HOST).removeprefix(":80"))
        if exchange.url.endswith("/robots.txt"):
            body = b"User-agent: *\nDisallow: /1\n"
            return Answer(200, [], body, time.monotonic(), 0.001, 0.001, len(body), "1.1", "192.0.2.1")
        return await answers(exchange)

    shop.site.send = send  # type: ignore[method-assign]
    await asyncio.wait_for((await shop.worker()).run(), 5)
    assert order[0] == "/robots.txt"
    assert order.count("/robots.txt") == 1
    assert "/1" not in order
    assert await shop.ended("/1") == (State.SKIPPED, "robots")


async def test_two_workers_share_a_task_without_meeting() -> None:
    """Each page is leased to one of them; together they end it."""
    shop = Shop(star(60), per_host=8)
    first, second = await shop.worker(name="one"), await shop.worker(name="two")
    await asyncio.wait_for(asyncio.gather(first.run(), second.run()), 5)
    assert set(shop.site.asked.values()) == {1}
    assert await shop.items() == 61
    assert await shop.state() is TaskState.COMPLETED

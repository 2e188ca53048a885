"""Leases that a worker holds and must not begin: its task rests, their host is parked, or the store is silent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from test_worker import HOST, Shop, star, until

from gossamer.crawling import worker as worker_module
from gossamer.model.record import State
from gossamer.model.task import Command, TaskState


async def test_a_paused_task_begins_nothing_that_it_had_leased_ahead() -> None:
    """Leases that wait for their slot go back when the pause is heard; only what was open is finished."""
    shop = Shop(star(40), per_host=40)
    worker = await shop.worker(concurrency=2)
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.asked.total() > 3)
    shop.site.gate = asyncio.Event()
    await until(lambda: shop.site.held == 2 and len(worker._queue) > 0)
    await shop.frontier.control("shop", Command.PAUSE)
    await until(lambda: len(worker._queue) == 0)
    asked = shop.site.asked.total()
    shop.site.gate.set()
    await until(lambda: worker.open == 0)
    assert shop.site.asked.total() == asked
    worker.stop()
    await asyncio.wait_for(running, 3)
    assert (await shop.frontier.tasks(["shop"]))[0].leased == 0


async def test_a_parked_host_is_not_asked_by_leases_that_were_granted_before() -> None:
    """After a 429 what waits for its slot goes back, and nobody asks the host until its parking is over."""
    shop = Shop({**star(30), "/0": 429}, per_host=30, host_patience=0.1)
    worker = await shop.worker(concurrency=1)
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.asked[f"{HOST}/0"] == 1)
    await until(lambda: len(worker._queue) == 0)
    asked = shop.site.asked.total()
    await asyncio.sleep(0.05)
    assert shop.site.asked.total() == asked
    worker.stop()
    await asyncio.wait_for(running, 3)


async def test_a_store_that_is_silent_for_a_while_costs_exchanges_and_not_the_crawl(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sockets close while the session is not confirmed; when the store says that it lives, the pages are fetched anew."""
    monkeypatch.setattr(worker_module, "BEAT_EVERY", 0.02)
    monkeypatch.setattr(worker_module, "CLOSE_AFTER", 0.1)
    shop = Shop(star(10))
    shop.site.gate = asyncio.Event()
    beat, answers = shop.frontier.beat, asyncio.Event()

    async def silent(session: str) -> bool:
        await answers.wait()
        return await beat(session)

    shop.frontier.beat = silent  # type: ignore[method-assign]
    running = asyncio.create_task((await shop.worker()).run())
    await until(lambda: shop.site.cancelled == 1)
    shop.site.gate.set()
    answers.set()
    await asyncio.wait_for(running, 5)
    assert await shop.state() is TaskState.COMPLETED
    assert await shop.items() == 11


async def test_while_the_store_is_silent_nothing_that_was_leased_ahead_is_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither what was open nor what waits for its slot may speak to a host whose leases may be others' by now."""
    monkeypatch.setattr(worker_module, "BEAT_EVERY", 0.02)
    monkeypatch.setattr(worker_module, "CLOSE_AFTER", 0.1)
    shop = Shop(star(30), per_host=30)
    worker = await shop.worker(concurrency=2)
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.asked.total() > 3)
    shop.site.gate = asyncio.Event()
    await until(lambda: shop.site.held == 2 and len(worker._queue) > 0)
    never = asyncio.Event()

    async def silent(*_: Any) -> Any:
        await never.wait()

    monkeypatch.setattr(shop.frontier, "beat", silent)
    monkeypatch.setattr(shop.frontier, "settle", silent)
    asked = shop.site.asked.total()
    await until(lambda: shop.site.cancelled == 2)
    await asyncio.sleep(0.05)
    assert (shop.site.asked.total(), worker.open) == (asked, 0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_lost_session_closes_every_socket_and_is_followed_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its leases went to others: the worker aborts what is open, settles nothing of it, and goes on under a new session."""
    monkeypatch.setattr(worker_module, "BEAT_EVERY", 0.02)
    shop = Shop(star(10))
    shop.site.gate = asyncio.Event()
    worker = await shop.worker()
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.open == 1)
    [session] = shop.frontier._sessions
    await shop.frontier.close_session(session)
    await until(lambda: shop.site.cancelled == 1)
    await until(lambda: shop.site.open == 1)
    assert session not in shop.frontier._sessions
    shop.site.gate.set()
    await asyncio.wait_for(running, 3)
    assert await shop.state() is TaskState.COMPLETED
    assert shop.site.asked[f"{HOST}/"] == 2


async def test_what_was_known_is_not_known_after_the_store_lost_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another incarnation: nothing of the old one is settled, the memory of known URLs is empty, and the task ends whole."""
    monkeypatch.setattr(worker_module, "LOOK_AGAIN", 0.02)
    shop = Shop(star(10))
    worker = await shop.worker()
    shop.site.gate = asyncio.Event()
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.open == 1)
    shop.runtime.outlinks.known.add(f"{HOST}/3", 100)  # as if it had been pushed in what was lost
    shop.frontier.incarnation = "another"
    await until(lambda: shop.site.cancelled == 1)
    shop.site.gate.set()
    await asyncio.wait_for(running, 3)
    assert await shop.ended("/3") == (State.DONE, "")
    assert shop.runtime.outlinks.known.incarnation == "another"


async def test_a_lasting_worker_takes_tasks_as_they_come() -> None:
    """Without a task it waits; one that is added is worked on to its end; then it waits again, until it is stopped."""
    shop = Shop(star(5))
    worker = await shop.worker(lasting=True)
    worker.runtimes.clear()
    running = asyncio.create_task(worker.run())
    await asyncio.sleep(0.01)
    assert not running.done()
    worker.add(shop.runtime)
    await until(lambda: worker.ended == {"shop": "COMPLETED"})
    assert not running.done()
    worker.stop()
    await asyncio.wait_for(running, 3)


async def test_a_store_that_is_away_keeps_nobody_who_was_told_to_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was open is finished, nobody takes its outcome, and the worker leaves all the same."""
    monkeypatch.setattr(worker_module, "GOODBYE", 0.1)
    shop = Shop(star(10))
    worker = await shop.worker()
    shop.site.gate = asyncio.Event()
    running = asyncio.create_task(worker.run())
    await until(lambda: shop.site.open == 1)
    never = asyncio.Event()

    async def silent(*_: Any) -> Any:
        await never.wait()

    for call in ("settle", "beat", "close_session"):
        monkeypatch.setattr(shop.frontier, call, silent)
    shop.site.gate.set()
    worker.stop()
    await asyncio.wait_for(running, 3)

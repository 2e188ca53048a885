"""Planted mistakes are noticed: a check that passes with the mistake in place checks nothing."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path

import pytest
from crawl_command import PATIENCE, Command, finish
from known_truth import complaints, crawl_of, run_of, spare_page, wrong_records
from test_poison import RAISE_AFTER_ALL, on

from gossamer.backends.sqlite import sessions
from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.backends.sqlite.ledger import Ledger
from gossamer.model.record import State
from gossamer.testing.web import KnownWeb, Mix, serve_child

SLOW = Mix.plain(latency=0.1)


def both(plant: str) -> pytest.MarkDecorator:
    """With the mistake, and (which the kill tests show too, so it is for patient people) without it."""
    return pytest.mark.parametrize("plant", [plant, pytest.param("", marks=pytest.mark.slow)])


def killed_and_resumed(
    folder: Path, plant: str, crash: str, *more: str, web: KnownWeb | None = None
) -> list[str]:
    """What the checks of the kill tests say of a crawl that carries this mistake and is killed here."""
    web = web or KnownWeb(11, pages=80, hosts=2, mix=SLOW)
    with serve_child(web) as origin:
        crawl = crawl_of(web, folder, *more, per_host=2)
        assert crawl.run(crash=crash, plant=plant).was_killed
        lost = [crawl.leased()]
        assert crawl.run(plant=plant).code == 0
        keeps = "keep_bodies=true" in more
        return complaints(web, crawl, origin.log(), per_host=2, lost_leases=lost, bodies=keeps)


@both("settle_before_the_blobs_are_safe")
def test_bodies_written_after_their_settle_are_missed(plant: str, tmp_path: Path) -> None:
    """Killed before a body is stored, the right order has it fetched again; the wrong one has lost it."""
    found = killed_and_resumed(tmp_path, plant, "blobs.before:4", "-s", "keep_bodies=true")
    assert kinds(found) == ({"blob"} if plant else set())


@both("mark_before_enqueue")
def test_links_marked_before_they_are_enqueued_are_missed(plant: str, tmp_path: Path) -> None:
    """Killed between the mark and the queue, links are known and will never be fetched."""
    found = killed_and_resumed(tmp_path, plant, "settle.begun:6")
    assert ("lost" in kinds(found)) == bool(plant)
    assert bool(found) == bool(plant)


@both("cursor_before_the_items")
def test_a_cursor_that_runs_ahead_of_its_sink_is_noticed(plant: str, tmp_path: Path) -> None:
    """Killed between cursor and write, the items of a batch are in neither the log nor the file."""
    found = killed_and_resumed(tmp_path, plant, "sink.before_write:2")
    assert kinds(found) == ({"item lost"} if plant else set())


@both("known_when_seen")
def test_links_remembered_when_they_are_seen_are_missed(plant: str, tmp_path: Path) -> None:
    """What a handler asked for before it raised must stay new to others who link to it."""
    web = KnownWeb(8, pages=50, hosts=2, mix=Mix.plain())
    with serve_child(web):
        broken = spare_page(web)
        crawl = run_of(web, tmp_path, on(broken, RAISE_AFTER_ALL), "-s", "concurrency=1")
        crawl.run(plant=plant)
        found = wrong_records(web, crawl, instead={broken: (State.FAILED, "handler_error")})
        assert kinds(found) == ({"lost"} if plant else set())


@pytest.mark.parametrize("plant", ["", "no_token_check"])
def test_a_settle_without_its_lease_is_noticed(plant: str, tmp_path: Path) -> None:
    """Both workers lose their sessions in the middle; what they settle afterwards must change nothing."""
    web = KnownWeb(12, pages=120, hosts=3, mix=Mix.plain(latency=0.3))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, per_host=2)
        process = crawl.start("--workers", "2", plant=plant)
        lost = [asyncio.run(take_the_leases_away(crawl)) for _ in range(2)]
        try:
            ended = finish(process, 20 if plant else PATIENCE)
        except AssertionError:
            assert plant, "without the mistake it ends"
            return  # counters that are wrong may as well keep the crawl from ever ending
        assert ended.code == 0, ended.err
        assert sum(map(len, lost)) >= 3, "leases must be lost, or this shows nothing"
        found = complaints(web, crawl, origin.log(), per_host=100, lost_leases=lost * 2)
        assert bool(found) == bool(plant)
        if plant:
            assert kinds(found) & {"item twice", "counters"}


@pytest.mark.parametrize("plant", ["", "slot_freed_before_the_socket"])
def test_a_slot_that_is_freed_before_its_socket_is_noticed(plant: str, tmp_path: Path) -> None:
    """Pages that hang keep their connection beyond their outcome, and the origin sees more of them than are allowed."""
    web = KnownWeb(13, pages=60, hosts=2, mix=Mix.plain(hanging=0.05))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path, "-s", "header_timeout=0.3", per_host=1)
        crawl.options = ["retries=0" if word == "retries=2" else word for word in crawl.options]
        assert crawl.run(plant=plant).code == 3
        found = complaints(web, crawl, origin.log(), per_host=1)
        assert kinds(found) == ({"rude"} if plant else set())
        assert all("overlap" in one for one in found)


def kinds(found: list[str]) -> set[str]:
    return {one.partition(":")[0] for one in found}


async def take_the_leases_away(crawl: Command) -> Counter[str]:
    """End every session as a reaper would that has not heard of them for too long; the pages they had in hand."""
    until = time.monotonic() + 20
    while not crawl.database.exists() or not crawl.leased():
        assert time.monotonic() < until, "nothing was ever leased"
        await asyncio.sleep(0.02)
    async with SqliteFrontier(crawl.database) as frontier:

        def work(ledger: Ledger) -> None:
            for (name,) in ledger.db.execute("SELECT name FROM session").fetchall():
                sessions.end(ledger, name)
                sessions.give_back(ledger, name, None, lost=True)
            ledger.refresh()

        held = crawl.leased()
        await frontier._change(work)
    await asyncio.sleep(0.5)
    return held

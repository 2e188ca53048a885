"""Processes that are stopped and go on, or never do: a laptop that is closed, Ctrl-Z, a machine that swaps."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from crawl_command import QUICK, Command, finish
from known_truth import complaints, crawl_of
from test_kills import children_of

from gossamer.model.record import State
from gossamer.ports.frontier import SESSION_TTL
from gossamer.testing.web import KnownWeb, Mix, serve_child


@pytest.mark.slow
def test_a_crawl_that_was_stopped_goes_on(tmp_path: Path) -> None:
    """Stopped for longer than a session may be silent, nobody was there to take its leases: it goes on and ends complete."""
    web = KnownWeb(61, pages=200, hosts=3, mix=Mix(latency=0.2))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        process = crawl.start()
        time.sleep(1.5)
        held = crawl.leased()
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(SESSION_TTL + 2)
        os.kill(process.pid, signal.SIGCONT)
        ended = finish(process)
        assert ended.code == 3, ended.err
        assert complaints(web, crawl, origin.log(), lost_leases=[held, held]) == []


@pytest.mark.slow
def test_a_worker_that_is_stopped_for_good_is_replaced(tmp_path: Path) -> None:
    """Its supervisor ends it, whatever lock it held, and the crawl ends complete with what the others and its successor do."""
    web = KnownWeb(62, pages=200, hosts=3, mix=Mix(latency=0.2))
    with serve_child(web) as origin:
        crawl = crawl_of(web, tmp_path)
        process = crawl.start("--workers", "2")
        time.sleep(1.5)
        os.kill(children_of(process.pid)[0], signal.SIGSTOP)
        ended = finish(process)
        assert ended.code == 3, ended.err
        assert "no sign of life" in ended.err
        held = crawl.leased()
        assert not held
        found = complaints(web, crawl, origin.log(), lost_leases=[held])
        assert [one for one in found if not one.startswith("refetched")] == []


def test_seeds_from_standard_input_outlive_a_handler_that_hangs(tmp_path: Path) -> None:
    """The process that reads them is not the one that is replaced: all but the page that hangs are fetched."""
    web = KnownWeb(63, pages=50, hosts=1, mix=Mix.plain())
    with serve_child(web) as origin:
        urls = sorted(web.expected())
        file = tmp_path / "author.py"
        file.write_text(AUTHOR.format(hangs=urls[5], hosts=web.hosts), encoding="utf-8")
        crawl = Command(
            tmp_path, ["run", str(file), "--allow", web.hosts[0]], [*QUICK, "-s", "handler_hard=0.6"]
        )
        process = crawl.start(stdin=subprocess.PIPE)
        assert process.stdin is not None
        process.stdin.write("\n".join(urls) + "\n")
        ended = finish(process)  # closes its standard input
        assert ended.code == 3, ended.err
        assert sorted(item["url"] for item in crawl.items()) == sorted({*urls} - {urls[5]})
        assert crawl.records()[urls[5]] == (State.FAILED, "poison")
        assert origin.log().hits(urls[5]) == 4


AUTHOR = """
from gossamer import Page, Spider

author = Spider("author", start="-", allow={hosts!r})

@author.page()
async def page(page: Page):
    yield {{"url": page.url}}
    while page.url == {hangs!r}:
        pass
"""

"""Processes that are stopped and go on, or never do: a laptop that is closed, Ctrl-Z, a machine that swaps."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from crawl_command import finish
from known_truth import complaints, crawl_of
from test_kills import children_of

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

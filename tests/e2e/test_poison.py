"""A page that takes its process down ends FAILED(poison) after three deaths of a child, and takes nothing else with it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from crawl_command import Command, Ended
from known_truth import complaints, run_of, spare_page

from gossamer.model.record import State
from gossamer.testing.web import Kind, KnownWeb, Mix, serve_child

DEADLY = {
    "exit": "import os; os._exit(9)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "kill": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}
FOR_EVER = "while True: pass"
WITHOUT_END = "heap = [bytearray(1 << 24)]\nwhile True: heap.append(bytearray(1 << 24))"
POISON = (State.FAILED, "poison")
MOST_STARTS = 6


def small_web(seed: int) -> KnownWeb:
    return KnownWeb(seed, pages=50, hosts=2, mix=Mix.plain(latency=0.02))


def on(url: str, deed: str) -> str:
    lines = "\n".join(f"    {line}" for line in deed.splitlines())
    return f"if page.url == {url!r}:\n{lines}"


def start_until_it_ends(crawl: Command, *more: str) -> tuple[Ended, int]:
    """The same command again and again, as a person or a service manager would; its last end and how often it died."""
    for deaths in range(MOST_STARTS):
        ended = crawl.run(*more)
        if ended.code in {0, 1, 3, 4}:
            return ended, deaths
    raise AssertionError(f"it died {MOST_STARTS} times over one page:\n{ended.err}")


@pytest.mark.parametrize(
    "deed",
    [DEADLY["segfault"], *(pytest.param(DEADLY[name], marks=pytest.mark.slow) for name in ("exit", "kill"))],
)
def test_a_deadly_page_ends_one_process_and_three_children(deed: str, tmp_path: Path) -> None:
    """In a single process the first death ends the crawl; the same command again handles the page in children, and ends."""
    web = small_web(3)
    with serve_child(web) as origin:
        poison = spare_page(web)
        crawl = run_of(web, tmp_path, on(poison, deed))
        ended, deaths = start_until_it_ends(crawl)
        log = origin.log()
        found = complaints(web, crawl, log, instead={poison: POISON}, lost_leases=[every_page(web)])
        assert found == []
        assert ended.code == 3
        assert deaths == 1
        assert log.hits(poison) == 4, "once in the process that died, three times for children"


def test_two_workers_bury_a_deadly_page_by_themselves(tmp_path: Path) -> None:
    """The supervisor replaces the worker that died, and one run of the command ends the page and the crawl."""
    web = small_web(4)
    with serve_child(web) as origin:
        poison = spare_page(web)
        crawl = run_of(web, tmp_path, on(poison, DEADLY["exit"]))
        ended = crawl.run("--workers", "2")
        log = origin.log()
        found = complaints(web, crawl, log, instead={poison: POISON}, lost_leases=[every_page(web)])
        assert found == []
        assert ended.code == 3
        assert "another one takes its place" in ended.err
        assert log.hits(poison) == 4


@pytest.mark.parametrize("workers", [1, 2])
def test_a_handler_that_never_comes_back_is_poison(workers: int, tmp_path: Path) -> None:
    """At the hard limit the process begins anew by itself, and its children are ended; nobody has to start anything."""
    web = small_web(5)
    with serve_child(web) as origin:
        poison = spare_page(web)
        crawl = run_of(web, tmp_path, on(poison, FOR_EVER), "-s", "handler_hard=0.6")
        ended = crawl.run("--workers", str(workers))
        found = complaints(web, crawl, origin.log(), instead={poison: POISON}, lost_leases=[every_page(web)])
        assert found == []
        assert ended.code == 3
        assert "has not come back" in ended.err


def test_a_handler_that_fills_memory_fails_alone(tmp_path: Path) -> None:
    """Where memory has a limit (as in a service), the page that meets it ends FAILED, and all others finish."""
    web = small_web(6)
    with serve_child(web) as origin:
        glutton = spare_page(web)
        crawl = run_of(web, tmp_path, on(glutton, WITHOUT_END))
        crawl.wrapper = ["sh", "-c", 'ulimit -v 1500000; exec "$@"', "sh"]
        ended, _ = start_until_it_ends(crawl)
        found = complaints(
            web, crawl, origin.log(), instead={glutton: (State.FAILED, "handler_error")},
            lost_leases=[every_page(web)],
        )  # fmt: skip
        assert found == []
        assert ended.code == 3


@pytest.mark.slow
def test_a_crawl_with_three_poisons_ends_with_all_others_read(tmp_path: Path) -> None:
    """Several deadly pages, met at once: each is buried by its own deaths, and none by those of the others."""
    web = KnownWeb(7, pages=80, hosts=2, mix=Mix.plain(duplicate=0.05, latency=0.02))
    with serve_child(web) as origin:
        # A duplicate has the links of its twin, so nothing is found through it alone.
        deadly = [url for url, kind in web.kinds().items() if kind is Kind.DUPLICATE][:3]
        assert len(deadly) == 3
        deed = f"if page.url in {deadly!r}:\n    import os; os._exit(9)"
        crawl = run_of(web, tmp_path, deed)
        ended, deaths = start_until_it_ends(crawl, "--workers", "2")
        found = complaints(
            web, crawl, origin.log(), instead=dict.fromkeys(deadly, POISON), lost_leases=[every_page(web)] * 4
        )
        assert found == []
        assert ended.code == 3
        assert deaths == 0


def test_raising_is_not_poison_and_leaves_nothing_behind(tmp_path: Path) -> None:
    """What a handler asked for before it raised is forgotten, and what others ask for too is not forgotten with it."""
    web = small_web(8)
    with serve_child(web) as origin:
        broken = spare_page(web)
        crawl = run_of(web, tmp_path, on(broken, RAISE_AFTER_ALL))
        ended = crawl.run()
        found = complaints(web, crawl, origin.log(), instead={broken: (State.FAILED, "handler_error")})
        assert found == []
        assert ended.code == 3
        assert "author.py:" in ended.err
        assert "not today" in ended.err


RAISE_AFTER_ALL = 'yield {"url": page.url}\nyield page.follow()\nraise ValueError("not today")'


def every_page(web: KnownWeb) -> Counter[str]:
    """Whatever was in hand when a process died may come once more."""
    return Counter(dict.fromkeys(web.expected(), 1))

"""Several machines and one frontier, as far as one machine can show it: each `machine` has a state folder of its own."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from crawl_command import finish

from gossamer.testing.servers import RedisServer, free_port
from gossamer.testing.web import Child, KnownWeb, Mix, serve_child

PAGES = 120


@pytest.fixture
def site() -> Iterator[Child]:
    with serve_child(KnownWeb(5, pages=PAGES, hosts=2, mix=Mix.plain())) as child:
        yield child


class Machine:
    """A folder, and commands that run in it."""

    def __init__(self, folder: Path, url: str, namespace: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GOSSAMER_")}
        self.environment = plain | {"GOSSAMER_FRONTIER": url, "GOSSAMER_NAMESPACE": namespace}

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "gossamer.services.cli", *words], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def run(self, *words: str) -> tuple[int, str, str]:
        return tuple(finish(self.start(*words)))  # type: ignore[return-value]

    @contextmanager
    def worker(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        """A worker that is told to stop at the end, if it was not before."""
        process = self.start("worker", *words)
        try:
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
            self.said = finish(process)


@pytest.fixture
def machine(tmp_path: Path, redis_server: RedisServer) -> Callable[[str], Machine]:
    namespace = secrets.token_hex(6)
    return lambda name: Machine(tmp_path / name, redis_server.url, namespace)


def crawl_words(site: Child, *more: str, delay: str = "0") -> list[str]:
    allow = [word for host in site.hosts for word in ("--allow", host)]
    return ["crawl", *site.seeds, *allow, "--json", "--delay", delay, *more]


def urls_of(file: Path) -> Counter[str]:
    return Counter(json.loads(line)["url"] for line in file.read_text().splitlines())


def summary(out: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def test_one_command_on_three_machines_is_one_crawl(machine: Callable[[str], Machine], site: Child) -> None:
    """Whoever is first submits it and keeps its items; all follow it to its end; no page is asked for twice."""
    machines = [machine(name) for name in "abc"]
    words = crawl_words(site, "--task", "one", "--output", "items.jsonl", "-s", "per_host=2")
    ended = [finish(process) for process in [one.start(*words) for one in machines]]
    assert [one.code for one in ended] == [0, 0, 0], [one.err for one in ended]
    assert {summary(one.out)["pages"] for one in ended} == {PAGES}
    files = [one.folder / "items.jsonl" for one in machines]
    assert sum(file.exists() for file in files) == 1
    [file] = [file for file in files if file.exists()]
    assert len(urls_of(file)) == PAGES
    assert set(urls_of(file).values()) == {1}
    hits = site.log().hits_by_url()
    assert max(hits[url] for url in urls_of(file)) == 1


def test_workers_serve_what_is_submitted(machine: Callable[[str], Machine], site: Child) -> None:
    """A submitter that does not work, two workers that are nobody's children; SIGTERM ends them with nothing asked twice."""
    away, here = machine("away"), machine("here")
    with away.worker("--concurrency", "4") as one, away.worker("--processes", "2") as two:
        code, out, err = here.run(*crawl_words(site, "--task", "t", "--no-work", "--output", "items.jsonl"))
        assert (code, summary(out)["pages"]) == (0, PAGES), err
        for worker in (one, two):
            worker.terminate()
            assert worker.wait(30) == 0
    hits = site.log().hits_by_url()
    assert max(hits[url] for url in urls_of(here.folder / "items.jsonl")) == 1


def test_a_drained_worker_gives_back_what_it_did_not_begin(
    machine: Callable[[str], Machine], site: Child
) -> None:
    """SIGTERM in the middle: another worker goes on at once, and every page is asked for once."""
    away, here = machine("away"), machine("here")
    with away.worker("--concurrency", "2") as first:
        crawl = here.start(
            *crawl_words(site, "--task", "t", "--no-work", "--output", "items.jsonl", delay="0.02")
        )
        until(lambda: len(site.log().visits) > 20)
        first.terminate()
        assert first.wait(30) == 0
        with away.worker("--concurrency", "8"):
            ended = finish(crawl)
    assert ended.code == 0, ended.err
    items = urls_of(here.folder / "items.jsonl")
    assert len(items) == PAGES
    hits = site.log().hits_by_url()
    assert max(hits[url] for url in items) == 1


SPIDER = """
from gossamer import Page, Spider
pages = Spider("pages", start={start!r}, allow={allow!r}, delay=0.0)

@pages.page()
def page(page: Page):
    yield {{"url": page.url, "mark": {mark!r}}}
    yield page.follow()
"""


def test_a_worker_with_other_code_leaves_the_task_alone(
    machine: Callable[[str], Machine], site: Child
) -> None:
    """It says so, and a worker with the same code does it."""
    here, other, same = machine("here"), machine("other"), machine("same")
    for one, mark in ((here, "right"), (other, "wrong"), (same, "right")):
        (one.folder / "spider.py").write_text(SPIDER.format(start=site.seeds, allow=site.hosts, mark=mark))
    words = ["run", "spider.py", "--no-work", "--output", "items.jsonl", "--json"]
    words += [word for host in site.hosts for word in ("--allow", host)]
    with other.worker("--project", "."):
        crawl = here.start(*words)
        time.sleep(3)
        assert crawl.poll() is None
        assert site.log().visits == []
        with same.worker("--project", "spider.py"):
            ended = finish(crawl)
    assert ended.code == 0, ended.err
    assert "other code" in other.said.err
    rows = [json.loads(line) for line in (here.folder / "items.jsonl").read_text().splitlines()]
    assert {row["mark"] for row in rows} == {"right"}
    code, _, err = other.run(*words)
    assert (code, "other code" in err) == (1, True), err


def test_a_task_that_stays_open_is_fed_and_closed(machine: Callable[[str], Machine], site: Child) -> None:
    """`push` tells what was new, known and refused; `close` lets it end."""
    away, here = machine("away"), machine("here")
    with away.worker():
        crawl = here.start(
            *crawl_words(
                site, "--task", "open", "--no-work", "--keep-open", "--depth", "0", "--output", "i.jsonl"
            )
        )
        until(lambda: len(site.log().visits) >= 1)
        root = f"http://{site.hosts[0]}"
        until(lambda: here.run("push", "open", f"{root}/p/3", f"{root}/p/3")[0] == 0)
        code, out, err = here.run(
            "push", "open", f"{root}/p/4", f"{root}/p/3", "http://other.test/", "--json"
        )
        assert (code, json.loads(out)) == (
            0,
            {"task": "open", "new": 1, "known": 1, "refused": {"offsite": 1}},
        ), err
        assert crawl.poll() is None
        assert here.run("close", "open")[0] == 0
        ended = finish(crawl)
    assert ended.code in (0, 3), ended.err
    code, _, err = here.run("push", "open", f"{root}/p/5")
    assert code != 0
    assert "takes no more URLs" in err


def test_top_shows_workers_tasks_and_rates(machine: Callable[[str], Machine], site: Child) -> None:
    """Who works on what, for people and for programs, while it goes on."""
    away, here = machine("away"), machine("here")
    with away.worker("--concurrency", "3"):
        crawl = here.start(*crawl_words(site, "--task", "t", "--no-work", "--output", "i.jsonl", delay="0.1"))
        until(lambda: len(site.log().visits) > 5)
        code, out, err = here.run("top", "--json")
        assert code == 0, err
        told = json.loads(out)
        assert len(told["workers"]) == 1
        [task] = told["tasks"]
        assert (task["task"], task["state"]) == ("t", "RUNNING")
        assert task["pages_per_second"] > 0
        code, out, err = here.run("top", "--once")
        assert code == 0, err
        assert "1 worker " in out
        assert here.run("cancel", "t")[0] == 0
        assert finish(crawl).code in (0, 3, 4)


def test_a_small_task_starts_beside_a_large_one(machine: Callable[[str], Machine]) -> None:
    """A worker whose slots are full of one task begins another within five seconds, and does both."""
    large_web = KnownWeb(6, pages=300, hosts=2, mix=Mix.plain(latency=0.3))
    small_web = KnownWeb(7, pages=40, hosts=1, mix=Mix.plain())
    away, here, there = machine("away"), machine("here"), machine("there")
    with serve_child(large_web) as large, serve_child(small_web) as small, away.worker("--concurrency", "4"):
        first = here.start(
            *crawl_words(large, "--task", "large", "--no-work", "--output", "i.jsonl", "-s", "per_host=50")
        )
        until(lambda: len(large.log().visits) > 10)
        began = time.monotonic()
        second = there.start(*crawl_words(small, "--task", "small", "--no-work", "--output", "i.jsonl"))
        until(lambda: len(small.log().visits) > 0)
        assert time.monotonic() - began < 5
        assert finish(second).code == 0
        assert first.poll() is None, "the large one was over too soon for this to show anything"
        assert here.run("cancel", "large")[0] == 0
        finish(first)


def test_labels_and_needs_pin_work_to_pools(machine: Callable[[str], Machine], site: Child) -> None:
    """A task that needs `eu` waits for a worker that has it."""
    away, here = machine("away"), machine("here")
    with away.worker("--labels", "us"):
        crawl = here.start(
            *crawl_words(site, "--task", "t", "--no-work", "--needs", "eu", "--output", "i.jsonl")
        )
        time.sleep(2.5)
        assert site.log().visits == []
        with away.worker("--labels", "eu,browser"):
            assert finish(crawl).code == 0


def test_a_store_that_is_not_there_is_told_soon(machine: Callable[[str], Machine], site: Child) -> None:
    """Within five seconds, with where and what to do; and a worker without a frontier is wrong usage."""
    here = machine("here")
    began = time.monotonic()
    code, _, err = here.run(*crawl_words(site, "--frontier", f"redis://:secret@127.0.0.1:{free_port()}/0"))
    assert time.monotonic() - began < 6
    assert code == 1
    assert "cannot be reached" in err
    assert "secret" not in err
    del here.environment["GOSSAMER_FRONTIER"]
    code, _, err = here.run("worker")
    assert (code, "--frontier" in err) == (1, True)
    code, _, err = here.run("worker", "--frontier", "reddis://x")
    assert (code, "redis://" in err) == (1, True)


def test_wrong_credentials_are_told(machine: Callable[[str], Machine], site: Child, tmp_path: Path) -> None:
    """The store wants a password: with a wrong one nothing begins, and the password is not repeated."""
    server = RedisServer(tmp_path / "guarded", "--requirepass", "right").start_guarded("right")
    try:
        here = machine("here")
        code, _, err = here.run(*crawl_words(site, "--frontier", f"redis://:wrong@127.0.0.1:{server.port}/0"))
        assert code == 1
        assert "credentials" in err
        assert "wrong@" not in err
        ended = here.run(
            *crawl_words(site, "--max-pages", "5", "--frontier", f"redis://:right@127.0.0.1:{server.port}/0")
        )
        assert ended[0] == 0, ended[2]
    finally:
        server.kill()


def test_a_store_that_vanishes_is_waited_for(
    machine: Callable[[str], Machine], site: Child, tmp_path: Path
) -> None:
    """Killed and started again in mid-crawl: it is said once, the crawl goes on by itself and is whole."""
    server = RedisServer(tmp_path / "own").start()
    try:
        here = machine("here")
        crawl = here.start(*crawl_words(site, "--frontier", server.url, "--output", "i.jsonl", delay="0.03"))
        until(lambda: len(site.log().visits) > 20)
        server.kill()
        time.sleep(2.5)
        server.start()
        ended = finish(crawl)
        assert ended.code == 0, ended.err
        assert ended.err.count("does not answer") == 1
        assert len(urls_of(here.folder / "i.jsonl")) == PAGES
    finally:
        server.kill()


def until(condition: Callable[[], bool], within: float = 20.0) -> None:
    late = time.monotonic() + within
    while not condition():
        assert time.monotonic() < late, "it did not come"
        time.sleep(0.05)


def test_a_password_is_in_no_list_of_processes(machine: Callable[[str], Machine], tmp_path: Path) -> None:
    """The worker's children get the store's URL by their environment: their words are everybody's to read."""
    server = RedisServer(tmp_path / "guarded", "--requirepass", "hidden").start_guarded("hidden")
    try:
        here = machine("here")
        here.environment["GOSSAMER_FRONTIER"] = f"redis://:hidden@127.0.0.1:{server.port}/0"
        with here.worker() as process:
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
            until(lambda: bool(children.read_text().split()))
            [child] = children.read_text().split()
            until(lambda: b"services.crew" in Path(f"/proc/{child}/cmdline").read_bytes())
            assert b"hidden" not in Path(f"/proc/{child}/cmdline").read_bytes()
        assert "hidden" not in here.said.err
        assert process.returncode == 0
    finally:
        server.kill()

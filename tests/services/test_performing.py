"""One task and its runs: who may begin anew, what goes on, what a refused command leaves behind, and who reads the items."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.errors import OutputError, SpiderError, UsageError
from gossamer.model.settings import Settings
from gossamer.services import cli
from gossamer.services.anew import begin_anew
from gossamer.services.seeding import may_be_dialled
from gossamer.services.summary import Ending
from gossamer.services.wiring import holding, open_frontier, runner
from gossamer.spiders import Page, Spider
from gossamer.testing.web import Shop, serve, start_child

STATE = Path(".gossamer")
QUICK: dict[str, Any] = {"robots": False, "delay": 0, "retries": 0, "private_hosts": ["127.0.0.1"]}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reader(name: str, start: Any, **settings: Any) -> Spider:
    """A spider that takes an item of each page and follows all links."""
    spider = Spider(name, start=start, **{**QUICK, **settings})

    @spider.page()
    def read(page: Page) -> Iterator[Any]:
        yield {"url": page.url}
        yield page.follow()

    return spider


def crawled(name: str, **given: Any) -> Ending:
    """A run over a small shop."""

    async def crawl() -> Ending:
        async with serve(Shop(products=12)) as origin:
            ending: Ending = await reader(name, origin.url).run(**given)
            return ending

    return asyncio.run(crawl())


class TestHolding:
    """A task is run by one process at a time."""

    def test_the_second_is_refused_and_the_first_goes_on(self):
        """Neither an ordinary run nor one with fresh=True touches what another process works on."""
        crawled("shop")
        before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        with holding(STATE, "shop"):
            for fresh in (False, True):
                with pytest.raises(UsageError, match="running in another process"):
                    crawled("shop", fresh=fresh)
        after = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
        assert after == before
        assert runner(STATE, "shop") is None
        assert crawled("shop", fresh=True).state == "COMPLETED"

    def test_another_task_is_another_matter(self):
        """Two tasks of one state run side by side."""
        with holding(STATE, "one"), holding(STATE, "two"):
            assert runner(STATE, "one") is not None
            assert runner(STATE, "three") is None

    @pytest.mark.parametrize("others", [True, False])
    async def test_workers_that_outlive_their_command_count(self, others: bool):
        """After a kill its children finish what is open: until then --fresh waits, whether the state has other tasks or not."""
        output = Path("shop.jsonl")
        output.write_text("mine\n")
        async with serve(Shop(products=12)) as origin, open_frontier(STATE) as frontier:
            for name in ("shop", "other")[: 2 if others else 1]:
                await frontier.open_task(_spec(name))
            await frontier.push("shop", [_link(origin.url)])
            session = await frontier.open_session("child")
            assert (await frontier.lease(session, {"shop": 1})).grants
            with pytest.raises(UsageError, match="running in another process"):
                await begin_anew(STATE, "shop", output)
            assert (output.read_text(), (STATE / "frontier.db").exists()) == ("mine\n", True)
            await frontier.close_session(session)
        await begin_anew(STATE, "shop", output)
        assert not output.exists()
        assert (STATE / "frontier.db").exists() is others

    async def test_a_state_that_another_run_has_just_opened_is_not_removed(self):
        """Its task is not in there yet, but its process holds it: only what is to begin anew is forgotten."""
        async with open_frontier(STATE) as frontier:
            await frontier.open_task(_spec("shop"))
        with holding(STATE, "other"):
            await begin_anew(STATE, "shop", Path("shop.jsonl"))
            assert (STATE / "frontier.db").exists()
        async with open_frontier(STATE) as frontier:
            assert await frontier.tasks() == []

    async def test_what_a_killed_run_held_is_nobodys(self):
        """Its leases do not keep --fresh from forgetting the task."""
        async with open_frontier(STATE) as frontier:
            for name in ("shop", "other"):
                await frontier.open_task(_spec(name))
            await frontier.push("shop", [_link("https://a.example/")])
            session = await frontier.open_session("killed")
            assert (await frontier.lease(session, {"shop": 1})).grants
            frontier._locks.close()  # type: ignore[attr-defined]
            await begin_anew(STATE, "shop", Path("shop.jsonl"))
            assert [view.spec.name for view in await frontier.tasks()] == ["other"]


def _spec(name: str) -> Any:
    from gossamer.model.host import Wish
    from gossamer.model.task import TaskSpec

    return TaskSpec(name=name, wish=Wish(robots=False))


def _link(url: str) -> Any:
    from gossamer.model.record import Link
    from gossamer.model.url import fingerprint, host_key

    return Link(fingerprint("GET", url), url, host_key(url))


class TestLimits:
    """A limit that ended a task may be raised."""

    def test_the_rest_is_done(self):
        """The same command with a higher limit, or without it, goes on where the first stopped; no item comes twice."""
        assert crawled_at("shop", max_pages=2).pages == 2
        ending = crawled_at("shop", max_pages=2)
        assert ending.pages_now == 0
        assert "ended by max_pages before: nothing was fetched. Raise it to go on" in ending.notes[0]
        assert crawled_at("shop", max_pages=5).pages == 5
        assert crawled_at("shop", max_items=6).reason == "max_items"
        ending = crawled_at("shop")
        assert (ending.state, ending.reason) == ("COMPLETED", "")
        urls = [json.loads(line)["url"] for line in Path("shop.jsonl").read_text().splitlines()]
        assert len(urls) == len(set(urls)) == ending.items > 6

    def test_a_complete_task_is_complete(self):
        """Where no limit ended it, none can be raised."""
        crawled_at("shop")
        assert "complete before" in crawled_at("shop", max_pages=1000).notes[0]


PORT: list[int] = []


def crawled_at(name: str, **settings: Any) -> Ending:
    """A run over the same shop, at the same address each time."""

    async def crawl() -> Ending:
        async with serve(Shop(products=12), port=PORT[0] if PORT else 0) as origin:
            PORT[:] = [int(origin.url.rstrip("/").rpartition(":")[2])]
            ending: Ending = await reader(name, origin.url).run(**settings)
            return ending

    return asyncio.run(crawl())


def test_a_refused_command_leaves_no_task():
    """An output that cannot be written, or a start that is refused, is not listed as a crawl."""
    Path("out").mkdir()
    with pytest.raises(OutputError, match="it is a folder"):
        crawled("shop", output="out")
    with pytest.raises(UsageError, match="nothing to crawl"):
        crawled("shop", allow="elsewhere.example")

    async def tasks() -> list[Any]:
        async with open_frontier(STATE) as frontier:
            return await frontier.tasks()

    assert asyncio.run(tasks()) == []


def test_items_that_waited_are_written_by_the_next_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """`tasks` says that they are not written, and the run that writes them says so too."""
    from gossamer.backends.files.jsonl import JsonlSink

    with monkeypatch.context() as patched:
        patched.setattr(JsonlSink, "_append", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
        patched.setattr("gossamer.crawling.followers.FIRST_WAIT", 0.01)
        with pytest.raises(OutputError, match="could not all be written"):
            crawled_at("shop")
    assert cli.main(["tasks"]) == 0
    assert "items not written" in capsys.readouterr().out
    ending = crawled_at("shop")
    assert f"{ending.items} items that the output lacked were written" in ending.notes[0]
    cli.main(["tasks", "shop"])
    assert "not written" not in capsys.readouterr().out


class TestStart:
    """What cannot be crawled is refused before anything is opened."""

    @pytest.mark.parametrize(
        ("host", "settings", "may"),
        [
            ("a.example", {}, True),
            ("8.8.8.8", {}, True),
            ("127.0.0.1", {}, False),
            ("127.0.0.1", {"private_hosts": ("127.0.0.1",)}, True),
            ("10.1.2.3", {"allow_net": ("10.0.0.0/8",)}, True),
            ("10.1.2.3", {"private_hosts": ("127.0.0.1",)}, False),
            ("[::1]", {}, False),
            ("[::1]", {"private_hosts": ("[::1]",)}, True),
            ("localhost", {}, False),
            ("shop.localhost", {}, False),
            ("localhost", {"private_hosts": ("localhost",)}, True),
            ("localhost", {"proxy": "http://p.example:3128"}, True),
            ("169.254.169.254", {"private_hosts": ("169.254.169.254",)}, False),
        ],
    )
    def test_which_hosts_may_be_dialled(self, host: str, settings: dict[str, Any], may: bool):
        """Judged by the host as it is written, as the guard of the transport judges its address."""
        assert may_be_dialled(host, Settings(**settings)) is may

    def test_a_private_start_names_the_option(self, folder: Path, capsys: pytest.CaptureFixture[str]):
        """Exit 1, the host and --allow, and no state that would call the corrected command complete."""
        (folder / "s.py").write_text(
            "from gossamer import Spider\ns = Spider('s', start='http://127.0.0.1:8009/')\ns.page()(print)\n"
        )
        assert cli.main(["run", "s.py"]) == 1
        error = capsys.readouterr().err
        assert "The start is on 127.0.0.1" in error
        assert "--allow 127.0.0.1" in error
        assert not STATE.exists()

    async def test_one_public_start_is_enough(self):
        """The others end FAILED(blocked_address) each, as links do."""
        from gossamer.services.seeding import check_start

        check_start(reader("s", ["http://127.0.0.1/", "https://a.example/"]), Settings())
        with pytest.raises(UsageError):
            check_start(reader("s", ["nonsense", "http://127.0.0.1/"]), Settings())

    async def test_a_spider_without_handlers(self):
        """It is told how to write one; with keep_bodies it needs none."""
        from gossamer.services.seeding import check_start

        spider = Spider("s", start="https://a.example/")
        with pytest.raises(SpiderError, match="no handler"):
            await spider.run()
        check_start(spider, Settings(keep_bodies=True))


def test_a_selector_that_fits_nowhere_is_told(capsys: pytest.CaptureFixture[str]):
    """One note a field, and none for the field that was found."""
    with start_child("shop", products=12) as site:
        words = ["--select", "price=.prise", "--select", "name=h1", "-s", "delay=0", "--max-pages", "3"]
        assert cli.main(["crawl", site.url, *words]) == 0
    error = capsys.readouterr().err
    assert "--select price matched on no page" in error
    assert "--select name" not in error


def test_a_built_in_field_is_not_overwritten(capsys: pytest.CaptureFixture[str]):
    """`--select url=h1` would take the address from every item; the title may be chosen anew."""
    assert cli.main(["crawl", "https://a.example/", "--select", "url=h1"]) == 1
    assert "a field 'url' already" in capsys.readouterr().err


def test_who_has_read_enough_ends_the_crawl_quietly():
    """`gossamer crawl -o - | head -2`: two lines, nothing on stderr, and the end at once."""
    with start_child("shop", products=60) as site:
        command = [sys.executable, "-m", "gossamer.services.cli", "crawl", site.url, "-o", "-", "-q", "-s", "delay=0.02"]  # fmt: skip
        crawl = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert crawl.stdout is not None
        assert crawl.stderr is not None
        assert all(json.loads(crawl.stdout.readline()) for _ in range(2))
        crawl.stdout.close()
        assert crawl.wait(10) == 141
        assert crawl.stderr.read() == b""
        crawl.stderr.close()


def test_a_state_that_may_only_be_read_is_explained(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Who may not write is told why reading needs it, instead of a fault of the store."""
    STATE.mkdir()
    monkeypatch.setattr("os.access", lambda *_: False)
    assert cli.main(["tasks"]) == 1
    assert "Reading this state needs write permission, because" in capsys.readouterr().err

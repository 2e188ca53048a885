"""Runs of real tasks in a folder of their own: what a start is worth, which settings hold, what --fresh removes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gossamer.model.errors import SettingsError, UsageError
from gossamer.model.settings import Settings
from gossamer.services import cli, library, wiring
from gossamer.services.submission import home_of, read_kept
from gossamer.services.summary import Ending
from gossamer.spiders import Page, Spider
from gossamer.testing.web import Shop, serve

Write = Callable[[str], str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder: Path) -> Write:
    """A spider file that starts like this."""

    def write(given: str) -> str:
        (folder / "books.py").write_text(
            f"from gossamer import Spider\nbooks = Spider('books', {given})\nbooks.page()(lambda page: None)\n"
        )
        return "books.py"

    return write


def reader(name: str, **given: Any) -> Spider:
    """A spider that takes nothing from its pages."""
    spider = Spider(name, **given)
    spider.page()(lambda _: None)
    return spider


class TestSeedsThatAreRefused:
    """A crawl of nothing is no success."""

    @pytest.mark.parametrize(
        ("given", "said", "where", "hint"),
        [
            (
                "start='https://b.example:8080/x', allow='a.example'",
                "The only seed is refused, so there is nothing to crawl: offsite",
                "https://b.example:8080/x",
                "--allow b.example:8080",
            ),
            (
                "start=['b.example/x', 'https://b.example/'], allow='a.example'",
                "All 2 seeds are refused, so there is nothing to crawl: syntax (the URL cannot be read)",
                "b.example/x",
                "https://host/path",
            ),
            (
                "start=lambda: iter(['https://a.example/no']), allow='a.example', deny='/no'",
                "denied (a rule of `deny` excludes it)",
                "https://a.example/no",
                "`deny`",
            ),
            (
                "start=['http://a.example:6379/'], allow='a.example'",
                "port",
                "http://a.example:6379/",
                "-s allow_ports=PORT",
            ),
        ],
    )
    def test_if_none_is_left_it_is_wrong_usage(
        self, write: Write, capsys: pytest.CaptureFixture[str], given: str, said: str, where: str, hint: str
    ):
        """The first seed, why it was refused and what to do are told, and the exit code is 1."""
        assert cli.main(["run", write(given), "--quiet", "--json"]) == 1
        out, err = capsys.readouterr()
        error, place, remedy = err.splitlines()[-3:]
        assert out == ""
        assert said in error
        assert place == f"  where  seed {where}"
        assert hint in remedy

    def test_a_password_is_not_repeated(self, write: Write, capsys: pytest.CaptureFixture[str]):
        """What is wrong with the seed may be its password, which no log must hold."""
        assert cli.main(["run", write("start=['https://me:hunter2@a.example/'], allow='a.example'")]) == 1
        assert "hunter2" not in capsys.readouterr().err

    async def test_the_corrected_start_runs(self):
        """Nothing of the refused run is left that would call the next one complete."""
        async with serve(Shop(products=12)) as origin:
            spider = reader("one", start=origin.url, robots=False, delay=0.0, private_hosts=["127.0.0.1"])
            with pytest.raises(UsageError, match="nothing to crawl"):
                await spider.run(allow="elsewhere.example")
            ending: Ending = await spider.run(allow="127.0.0.1")
        assert (ending.state, ending.pages, ending.seeds_refused) == ("COMPLETED", 1, {})

    async def test_if_some_are_left_the_summary_counts_the_others(self):
        """One good seed makes a crawl; the others are told with their cause."""
        async with serve(Shop(products=12)) as origin:
            spider = reader("some", start=[origin.url, "https://b.example/", "b.example", "c.example"])
            ending: Ending = await spider.run(
                allow="127.0.0.1", robots=False, delay=0, private_hosts=["127.0.0.1"]
            )
        assert (ending.state, ending.exit_code, ending.pages) == ("COMPLETED", 0, 1)
        assert ending.seeds_refused == {"offsite": 1, "syntax": 2}
        assert ending.samples["seed:syntax"] == ["b.example"]


async def test_what_a_spider_counts_and_leaves_out_reaches_its_end():
    """`@spider.ended` and the caller of `run` get the author's counters, dropped and invalid items, and links left out."""
    seen: list[Ending] = []
    async with serve(Shop(products=12)) as origin:
        spider = Spider("counting", start=origin.url, key="name", delay=0, private_hosts=["127.0.0.1"])

        @spider.page("/product/{slug}")
        def product(page: Page) -> Any:
            page.count("products")
            page.drop({"name": page.title}, "no price")
            yield {"title": page.title}
            yield page.follow(urls=["https://elsewhere.example/", "mailto:x@y.example"])

        @spider.page()
        def listing(page: Page) -> Any:
            yield page.follow(".card a, a.next, nav.categories a")

        spider.ended(seen.append)
        ending: Ending = await spider.run()
    assert seen == [ending]
    assert ending.counts == {"products": 12}
    assert ending.dropped == {"no price": 12}
    assert ending.invalid == {"key": 12}
    assert ending.refused["offsite"] == ending.refused["scheme"] == 12
    assert "{'name':" in ending.samples["dropped:no price"][0]


class TestSettingsOfALibraryCall:
    """`await spider.run()` reads settings in the order of every other way to run."""

    @pytest.fixture(autouse=True)
    def performance(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        specs: list[Any] = []

        class Performance:
            def __init__(self, spider: Spider, spec: Any, *_given: Any, **_how: Any) -> None:
                specs.append(spec)

            async def run(self) -> None:
                return None

        monkeypatch.setattr(library, "Performance", Performance)
        return specs

    async def test_the_order_is_code_file_environment_call(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, performance: list[Any]
    ):
        """Each place wins over the one before it, and the keywords of the call over all of them."""
        (folder / "gossamer.toml").write_text(
            "retries = 2\nper_host = 2\ndepth = 2\n[spiders.books]\nper_host = 22\n"
        )
        monkeypatch.setenv("GOSSAMER_DEPTH", "3")
        monkeypatch.setenv("GOSSAMER_MAX_PAGES", "3")
        spider = reader("books", start="https://a.example/", concurrency=1, retries=1, depth=1)
        await spider.run(max_pages=4)
        settings = read_kept(performance[0]).settings
        assert (settings.concurrency, settings.retries, settings.per_host) == (1, 2, 22)
        assert (settings.depth, settings.max_pages) == (3, 4)

    async def test_a_value_that_cannot_be_is_refused_with_its_place(self, folder: Path):
        """A misspelt file is no surprise in the middle of a notebook: the error names file and line."""
        (folder / "gossamer.toml").write_text("\nper_host = 'many'\n")
        with pytest.raises(SettingsError) as caught:
            await Spider("books", start="https://a.example/").run()
        assert "gossamer.toml, line 2" in str(caught.value.where)


class TestFresh:
    """`--fresh` forgets the bodies with the records that named them."""

    @pytest.fixture
    def state(self, folder: Path) -> Path:
        state = folder / ".gossamer"
        (state / "blobs" / "body" / "9f").mkdir(parents=True)
        (state / "blobs" / ".new").mkdir()
        (state / "blobs" / "body" / "9f" / "x").write_bytes(b"<p>")
        (state / "frontier.db").touch()
        return state

    def test_removes_the_bodies(self, state: Path):
        """Nothing of a discarded state is left to fill the disk."""
        wiring.discard_state(state)
        assert list(state.iterdir()) == []

    def test_leaves_what_is_not_ours(self, state: Path, folder: Path):
        """A link to a larger disk keeps what others have there."""
        (state / "blobs").rename(folder / "disk")
        (folder / "disk" / "theirs").touch()
        (state / "blobs").symlink_to(folder / "disk")
        wiring.discard_state(state)
        assert [path.name for path in (folder / "disk").iterdir()] == ["theirs"]

    @pytest.mark.parametrize("alone", [True, False])
    def test_keeps_the_bodies_of_other_tasks(self, folder: Path, alone: bool):
        """Bodies are shared by all tasks of a state: they go only with the last one."""

        async def crawl() -> None:
            async with serve(Shop(products=12)) as origin:
                given: dict[str, Any] = {
                    "start": origin.url,
                    "keep_bodies": True,
                    "robots": False,
                    "delay": 0,
                }
                spiders = [reader(name, private_hosts=["127.0.0.1"], **given) for name in ("one", "two")]
                for spider in spiders[: 1 if alone else 2]:
                    await spider.run()
                await spiders[0].run(fresh=True, keep_bodies=False)

        asyncio.run(crawl())
        assert (folder / ".gossamer" / "blobs").exists() is not alone


class TestWhereCredentialsAreAtHome:
    """Which origins the credentials among a crawl's headers may go to."""

    @pytest.mark.parametrize(
        ("start", "headers", "home"),
        [
            (
                "https://shop.example/",
                {"Authorization": "x"},
                ("https://shop.example", "https://www.shop.example"),
            ),
            ("http://127.0.0.1:8000/", {"cookie": "x"}, ("http://127.0.0.1:8000",)),
            ("https://shop.example/", {"X-Team": "a"}, ()),
        ],
    )
    def test_the_origins_of_the_start(
        self, start: str, headers: dict[str, str], home: tuple[str, ...]
    ) -> None:
        """Scheme and port are those that the start names; without credentials nothing is read for it."""
        assert home_of(Spider("shop", start=start), Settings(headers=headers)) == home

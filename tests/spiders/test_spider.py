"""The declaration of a spider, and trying it offline."""

from __future__ import annotations

import asyncio
import importlib.metadata
import subprocess
import sys
import types

import msgspec
import pytest

import gossamer
from gossamer.model.errors import SettingsError, SpiderError, UsageError
from gossamer.model.request import Request
from gossamer.model.settings import Settings
from gossamer.spiders import find_spiders
from gossamer.spiders.handling import HandlerFailed
from gossamer.spiders.page import Page
from gossamer.spiders.spider import Spider

URL = "https://books.example/"


def test_the_example_of_the_design_works_as_written():
    """Routes, placeholders left out, items and links."""
    books = Spider("books", start=URL, allow="books.example")

    @books.page("/catalogue/{slug}/index.html")
    def book(page: Page):
        yield {"title": page.css("h1").text, "price": page.css(".price_color").text}

    @books.page()
    def listing(page: Page):
        yield page.follow("article h3 a, li.next a")

    one = books.try_page(URL + "catalogue/x_1/index.html", "<h1>A book</h1><p class=price_color>£1</p>")
    assert one.items == [{"title": "A book", "price": "£1"}]
    assert one.handler == "book"
    two = books.try_page(URL, "<article><h3><a href=catalogue/x_1/index.html></a></h3></article><a href=/no>")
    assert two.urls == [URL + "catalogue/x_1/index.html"]
    assert two.requests[0].depth == 1


def test_settings_are_kept_as_given_and_no_others():
    """File, environment and command line are stronger, so defaults must not hide among them."""
    spider = Spider("x", allow="a.example", deny=["b.example", "re:^x"], per_host=2, delay=0.5)
    assert spider.settings == {
        "allow": ("a.example",),
        "deny": ("b.example", "re:^x"),
        "per_host": 2,
        "delay": 0.5,
    }
    assert Spider("y").settings == {}


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"per_hosts": 2}, "did you mean per_host"),
        ({"zzzzzz": 2}, "lists them all"),
        ({"per_host": "two"}, "per_host cannot be used: Expected `int`"),
        ({"per_host": 0}, "per_host is 0; it must be at least 1"),
        ({"jitter": 1.5}, "jitter is 1.5; it must be at most 1"),
        ({"timeout": 0}, "timeout is 0.0; it must be more than 0"),
        ({"order": "random"}, "order cannot be used"),
        ({"allow": 5}, "allow cannot be used"),
    ],
)
def test_a_wrong_setting_is_told_with_the_spider_and_the_right_name(setting, said):
    """The author learns it when the file is loaded."""
    with pytest.raises(SettingsError, match=said) as caught:
        Spider("books", **setting)
    assert "Spider('books')" in str(caught.value)


def test_every_setting_can_be_given_to_a_spider():
    """No parameter of Spider hides a setting, and the default of each passes its own check."""
    defaults = {name: getattr(Settings(), name) for name in Settings.__struct_fields__}
    assert Spider("x", **defaults).settings == defaults


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "x" * 101, 5])
def test_a_name_is_a_plain_word(name):
    """It becomes the name of tasks and files."""
    with pytest.raises(SpiderError, match="no name for a spider"):
        Spider(name)


def test_other_statuses_reach_those_who_ask():
    """By route or by request; all else stays away from handlers."""
    spider = Spider("x")
    spider.page("/any", any_status=True)(lambda page: {"status": page.status})
    spider.page(label="any", any_status=True)(lambda page: {"status": page.status})
    spider.page()(lambda page: {"status": page.status})

    assert spider.try_page(URL, status=404).handler is None
    assert spider.try_page(URL, status=204).items == [{"status": 204}]
    assert spider.try_page(URL + "any", status=404).items == [{"status": 404}]
    assert spider.try_page(URL, status=404, label="any").items == [{"status": 404}]
    assert spider.wants_status(Request(URL, any_status=True), URL)
    assert not spider.wants_status(Request(URL), URL)


def test_a_trial_shows_items_as_yielded_and_as_written():
    """Objects for comparing, JSON for seeing what will be stored, counters and drops by their own names."""

    class Book(msgspec.Struct):
        title: str
        price: float | None = None

    spider = Spider("x")

    @spider.page()
    def handler(page):
        page.count("seen")
        yield Book(page.css("h1").text or "")
        yield 5

    trial = spider.try_page(URL, "<h1>A</h1>", headers={"X-A": "1"})
    assert trial.items == [Book("A")]
    assert trial.written == [{"title": "A", "price": None}]
    assert trial.counts == {"seen": 1}
    assert [d.reason for d in trial.dropped] == ["invalid:not_an_item"]


def test_label_meta_bytes_and_arguments_can_be_tried():
    """Everything a crawl would hand in; the arguments are back to their defaults afterwards."""
    spider = Spider("x", args={"category": "all"})
    spider.page(label="l")(lambda page: {"m": page.meta, "c": spider.args.category, "t": page.css("p").text})
    trial = spider.try_page(
        URL, "<meta charset=gbk><p>书</p>".encode("gbk"), label="l", meta={"a": 1}, args={"category": "new"}
    )

    assert trial.items == [{"m": {"a": 1}, "c": "new", "t": "书"}]
    assert spider.args.category == "all"


async def detail(page):
    other = await page.fetch("/detail")
    await asyncio.sleep(0)
    yield {"a": page.css("p").text, "b": other.css("p").text}


def test_an_async_handler_is_tried_in_plain_code():
    """It gets a loop, and page.fetch gets the answers that the test gives."""
    spider = Spider("x")
    spider.page()(detail)

    trial = spider.try_page(URL, "<p>one</p>", pages={URL + "detail": "<p>two</p>"})
    assert trial.items == [{"a": "one", "b": "two"}]
    with pytest.raises(HandlerFailed, match="pages=") as caught:
        spider.try_page(URL, "<p>one</p>")
    assert isinstance(caught.value.__cause__, UsageError)


async def test_an_async_handler_is_tried_inside_a_running_loop():
    """In an async test or a notebook too; its errors come back the same way."""
    spider = Spider("x", args={"n": 1})
    spider.page()(detail)

    assert spider.try_page(URL, "<p>one</p>", pages={URL + "detail": b"<p>two</p>"}).items == [
        {"a": "one", "b": "two"}
    ]
    with pytest.raises(HandlerFailed):
        spider.try_page(URL)


async def test_run_hands_the_spider_to_the_library(monkeypatch):
    """Settings are checked first, arguments are bound, and what the library returns is the summary."""
    library = types.ModuleType("gossamer.services.library")
    calls = []

    async def run_spider(spider, **settings):
        calls.append((spider, spider.args.n, settings["args"], settings["allow"]))
        return "summary"

    library.run_spider = run_spider  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "gossamer.services.library", library)
    spider = Spider("x", args={"n": 1})

    assert await spider.run(args={"n": "5"}, allow="a.example") == "summary"
    assert calls == [(spider, 5, {"n": "5"}, ("a.example",))]
    with pytest.raises(SettingsError, match="did you mean allow"):
        await spider.run(alow="a.example")


def test_spiders_of_a_file_are_found_once_each():
    """By their first name in the module, in order."""
    module = types.ModuleType("m")
    a, b = Spider("a"), Spider("b")
    vars(module).update(one=a, again=a, other=5, two=b)

    assert find_spiders(module) == [a, b]


def test_the_public_names_are_all_there():
    """Each name of the package loads, and nothing else is promised."""
    assert set(gossamer.__all__) == set(gossamer._HOMES) | {"__version__"}
    assert all(getattr(gossamer, name) is not None for name in gossamer.__all__)
    assert dir(gossamer) == sorted(gossamer.__all__)
    assert gossamer.__version__ == importlib.metadata.version("gossamer")
    with pytest.raises(AttributeError):
        gossamer.absent  # noqa: B018


def test_importing_the_package_loads_nothing():
    """`gossamer --help` does not wait for a parser."""
    program = (
        "import sys, gossamer; sys.exit(any(m in sys.modules for m in ('selectolax', 'msgspec', 'can_ada')))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_representation_tells_the_name_and_how_much_there_is():
    """One line in a debugger."""
    spider = Spider("x")
    spider.page()(lambda page: None)
    assert repr(spider) == "<Spider x: 1 routes>"
    assert "fallback" in repr(next(iter(spider.routes)))

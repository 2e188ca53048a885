"""The tutorial does what it says."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[2] / "docs/tutorial/first-spider.md"
BLOCKS = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def books(monkeypatch) -> types.ModuleType:
    module = types.ModuleType("books")
    exec(BLOCKS[0], vars(module))
    monkeypatch.setitem(sys.modules, "books", module)
    return module


def test_the_tests_of_the_tutorial_pass_on_its_spider(books):
    """What a reader copies first works."""
    tests: dict[str, object] = {}
    exec(BLOCKS[1], tests)
    functions = [function for name, function in tests.items() if name.startswith("test_")]

    assert len(functions) == 2
    for function in functions:
        function()  # type: ignore[operator]


def test_the_schema_of_the_tutorial_refuses_a_book_without_price(books):
    """The class shown makes an absent price an invalid item."""
    module = {"Page": books.Page, "Spider": books.Spider, "__name__": "books"}
    exec(BLOCKS[2], module)
    module["books"].page()(books.book)
    trial = module["books"].try_page("https://books.example/", "<h1>A</h1>")

    assert [dropped.reason for dropped in trial.dropped] == ["invalid:schema"]


def test_one_item_of_several_pages_as_shown(books):
    """The async handler fetches its second page relative to the first."""
    spider = books.Spider("books")
    exec(BLOCKS[3], {"books": spider, "Page": books.Page})
    page = "https://books.example/catalogue/x/"
    trial = spider.try_page(
        page + "index.html", "<h1>A</h1>", pages={page + "reviews.html": "<p class=review>good</p>"}
    )

    assert trial.items == [{"title": "A", "reviews": ["good"]}]

"""Arguments of a spider."""

from __future__ import annotations

import asyncio
import copy

import pytest

from gossamer.model.errors import SpiderError, UsageError
from gossamer.spiders.spider import Spider


def spider() -> Spider:
    return Spider(
        "books",
        args={"category": "all", "pages": 3, "ratio": 0.5, "deep": False, "tags": ["a"], "until": None},
    )


def test_defaults_hold_until_arguments_are_given():
    """Read as attributes or as a mapping."""
    books = spider()

    assert books.args.category == "all"
    assert dict(books.args)["pages"] == 3
    assert len(books.args) == 6


def test_text_becomes_what_the_default_is():
    """The command line gives text; handlers get numbers, bools and lists."""
    books = spider()
    books.use_args(
        {"category": "5", "pages": "7", "ratio": "2", "deep": "yes", "tags": "x, y,", "until": "2026"}
    )

    assert dict(books.args) == {
        "category": "5",
        "pages": 7,
        "ratio": 2.0,
        "deep": True,
        "tags": ["x", "y"],
        "until": "2026",
    }


def test_values_of_the_right_type_stay():
    """A program gives values; each call starts from the defaults again."""
    books = spider()
    books.use_args({"pages": 9})
    books.use_args({"tags": ["q"], "ratio": 1, "deep": True})

    assert (books.args.pages, books.args.tags, books.args.ratio, books.args.deep) == (3, ["q"], 1.0, True)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"categroy": "x"}, "did you mean 'category'"),
        ({"zzz": "x"}, "it has category"),
        ({"pages": "many"}, "'pages' cannot be 'many'"),
        ({"pages": 1.5}, "'pages' cannot be 1.5"),
        ({"deep": "perhaps"}, "true or false"),
        ({"tags": 5}, "type list"),
    ],
)
def test_what_cannot_be_is_told_with_the_way_out(given, said):
    """Unknown names with the nearest one, values with the type of the default."""
    with pytest.raises(UsageError, match=said):
        spider().use_args(given)


def test_reading_an_undeclared_argument_names_the_nearest():
    """A misspelt attribute in a handler is told like one on the command line."""
    with pytest.raises(UsageError, match="did you mean 'pages'"):
        print(spider().args.page)
    with pytest.raises(UsageError, match="declare it"):
        print(Spider("x").args.page)


@pytest.mark.parametrize("name", ["items", "keys", "get", "_x", "a-b", ""])
def test_names_that_could_not_be_read_cannot_be_declared(name):
    """`args.items` is a method of a mapping: an argument of that name would be out of reach."""
    with pytest.raises(SpiderError, match="no name for an argument"):
        Spider("x", args={name: 1})


def test_a_default_must_be_something_that_text_can_become():
    """A default of an own class is refused at once."""
    with pytest.raises(SpiderError, match="type object"):
        Spider("x", args={"a": object()})


async def test_two_tasks_of_one_spider_have_their_own_arguments():
    """A worker that runs both at once never mixes them; what they start inherits them."""
    books, gate = spider(), asyncio.Barrier(2)

    async def task(category: str) -> str:
        books.use_args({"category": category})
        await gate.wait()
        return await asyncio.create_task(read())

    async def read() -> str:
        return str(books.args.category)

    assert await asyncio.gather(task("a"), task("b")) == ["a", "b"]
    assert books.args.category == "all"


def test_the_representation_shows_no_values():
    """A token given as an argument does not reach a log; copying works."""
    books = Spider("x", args={"token": "secret"})

    assert "secret" not in repr(books.args)
    assert copy.copy(books.args).token == "secret"

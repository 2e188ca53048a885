"""Items: whatever an author yields becomes one JSON object, or is refused with a reason."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import json
import subprocess
import sys
import typing
import uuid

import msgspec
import pydantic
import pytest

from gossamer.model.errors import ItemError, UsageError
from gossamer.model.item import MAX_ITEM, REASONS, InvalidItem, ItemRules


@dataclasses.dataclass
class Book:
    title: str
    price: float | None = None


@dataclasses.dataclass
class Shelf:
    books: list[Book]
    best: Book = dataclasses.field(default_factory=lambda: Book("none"))


class Struct(msgspec.Struct):
    title: str
    price: float | None = None


class Model(pydantic.BaseModel):
    title: str
    price: float | None = None


class Typed(typing.TypedDict):
    title: str
    price: typing.NotRequired[float]


def reason(rules: ItemRules, value: object) -> str:
    with pytest.raises(InvalidItem) as caught:
        rules.item(value)
    assert caught.value.reason in REASONS
    return caught.value.reason


def stored(value: object, **rules: typing.Any) -> typing.Any:
    return json.loads(ItemRules(**rules).item(value).data)


@pytest.mark.parametrize(
    "value",
    [
        {"title": "Émile", "price": 3.5},
        Book("Émile", 3.5),
        Struct("Émile", 3.5),
        Model(title="Émile", price=3.5),
    ],
)
def test_every_kind_of_item_gives_the_same_bytes(value):
    """Dict, dataclass, msgspec struct and pydantic model are written alike: compact, UTF-8, in their order."""
    assert ItemRules().item(value).data == '{"title":"Émile","price":3.5}'.encode()


def test_usual_values_have_a_usual_form():
    """Dates are ISO 8601, decimals and UUIDs text, bytes base64, sets lists; models may be inside others."""
    value = {
        "at": dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        "price": decimal.Decimal("1.10"),
        "id": uuid.UUID(int=1),
        "raw": b"\x00",
        "tags": {"a"},
        "by": [Model(title="x")],
        "big": 10**30,
    }
    assert stored(value) == {
        "at": "2026-01-02T00:00:00Z",
        "price": "1.10",
        "id": "00000000-0000-0000-0000-000000000001",
        "raw": "AA==",
        "tags": ["a"],
        "by": [{"title": "x", "price": None}],
        "big": 10**30,
    }


@pytest.mark.parametrize("value", [5, "text", ["a"], None, 1.5, True, ("a",)])
def test_what_is_no_object_is_no_item(value):
    """A number, a text or a list yielded by mistake is told as such."""
    assert reason(ItemRules(), value) == "not_an_item"


@pytest.mark.parametrize(
    "value",
    [
        {"x": float("nan")},
        {"x": [{"y": float("-inf")}], "z": None},
        Book("a", float("nan")),
        Struct("a", float("inf")),
        Model(title="a", price=float("nan")),
        {"by": Struct("a", float("nan"))},
    ],
)
def test_a_number_that_json_cannot_write_is_refused_not_made_null(value):
    """NaN never turns silently into an absent value, wherever it hides."""
    assert reason(ItemRules(), value) == "not_json"


def test_null_itself_is_welcome():
    """None is a value: the price was not on the page."""
    assert stored({"price": None, "note": "null", "by": [Book("x")]})["price"] is None


def test_the_error_names_the_field_that_cannot_be_written():
    """An author finds the wrong value without a debugger."""
    with pytest.raises(InvalidItem, match="'price' is of type object"):
        ItemRules().item({"title": "x", "price": object()})


@pytest.mark.parametrize(
    "make", [lambda: {(1, 2): 3}, lambda: {"a": "\ud800"}, lambda: {"a": 1j}, lambda: {"a": iter([])}]
)
def test_other_values_that_are_not_json_are_refused(make):
    """Tuples as names, halves of characters, complex numbers, iterators."""
    assert reason(ItemRules(), make()) == "not_json"


def test_an_item_that_contains_itself_is_refused():
    """No recursion ends the worker."""
    value: dict[str, object] = {}
    value["self"] = value
    assert reason(ItemRules(), value) == "not_json"


def test_the_size_is_bounded():
    """One byte more than the bound is refused, the bound itself is not."""
    frame = len(b'{"a":""}')

    assert len(ItemRules().item({"a": "x" * (MAX_ITEM - frame)}).data) == MAX_ITEM
    assert reason(ItemRules(), {"a": "x" * (MAX_ITEM - frame + 1)}) == "too_large"
    assert reason(ItemRules(max_bytes=10), {"a": "xxx"}) == "too_large"


@pytest.mark.parametrize("schema", [Book, Struct, Model, Typed])
def test_a_schema_accepts_what_fits_and_refuses_what_does_not(schema):
    """A wrong type and a missing field are refused for every kind of schema."""
    rules = ItemRules(schema)

    assert json.loads(rules.item({"title": "x", "price": 2.5}).data) == {"title": "x", "price": 2.5}
    assert reason(rules, {"title": 5}) == "schema"
    assert reason(rules, {"price": 2.5}) == "schema"
    assert reason(rules, 5) == "schema"


@pytest.mark.parametrize("schema", [Book, Struct, Model])
def test_defaults_of_the_schema_are_written(schema):
    """Every stored item has every field."""
    assert stored({"title": "x"}, schema=schema) == {"title": "x", "price": None}


def test_defaults_deep_inside_are_written_too():
    """A dataclass in a dataclass is complete as well."""
    assert stored({"books": [{"title": "x"}]}, schema=Shelf) == {
        "books": [{"title": "x", "price": None}],
        "best": {"title": "none", "price": None},
    }


@pytest.mark.parametrize("schema", [Book, Struct, Typed])
def test_a_misspelt_field_is_refused_not_forgotten(schema):
    """A value that the schema has no place for is told, because it would be lost."""
    with pytest.raises(InvalidItem, match="no field 'prise'"):
        ItemRules(schema).item({"title": "x", "prise": 2})


@pytest.mark.parametrize("value", [Book(5), Struct(5)])  # type: ignore[arg-type]
def test_an_object_of_the_schema_is_checked_too(value):
    """Python checks no type when a dataclass is made; the crawl does before it is stored."""
    assert reason(ItemRules(type(value)), value) == "schema"


def test_another_class_than_the_schema_is_refused():
    """A schema is one class, not whatever looks alike."""
    assert reason(ItemRules(Book), Struct("x")) == "schema"


@pytest.mark.parametrize("schema", [subprocess, int, list[int], "Book", dict])
def test_an_impossible_schema_is_told_when_it_is_declared(schema):
    """A mistake in the declaration does not wait for the first item."""
    with pytest.raises(UsageError, match="dataclass"):
        ItemRules(schema)


def test_the_key_is_a_field_or_a_function():
    """Whole numbers and texts are keys; both kinds of items have them."""
    assert ItemRules(key="id").item({"id": 7}).key == "7"
    assert ItemRules(key="title").item(Book("x")).key == "x"
    assert ItemRules(key=lambda item: f"{item['a']}/{item['b']}").item({"a": 1, "b": 2}).key == "1/2"
    assert ItemRules().item({"id": 7}).key is None


@pytest.mark.parametrize("value", [None, "", 1.5, True, ["x"], "x" * 600])
def test_what_cannot_be_a_key_refuses_the_item(value):
    """An item without identity would overwrite another, or be stored twice."""
    assert reason(ItemRules(key="id"), {"id": value, "x": 1}) == "key"
    assert reason(ItemRules(key="other"), {"id": value, "x": 1}) == "key"


def test_an_invalid_item_is_an_item_error():
    """Whoever catches the public error catches these."""
    assert issubclass(InvalidItem, ItemError)


def test_pydantic_is_never_imported_for_its_own_sake():
    """A crawl without pydantic models does not pay its start-up time, nor need it installed."""
    program = (
        "import sys, gossamer.model.item as i; i.ItemRules(key='a').item({'a': 'x', 'b': None});"
        "sys.exit('pydantic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0

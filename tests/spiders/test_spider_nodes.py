"""Selecting elements."""

from __future__ import annotations

import pytest

from gossamer.model.errors import UsageError
from gossamer.model.request import Request
from gossamer.spiders.nodes import Node, Nodes
from gossamer.spiders.page import Page

HTML = """
<div class="book" id="one"><h3><a href="/1" title="First">The  <b>fi</b>rst
 book</a></h3><p class="price">£1</p></div>
<div class="book"><h3><a href="/2">Second</a></h3><input disabled value=""></div>
"""


@pytest.fixture
def page() -> Page:
    return Page(Request("https://shop.example/"), body=HTML.encode())


def test_a_selection_answers_for_its_first_element(page):
    """Text with tidy white space, attributes, HTML: what most handlers want of most selectors."""
    links = page.css(".book a")

    assert links.text == "The first book"
    assert links.raw_text == "The  first\n book"
    assert links.attr("title") == "First"
    assert links.attrs == {"href": "/1", "title": "First"}
    assert page.css(".price").html == '<p class="price">£1</p>'


def test_what_is_not_there_is_none(page):
    """An absent element is no empty text: the difference is data."""
    none = page.css(".absent")

    assert (none.text, none.raw_text, none.html, none.attr("href"), none.first) == (None,) * 5
    assert none.attrs == {}
    assert none.texts == []
    assert not none
    assert page.css("input").text == ""


def test_an_attribute_without_value_is_there(page):
    """`disabled` is "", an absent attribute is None."""
    field = page.css("input")

    assert field.attr("disabled") == ""
    assert field.attr("value") == ""
    assert field.attr("checked") is None
    assert field.attrs == {"disabled": "", "value": ""}


def test_a_selection_is_a_list(page):
    """It has a length, indexes, slices, iteration and plural properties."""
    links = page.css("a")

    assert len(links) == 2
    assert [node.text for node in links] == links.texts == ["The first book", "Second"]
    assert links[-1].attr("href") == "/2"
    assert isinstance(links[0], Node)
    assert isinstance(links[:1], Nodes)
    assert links.each_attr("href") == ["/1", "/2"]
    assert links.each_attr("title") == ["First"]
    with pytest.raises(IndexError):
        links[2]


def test_selecting_goes_on_inside(page):
    """Of one element or of many, what is inside them, each once and never the element itself."""
    book = page.css("#one")

    assert book.css("a").text == "The first book"
    assert book[0].css(".price").text == "£1"
    assert not book.css(".book")
    assert not book[0].css("#one")
    assert page.css("div").css("a").texts == ["The first book", "Second"]
    assert len(page.css("div, h3").css("a")) == 2
    assert book.css("a")[0].tag == "a"


def test_one_is_exactly_one(page):
    """Where more or fewer would be a wrong value, `one` says so."""
    assert page.css("#one").one().attr("id") == "one"
    for selector, count in ((".book", 2), (".absent", 0)):
        with pytest.raises(UsageError, match=f"{count} elements match"):
            page.css(selector).one()


def test_a_wrong_selector_is_shown(page):
    """The error repeats the selector and tells those who come from Scrapy what replaces ::text."""
    for selector in ("a[[", "a::text", ""):
        with pytest.raises(UsageError, match="CSS selector") as caught:
            page.css(selector)
        assert selector in str(caught.value)
    with pytest.raises(UsageError, match="CSS selector"):
        page.css("div")[0].css("a[[")


def test_representations_are_short(page):
    """What a debugger shows fits on a line."""
    assert repr(page.css("a")) == "<Nodes ['a', 'a']>"
    assert repr(page.css("a")[0]) == "<Node a>"

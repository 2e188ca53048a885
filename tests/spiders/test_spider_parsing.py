"""Pages that were written to be expensive."""

from __future__ import annotations

import resource
import time

import pytest

from gossamer.model.request import Request
from gossamer.spiders.page import Page
from gossamer.spiders.parsing import PageTooDeep, parse

HOSTILE = {
    "nested": b"<div>" * 100_000 + b"<a href='/x'>deep</a>",
    "nested, with end tags that close nothing": b"<span></i>" * 100_000,
    "nested in several kinds": b"<div><p><ul><li>" * 40_000,
    "names in capitals": b"<DIV><Span>" * 100_000,
    "formatting left open": b"<div>"
    + b"".join(b"<font x=%d>" % n for n in range(5_000))
    + b"</div>"
    + b"<div>x</div>" * 5_000,
    "formatting left open after a show of end tags": b"</font>" * 3_000
    + b"".join(b"<div><font x=%d>" % n for n in range(3_000))
    + b"</div>x" * 3_000,
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_page_that_would_cost_out_of_proportion_is_refused_quickly(source):
    """Neither seconds nor gigabytes are spent on it, and the error says what is left to do."""
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PageTooDeep, match=r"page\.text"):
        parse(source)

    assert time.perf_counter() - began < 2
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


HONEST = {
    "deep, but no deeper than ever written": b"<div>" * 500 + b"<p>x</p>" * 20_000,
    "a table of thousands of rows": b"<table>"
    + b"<tr><td>a<td><b>b</b><td><a href=/x>c</a>" * 10_000
    + b"</table>",
    "a list that closes nothing": b"<ul>" + b"<li>x<br><img src=y>" * 20_000,
    "one bold left open": b"<b>" + b"<p>x</p>" * 20_000,
    "the same font left open everywhere": b"<p><font size=1>x</p>" * 3_000,
    "code with much markup": b"<pre>" + b"<i class=k>x</i><b class=n>y</b>\n" * 10_000,
    "a script that writes markup": b"<script>" + b"w('<div><b>');" * 2_000 + b"</script><p>x",
}


@pytest.mark.parametrize("source", HONEST.values(), ids=HONEST.keys())
def test_large_and_untidy_pages_are_parsed(source):
    """What real sites send, however careless, is no attack."""
    assert parse(source).html.css("p, td, li, i")


def test_below_the_bounds_the_worst_page_is_bearable():
    """What is not looked through at all stays within seconds, also on a busy machine."""
    worst = b"<div>" + b"".join(b"<font x=%d>" % n for n in range(740)) + b"</div>" + b"<div>x</div>" * 370
    began = time.perf_counter()
    assert parse(worst).html.css("font")

    assert time.perf_counter() - began < 10


def test_text_remains_of_a_page_that_is_not_parsed():
    """A handler can still take from the text what it needs."""
    page = Page(Request("https://shop.example/"), body=HOSTILE["nested"])

    assert "deep" in page.text
    with pytest.raises(PageTooDeep):
        page.css("a")


@pytest.mark.parametrize("tag", [b'<base href="/other/">', b"<BaSe\nhref=/other/>", b"<base/href=/other/>"])
def test_the_base_of_a_large_page_is_found_however_it_is_written(tag):
    """Links of a page with very many tags are joined to its <base>, also in the body and in odd spelling."""
    body = b"<html><body>" + tag + b"<p>x</p>" * 5_000 + b"<a href=leaf>l</a>"
    page = Page(Request("https://shop.example/dir/"), headers={"content-type": "text/html"}, body=body)

    assert page.links == ["https://shop.example/other/leaf"]

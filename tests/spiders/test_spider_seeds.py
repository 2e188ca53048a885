"""Where a crawl starts."""

from __future__ import annotations

import io
import itertools
import sys
from pathlib import Path

import pytest

from gossamer.model.errors import SpiderError
from gossamer.model.request import Request
from gossamer.spiders.spider import Spider

A, B = "https://a.example/", "https://b.example/"


async def seeds(start) -> list:
    return [seed async for seed in Spider("x", start=start).seeds()]


async def agen():
    yield A
    yield Request(B, label="b")


async def coroutine():
    return [A, B]


def gen():
    yield A
    yield B


@pytest.mark.parametrize("start", [[A, B], (A, B), gen, coroutine, lambda: [A, B], lambda: iter([A, B])])
async def test_lists_functions_and_coroutines_give_their_urls(start):
    """However the URLs are given, they come in their order."""
    assert await seeds(start) == [A, B]


async def test_single_values_requests_and_async_generators():
    """A URL, a request, and a generator that awaits between its URLs."""
    assert await seeds(A) == [A]
    assert await seeds(Request(A)) == [Request(A)]
    assert await seeds(agen) == [A, Request(B, label="b")]
    assert await seeds(()) == []


async def test_an_endless_start_is_read_as_far_as_it_is_asked():
    """Nothing is collected first."""
    spider = Spider("x", start=lambda: (f"{A}{n}" for n in itertools.count()))
    stream = spider.seeds()

    assert [await anext(stream) for _ in range(3)] == [f"{A}0", f"{A}1", f"{A}2"]
    await stream.aclose()


async def test_a_file_has_one_url_a_line(tmp_path):
    """Blank lines, comments, a byte order mark and Windows line ends are no URLs; thousands of lines are streamed."""
    file = tmp_path / "urls.txt"
    file.write_bytes(
        b"\xef\xbb\xbf"
        + f"{A}\r\n\n  # comment\n {B} \n".encode()
        + b"".join(b"%s%d\n" % (A.encode(), n) for n in range(2500))
    )

    found = await seeds(file)
    assert found[:3] == [A, B, f"{A}0"]
    assert len(found) == 2502
    assert await seeds(lambda: file) == found


async def test_an_endless_line_is_cut(tmp_path):
    """A file that is no list of URLs costs no memory; its pieces are refused one by one as too long."""
    file = tmp_path / "urls.txt"
    file.write_text("x" * 100_000)
    assert max(map(len, await seeds(file))) <= 32 * 1024


async def test_standard_input_is_read_line_by_line(monkeypatch):
    """The way of pipes: "-"."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{A}\n{B}"))
    assert await seeds("-") == [A, B]


async def test_a_missing_file_is_told_by_its_name(tmp_path):
    """The error holds the path."""
    with pytest.raises(SpiderError, match=r"absent\.txt"):
        await seeds(Path(tmp_path / "absent.txt"))


@pytest.mark.parametrize(
    "start", ["books.example", "urls.txt", "ftp://a.example/", "", 5, None, b"x", {"a": 1}]
)
def test_what_can_never_start_a_crawl_is_refused_at_once(start):
    """The hint tells how URLs, files and standard input are given."""
    with pytest.raises(SpiderError, match=r"cannot start from.*Try:"):
        Spider("x", start=start)


async def test_what_a_function_gives_must_be_urls():
    """A mistake in a generator is told with the value."""
    with pytest.raises(SpiderError, match="5, which is no URL"):
        await seeds(lambda: [5])
    with pytest.raises(SpiderError, match="gave a int"):
        await seeds(lambda: 5)

"""Pages that are meant to harm whoever reads them: rows H01 to H11 of the catalogue, through the whole engine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import crawl, crawl_site
from hostile_origin import GOOD, HOSTILE, asked, hostile_site, html, in_pieces, linking, page

from gossamer import Page, Spider
from gossamer.model.record import State
from gossamer.testing.contracts.transport import Visit

TITLE = "<title>the page</title>"
UTF8 = "text/html; charset=utf-8"
TEXT = "<title>東京の天気</title><p>" + "今日は雨、明日は晴れ。" * 300


def typed(body: bytes, content_type: str) -> bytes:
    return page(body, b"Content-Type: " + content_type.encode())


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("<div>" * 100_000, id="H01 divisions"),
        pytest.param("<b><i><u>" * 40_000, id="H01 formatting"),
        pytest.param("<table><tr><td>" * 40_000, id="H01 tables"),
        pytest.param("".join(f"<font size={n}>" for n in range(20_000)) + "<p>" * 20_000, id="H01 fonts and paragraphs"),
        pytest.param("<svg><g>" * 60_000, id="H01 foreign elements"),
        pytest.param("<select><option>" * 60_000, id="H01 options"),
        pytest.param("</p>" * 200_000, id="H01 ends without beginnings"),
        pytest.param("<textarea>" * 300_000, id="H08 text areas"),
        pytest.param("<script>" + "<!--<script>" * 200_000, id="H08 scripts in comments"),
        pytest.param("<title>" * 300_000, id="H08 titles in titles"),
        pytest.param("<a href='" * 200_000, id="H08 quotes that do not end"),
        pytest.param("<a" * 1_000_000, id="H08 tags that do not end"),
    ],
)  # fmt: skip
async def test_a_page_too_deep_to_parse_costs_itself_alone(tmp_path: Path, body: str) -> None:
    """H01, H08: a hundred thousand tags, or what looks like it, are handled or are the handler's error, in bounded time."""
    began = time.perf_counter()
    async with hostile_site(html(TITLE + body)) as here:
        found = await crawl_site(tmp_path, here, max_body=10_000_000)
        assert await found.complaints(here, {}) == []
        end = await found.ended(here.url(HOSTILE))
        assert end in {(State.DONE, ""), (State.FAILED, "parse_error")}
        assert (end == (State.DONE, "")) is any(item["title"] == "the page" for item in found.items)
    assert time.perf_counter() - began < 3


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"<p title='{'x' * 5_000_000}'>", id="H03 an attribute of 5 MB"),
        pytest.param("x" * 5_000_000, id="H03 a text of 5 MB"),
        pytest.param("<a " + "x=1 " * 500_000 + ">", id="H08 half a million attributes"),
        pytest.param(" " * 5_000_000 + "x", id="H08 long blanks"),
        pytest.param("<!--" * 500_000, id="H08 comments that do not end"),
        pytest.param("<![CDATA[" * 300_000, id="H08 sections that do not end"),
        pytest.param("&" * 2_000_000, id="H08 ampersands"),
        pytest.param("&amp" * 500_000, id="H08 entities without an end"),
        pytest.param("<meta charset=" * 300_000, id="H08 charsets without end"),
        pytest.param("<base href=" * 300_000, id="H08 bases without end"),
    ],
)
async def test_bait_for_slow_readers_is_read_in_time(tmp_path: Path, body: str) -> None:
    """H03, H08: a page of megabytes without structure is DONE in a time that grows no faster than it."""
    began = time.perf_counter()
    async with hostile_site(html(TITLE + body)) as here:
        found = await crawl_site(tmp_path, here, max_body=10_000_000)
        assert await found.wrongs(here) == []
        assert found.item(here.url(HOSTILE))["title"] == "the page"
    assert time.perf_counter() - began < 3


async def test_links_without_end_are_cut_and_counted(tmp_path: Path) -> None:
    """H02: of 200,000 links the first `max_links` are taken; how many were left is counted."""
    many = html(TITLE + "".join(f"<a href=/n/{n}>x</a>" for n in range(200_000)))
    async with hostile_site(many) as here:
        found = await crawl_site(tmp_path, here, max_body=10_000_000, max_links=20)
        last = {here.url("/n/19"): (State.DONE, "http_404"), here.url("/n/20"): None}
        assert await found.complaints(here, {here.url(HOSTILE): (State.DONE, ""), **last}) == []
        counters = await found.counters()
    assert (counters["refused:max_links"], counters["discovered"]) == (199_980, 24)


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        pytest.param(html(b"<title>a\0b</title>"), "a\ufffdb", id="H04 NUL"),
        pytest.param(typed(b"<title>\xed\xa0\x80</title>", UTF8), "\ufffd" * 3, id="H04 half a surrogate pair"),
        pytest.param(typed(b"<title>\xc0\xaf</title>", UTF8), "\ufffd" * 2, id="H04 overlong UTF-8"),
        pytest.param(html("<title>&#xD800;&#x110000;&#0;</title>"), "\ufffd" * 3, id="H04 entities that are no characters"),
        pytest.param(html(b"\xef\xbb\xbf" + TITLE.encode()), "the page", id="H04 mark of UTF-8"),
        pytest.param(typed(b"\xff\xfe" + TITLE.encode("utf-16-le"), UTF8), "the page", id="H04 mark against header"),
        pytest.param(html(TEXT.replace("<p>", '<meta charset="big5"><p>').encode()), None, id="H05 meta that lies"),
        pytest.param(typed(TEXT.encode("gbk", "replace"), "text/html; charset=gbk"), "東京の天気", id="H05 header gbk"),
        pytest.param(typed((f'<meta charset="big5">{TEXT}').encode(), UTF8), "東京の天気", id="H05 header before meta"),
        pytest.param(typed(TEXT.encode("shift_jis"), "text/html; charset=no-such-thing"), "東京の天気", id="H05 unknown label"),
        pytest.param(typed(TEXT.encode(), "text/html; charset=" + "x" * 50_000), "東京の天気", id="H05 endless label"),
        *[
            pytest.param(typed(TEXT.encode(), f"text/html; charset={label}"), "東京の天気", id=f"H06 {label}")
            for label in ("zlib_codec", "hex", "base64", "utf-7", "rot13", "idna", "unicode_escape", "undefined", "mbcs", "'../x'")
        ],
    ],
)  # fmt: skip
async def test_text_is_read_as_browsers_read_it(tmp_path: Path, answer: bytes, title: str | None) -> None:
    """H04 to H06: broken bytes are replaced, labels are those of the standard, and the item is valid UTF-8."""
    async with hostile_site(answer) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here) == []
        item = found.item(here.url(HOSTILE))
        assert title in {None, item["title"]}
        assert "\0" not in item["text"]
        item["text"].encode("utf-8", "strict")


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("charset", ["gb18030", "shift_jis", "utf-8", "euc-jp"])
async def test_characters_cut_at_chunks_are_whole(tmp_path: Path, charset: str, size: int) -> None:
    """H07: text in several bytes a character is right wherever its chunks are cut."""
    body = f'<meta charset="{charset}">{TEXT[:60]}'.encode(charset)
    async with hostile_site(in_pieces(body, size)) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here) == []
        item = found.item(here.url(HOSTILE))
    assert item["title"] == "東京の天気"
    assert item["text"].endswith(TEXT[:60])


@pytest.mark.parametrize(
    ("bases", "path"),
    [
        ("<base href='javascript:alert(1)'><base href='/b/'><base href='/c/'>", "/b/x"),
        ("<base href='http://[broken/'><base href='file:///etc/'><base href='/b/'>", "/b/x"),
        ("<base href=''><base href='/b/'>", "/x"),
        ("<base target=_top><base href='/b/'>", "/b/x"),
        ("<base href='data:,'>", "/x"),
        ("<base href='http://127.0.0.2/'>", None),
    ],
)
async def test_the_first_base_that_can_be_used_counts(tmp_path: Path, bases: str, path: str | None) -> None:
    """H09: links are joined to the first http(s) base; one that leads offsite takes its links out of scope."""
    async with hostile_site({HOSTILE: html(f"{bases}<a href=x>x</a>"), path or "/": html()}) as here:
        found = await crawl_site(tmp_path, here)
        ends = {here.url(path): (State.DONE, "")} if path else {}
        assert await found.complaints(here, {here.url(HOSTILE): (State.DONE, ""), **ends}) == []
        assert found.ending.pages == 4 + len(ends)


async def test_links_that_are_no_pages_are_counted(tmp_path: Path) -> None:
    """H10: scripts, mails, calls, blobs and megabytes of data are no pages, however their schemes are written."""
    hrefs = [
        "javascript:alert(1)", "java\tscript:alert(1)", "&#106;avascript:alert(2)", " \x01javascript:x", "JAVASCRIPT:x",
        "mailto:a@b.example", "tel:123", "blob:http://127.0.0.1/x", "data:text/html," + "x" * 5_000_000, "vbscript:x",
        "about:blank", "view-source:http://127.0.0.1/", "filesystem:http://127.0.0.1/x", "ws://127.0.0.1/", "#top",
    ]  # fmt: skip
    async with hostile_site(linking(*hrefs)) as here:
        found = await crawl_site(tmp_path, here, max_body=10_000_000)
        assert await found.wrongs(here) == []
        counters = await found.counters()
        assert set(asked(here)) == {"/robots.txt", HOSTILE, "/good/1", "/good/2", "/good/3"}
    assert (counters["refused:scheme"], counters["refused:fragment"]) == (len(hrefs) - 1, 1)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param(b"\x7fELF\x02\x01\x01", "text/html", id="a program"),
        pytest.param(b"%PDF-1.7\n", "text/html", id="a document"),
        pytest.param(b"PK\x03\x04", "text/html", id="an archive"),
        pytest.param(bytes(64), "text/html", id="zeros"),
        pytest.param(b"", "image/png", id="markup called an image"),
        pytest.param(b"", "application/octet-stream", id="markup called a file"),
    ],
)
async def test_what_is_no_markup_has_no_links(tmp_path: Path, body: bytes, content_type: str) -> None:
    """H11: what its bytes or its type say is no page is DONE, kept as it came, and nothing in it is followed."""
    body += TITLE.encode() + b'<a href="/trap">x</a>'
    async with hostile_site(typed(body, content_type)) as here:
        found = await crawl_site(tmp_path, here, keep_bodies=True)
        assert (
            await found.complaints(here, {here.url(HOSTILE): (State.DONE, ""), here.url("/trap"): None}) == []
        )
        kept = [file.read_bytes() for file in (tmp_path / "state" / "blobs").rglob("*") if file.is_file()]
        assert body in kept


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
XML = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "ha">{}]><r><a>{}</a><b>whole</b></r>'


@pytest.mark.parametrize(
    ("declared", "used"),
    [
        pytest.param(LAUGHS, "&l11;", id="X01 billion laughs"),
        pytest.param(f'<!ENTITY q "{"x" * 50_000}">', "&q;" * 50_000, id="X01 quadratic"),
        pytest.param("<!ENTITY e SYSTEM 'file:///etc/passwd'>", "&e;", id="X02 a file"),
        pytest.param("<!ENTITY e SYSTEM 'http://HOST/inside'>", "&e;", id="X02 a URL"),
        pytest.param("<!ENTITY % e SYSTEM 'http://HOST/inside'> %e;", "x", id="X02 a parameter"),
    ],
)
async def test_entities_of_xml_are_not_expanded(tmp_path: Path, declared: str, used: str) -> None:
    """X01, X02: a handler that looks into XML by XPath meets neither bombs nor files, and nothing is fetched for it."""

    async def tells(visit: Visit) -> None:
        body = XML.format(declared, used).replace("HOST", f"{visit.site.host}:{visit.site.port}")
        await visit.say(typed(body.encode(), "application/xml"))

    async with hostile_site(tells) as here:
        spider = Spider("feeds", start=[here.url(path) for path in (HOSTILE, *GOOD)])

        @spider.page()
        def read(page: Page) -> Iterator[Any]:
            title = page.title if page.is_html else "".join(page.xpath("//text()").getall())
            yield {"url": page.url, "title": title}

        found = await crawl(tmp_path, spider, max_body=10_000_000)
        assert await found.wrongs(here) == []
        text = found.item(here.url(HOSTILE))["title"]
        assert "root:" not in text
        assert len(text) < 200_000
        assert asked(here)["/inside"] == 0
    assert found.ending.seconds < 2

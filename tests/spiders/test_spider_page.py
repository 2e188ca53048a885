"""The page a handler is given."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest

from gossamer.model.errors import InvalidURL, UsageError
from gossamer.model.request import Request
from gossamer.model.url import UrlOptions
from gossamer.spiders.headers import Headers
from gossamer.spiders.page import Page

URL = "https://shop.example/list/"


def page(body: str | bytes = b"", content_type: str | None = "text/html; charset=utf-8", **given) -> Page:
    headers = {} if content_type is None else {"content-TYPE": content_type}
    data = body.encode() if isinstance(body, str) else body
    return Page(Request(URL, label="list", meta={"a": 1}, depth=2), headers=headers, body=data, **given)


def test_the_request_shines_through():
    """Label, meta and depth are those the page was asked for with."""
    got = page()
    assert (got.url, got.label, got.meta, got.depth, got.status, got.ok) == (
        URL,
        "list",
        {"a": 1},
        2,
        200,
        True,
    )


def test_headers_mind_no_case_and_keep_several_values():
    """A mapping of first values; `all` gives each; the representation shows no value."""
    headers = Headers([("Set-Cookie", "a=1"), ("X-One", "1"), ("set-cookie", "b=secret")])

    assert headers["SET-COOKIE"] == "a=1"
    assert headers.all("Set-cookie") == ["a=1", "b=secret"]
    assert headers.all("absent") == []
    assert headers.get("absent") is None
    assert "x-one" in headers
    assert 1 not in headers
    assert list(headers) == ["set-cookie", "x-one"]
    assert len(headers) == 2
    assert headers.fields()[2] == ("set-cookie", "b=secret")
    assert "secret" not in repr(headers)


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        ("<p>東京</p>".encode("shift_jis"), "text/html; charset=Shift_JIS", "shift_jis"),
        ('<meta charset="gbk"><p>東京</p>'.encode("gbk"), "text/html", "gbk"),
        (b"\xef\xbb\xbf" + "<p>東京</p>".encode(), "text/html; charset=big5", "utf-8"),
        ("<p>東京</p>".encode("utf-16"), None, "utf-16le"),
        ("<p>東京</p>".encode(), None, "utf-8"),
    ],
)
def test_text_and_selectors_read_the_page_in_its_encoding(body, content_type, encoding):
    """Header, meta and byte order mark decide as in browsers, and both ways of reading agree."""
    got = page(body, content_type)

    assert got.css("p").text == "東京"
    assert "<p>東京</p>" in got.text
    assert got.encoding == encoding


def test_broken_bytes_are_replaced_alike_in_text_and_selectors():
    """What is not UTF-8 becomes U+FFFD, so everything taken from a page can be stored."""
    got = page(b"<p class='\xff'>a\xff\xed\xa0\x80b</p>")

    assert got.css("p").attr("class") == "\ufffd"
    assert got.css("p").text.strip("ab\ufffd") == ""
    assert got.text.encode()


def test_a_byte_order_mark_is_no_content():
    """The mark neither shows in the text nor pushes the head into the body."""
    got = page(b"\xef\xbb\xbf<title>t</title>")

    assert got.title == "t"
    assert got.css("head title").text == "t"
    assert got.text == "<title>t</title>"


def test_the_title_is_tidied_or_absent():
    """White space of the source is no data; no title is None."""
    assert page("<title>\n A  shop </title>").title == "A shop"
    assert page("<p>x</p>").title is None


@pytest.mark.parametrize("magic", [b"%PDF-1.7 ", b"PK\x03\x04", b"\x7fELF", b"\x89PNG\r\n", b"\x00" * 40])
def test_a_file_that_calls_itself_html_is_not_parsed(magic):
    """A server's mistake does not make links and text of a binary."""
    got = page(magic + b"<a href='/x'>x</a><p>text</p>")

    assert not got.is_html
    assert got.links == []
    assert not got.css("a")
    assert got.xpath("//a").getall() == []


def test_only_html_has_links():
    """JSON that contains markup leads nowhere by itself; a selector that is asked for explicitly still reads it."""
    got = page('{"html": "<a href=/x>x</a>"}', "application/json")

    assert got.links == []
    assert len(got.css("a")) == 1


def test_json_is_decoded_and_typed():
    """Plain values, or an instance of the type that is asked for."""

    class Product(msgspec.Struct):
        id: int

    got = page('{"id": 7}', "application/json")

    assert got.json() == {"id": 7}
    assert got.json(type=Product) == Product(7)
    with pytest.raises(UsageError, match="does not fit"):
        page('{"id": "x"}').json(type=Product)
    with pytest.raises(UsageError, match=r"not JSON.*shop\.example"):
        page("<p>").json()


@pytest.mark.parametrize(
    ("body", "value"),
    [
        ('\ufeff{"a": 1}'.encode(), {"a": 1}),
        ('{"a": "東"}'.encode("utf-16"), {"a": "東"}),
        (b'{"a": "\\ud83d"}', {"a": "\ufffd"}),
        (b'{"a": "\\ud83d\\ude00", "\\udc00": []}', {"a": "😀", "\ufffd": []}),
        (b'{"a": "\xff"}', {"a": "\ufffd"}),
    ],
)
def test_json_of_the_wild_is_read(body, value):
    """Byte order marks, other encodings and half characters do not cost the page."""
    assert page(body, "application/json; charset=utf-8" if b"\xff\xfe" not in body else None).json() == value


def test_json_that_nests_too_deep_is_an_error_of_the_page():
    """A hostile document does not end the worker."""
    with pytest.raises(UsageError, match="not JSON"):
        page(b"[" * 100_000).json()


def test_xpath_and_selector_are_parsels():
    """People who come from Scrapy find what they know."""
    got = page("<ul><li>a<li>b</ul><a href='x'>x</a>")

    assert got.xpath("//li/text()").getall() == ["a", "b"]
    assert got.xpath("//li[.=$v]/text()", v="b").get() == "b"
    assert got.selector.css("a::attr(href)").get() == "x"
    with pytest.raises(UsageError, match="XPath"):
        got.xpath("//[")


def test_xml_is_read_as_xml_and_expands_no_entities():
    """A feed keeps its case and name spaces; an entity bomb stays small."""
    bomb = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
    got = page(
        f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY l0 "lol">{bomb}]><r><Item>a</Item><b>&l9;</b></r>',
        "application/xml",
    )

    assert got.xpath("//Item/text()").get() == "a"
    assert len(got.xpath("string(//b)").get() or "") < 100


def test_parsel_is_not_loaded_without_need():
    """The tenth of a second that it costs is paid by those who use XPath."""
    program = (
        "import sys, gossamer; p = gossamer.Page(gossamer.Request('http://a.example/'), body=b'<p><a href=/x>x</a>');"
        "p.css('p').text, p.links; gossamer.Spider('x'); sys.exit('parsel' in sys.modules or 'lxml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_join_resolves_like_a_link_of_the_page():
    """Relative links become the URL they mean, and what is no web address is refused."""
    got = page("<base href='/base/'>")

    assert got.join("a?b#c") == "https://shop.example/base/a?b"
    with pytest.raises(InvalidURL):
        got.join("mailto:a@b.example")


def test_join_obeys_the_options_of_the_task():
    """Dropped parameters are dropped wherever a URL is made."""
    got = page("<a href='/x?utm_a=1&b=2'>", url_options=UrlOptions(drop_params=("utm_*",)))

    assert got.join("/y?utm_z=1") == "https://shop.example/y"
    assert got.links == ["https://shop.example/x?b=2"]


def test_counting_adds_up_and_bounds_its_names():
    """Counters are the author's; their names can be shown as labels."""
    got = page()
    got.count("seen")
    got.count("seen", 2)

    assert got.noted() == ({"seen": 3}, [])
    assert got.noted() == ({}, [])
    for name in ("", "x" * 65, "a\nb"):
        with pytest.raises(UsageError, match="counter"):
            got.count(name)


async def test_fetch_asks_whoever_runs_the_page():
    """The URL is resolved on the page, options are those of a request, depth is one more."""
    asked: list[Request] = []

    async def fetch(request: Request) -> Page:
        asked.append(request)
        return page("<p>other</p>")

    got = page(fetch=fetch)
    other = await got.fetch("../x", headers={"X-A": "1"})
    await got.fetch(Request("/y", method="POST", body=b"z"))

    assert other.css("p").text == "other"
    assert [(r.url, r.depth, r.method) for r in asked] == [
        ("https://shop.example/x", 3, "GET"),
        ("https://shop.example/y", 3, "POST"),
    ]
    assert asked[0].headers == {"X-A": "1"}


async def test_fetch_without_a_network_says_so():
    """Offline the handler learns what the test has to give."""
    with pytest.raises(UsageError, match="pages="):
        await page().fetch("/x")


def test_the_representation_is_short():
    """A page in a log is its status and URL, not its body."""
    assert repr(page("secret")) == f"<Page 200 {URL}>"


def test_a_body_that_broke_off_is_marked():
    """A handler can tell a page that may lack its end; ordinary pages are whole."""
    assert page("<p>x").truncated is False
    assert page("<p>x", truncated=True).truncated is True

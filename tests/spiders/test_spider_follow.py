"""Links: from attributes to URLs with shared options."""

from __future__ import annotations

import asyncio
import re

import pytest

from gossamer.model.errors import UsageError
from gossamer.model.request import Request, encode
from gossamer.model.url import UrlOptions
from gossamer.spiders.effects import Effects
from gossamer.spiders.handling import handle_now
from gossamer.spiders.page import Page
from gossamer.spiders.spider import Spider

BASE = "https://shop.example"
HTML = """<base target=x><ul class=nav><li class=next><a href="?page=2#top">next</a></li></ul>
<a href="/a">a</a> <a href="/a#x">again</a> <a href=" b ">b</a> <area href="/map"> <a name=x>no link</a>
<a href="mailto:x@y.example">m</a> <a href="java&#9;script:x">j</a> <a href="#top">t</a> <a href="">self</a>
<iframe src="/frame"></iframe>"""


def page(html: str = HTML, content_type: str = "text/html; charset=utf-8", **given) -> Page:
    return Page(
        Request(f"{BASE}/list/"),
        headers={"Content-Type": content_type},
        body=html.encode("gb18030" if "gb" in content_type else "utf-8"),
        **given,
    )


def paths(follow) -> list[str]:
    return [url.removeprefix(BASE) for url in follow.urls]


def test_all_links_are_absolute_canonical_and_single():
    """`a` and `area`, without fragments and what is no web address, each once in the order of the page."""
    got = page()

    assert got.links == got.follow().urls
    assert paths(got.follow()) == ["/list/?page=2", "/a", "/list/b", "/map", "/list/"]
    assert got.follow().refused == {"scheme": 2, "fragment": 1}


def test_a_selector_chooses_and_reaches_into_what_is_no_link_itself():
    """A list element stands for the links inside it; an iframe for its source."""
    got = page()

    assert paths(got.follow("li.next a")) == ["/list/?page=2"]
    assert paths(got.follow("li.next")) == ["/list/?page=2"]
    assert paths(got.follow("ul, iframe, a[name]")) == ["/list/?page=2", "/frame"]
    assert paths(got.follow(".absent")) == []


def test_nodes_can_be_followed():
    """What was selected already needs no second selector."""
    got = page()

    assert paths(got.follow(got.css("a"))) == paths(got.follow("a"))
    assert paths(got.follow(got.css("area")[0])) == ["/map"]


def test_xpath_gives_elements_or_attributes():
    """Both forms that people write mean the same links."""
    got = page()

    assert paths(got.follow(xpath="//a[.='a']")) == ["/a"]
    assert paths(got.follow(xpath="//a[.='a']/@href")) == ["/a"]
    assert paths(got.follow(xpath="//li | //iframe")) == ["/list/?page=2", "/frame"]


def test_a_regex_keeps_urls_it_is_found_in():
    """It looks at the whole URL, alone or behind a selector."""
    got = page()

    assert paths(got.follow(regex=r"page=\d")) == ["/list/?page=2"]
    assert paths(got.follow("a", regex=re.compile("/a$"))) == ["/a"]


def test_urls_may_be_given():
    """A text, a list or a generator; relative ones are resolved; of JSON pages too."""
    got = page("{}", "application/json")

    assert paths(got.follow(urls="/x")) == ["/x"]
    assert paths(got.follow(urls=(f"p{n}" for n in range(2)))) == ["/list/p0", "/list/p1"]
    assert got.follow(urls=["ftp://a.example/"]).refused == {"scheme": 1}


def test_only_one_source_at_a_time():
    """Two would leave open whether both or either is meant."""
    with pytest.raises(UsageError, match="one of"):
        page().follow("a", urls=["/x"])


def test_the_first_usable_base_counts():
    """A base that is no web address is passed over, as are later ones."""
    html = "<base href='javascript:x'><base href='/one/'><base href='/two/'><a href=x>x</a>"
    assert paths(page(html).follow()) == ["/one/x"]


def test_queries_are_written_in_the_encoding_of_the_page():
    """A Chinese shop's search link means what its own server understands."""
    assert paths(page("<a href='/s?q=书'>", "text/html; charset=gb2312").follow()) == ["/s?q=%CA%E9"]
    assert paths(page("<a href='/s?q=书'>").follow()) == ["/s?q=%E4%B9%A6"]


@pytest.mark.parametrize("charset", ["gb2312", "utf-8"])
@pytest.mark.parametrize(
    "href", ["/s?q=书", "?q=书#top", BASE + "/书?q=书&r=%ff", "//shop.example/s?q=书", "/s"]
)
def test_a_link_means_the_same_however_it_is_asked_for(href: str, charset: str):
    """`follow`, `join`, a yielded Request and `fetch` make one URL of a link, so it is one page to the crawl."""
    fetched = []

    async def fetch(request):
        fetched.append(request.url)
        return got

    got = page(f"<a href='{href}'>书</a>", f"text/html; charset={charset}", fetch=fetch)
    spider = Spider("x")

    @spider.page()
    def handler(page):
        yield Request(href, priority=1)

    effects = handle_now(spider, got)
    assert isinstance(effects, Effects)
    asyncio.run(got.fetch(href))

    [url] = got.follow().urls
    assert [got.join(href)] == [request.url for request in effects.follows] == fetched == [url]
    assert ("%CA%E9" in url) == (charset == "gb2312" and "q=" in href)


def test_too_many_links_are_cut_and_counted():
    """A page of links without end costs what its bound says."""
    got = page("".join(f"<a href='/{n}'>" for n in range(20)), max_links=5).follow()

    assert len(got) == 5
    assert got.refused == {"max_links": 15}


def test_options_are_shared_and_travel_encoded_once():
    """All links carry the same bytes; without options none."""
    got = page().follow("a", label="book", priority=3, meta={"from": 1}, dedupe=False)
    requests = list(got)

    assert got.extra == encode(requests[0]) == encode(requests[-1])
    assert (got.priority, got.label) == (3, "book")
    assert {(r.label, r.priority, r.meta["from"], r.dedupe) for r in requests} == {("book", 3, 1, False)}
    assert [r.url for r in requests] == got.urls
    assert page().follow("a").extra == b""
    assert page().follow("a").label is None
    assert [r.url for r in page().follow("a")] == got.urls


def test_options_are_checked_where_they_are_written():
    """A mistake is told at `follow`, not later by the engine."""
    with pytest.raises(UsageError, match="Meta must be JSON"):
        page().follow("a", meta={"x": object()})


def test_the_task_s_url_options_apply():
    """What the task drops from URLs is dropped before links are made unique."""
    got = page("<a href='/x?s=1'><a href='/x?s=2'>", url_options=UrlOptions(drop_params=("s",)))
    assert paths(got.follow()) == ["/x"]


def test_the_representation_counts():
    """Thousands of links are one line in a log."""
    assert repr(page().follow("a", label="x")) == "<Follow 4 links label='x'>"

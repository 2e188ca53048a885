"""URL patterns."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.errors import SpiderError
from gossamer.model.url import canonical
from gossamer.spiders.patterns import Pattern

SITE = "https://books.example"


@pytest.mark.parametrize(
    ("pattern", "url", "values"),
    [
        ("/catalogue/{slug}/index.html", "/catalogue/a-b_1/index.html", {"slug": "a-b_1"}),
        ("/catalogue/{slug}/index.html", "/catalogue/a/b/index.html", None),
        ("/catalogue/{slug}/index.html", "/catalogue//index.html", None),
        ("/catalogue/{slug}/index.html", "/catalogue/x/index.html?a=1", {"slug": "x"}),
        ("/page/{n:int}", "/page/12", {"n": 12}),
        ("/page/{n:int}", "/page/twelve", None),
        ("/page/{n:int}", "/page/" + "9" * 30, None),
        ("/{rest:path}", "/", {"rest": ""}),
        ("/{rest:path}", "/a/b/c", {"rest": "a/b/c"}),
        ("/a/{rest:path}/end", "/a/b/c/end", {"rest": "b/c"}),
        ("/{slug}-{id:int}.html", "/a-b-12.html", {"slug": "a-b", "id": 12}),
        ("/", "/", {}),
        ("/", "/a", None),
        ("/a.b", "/axb", None),
        ("/t/{name}", "/t/%E6%9D%B1", {"name": "東"}),
        ("/книга/{x}", "/книга/1", {"x": "1"}),
        ("/a b/{x}", "/a b/1", {"x": "1"}),
        ("/list?page={n:int}", "/list?page=3", {"n": 3}),
        ("/list?page={n:int}&q={q}", "/list?x=&q=a%20b+c&page=3", {"n": 3, "q": "a b c"}),
        ("/list?next={url}", "/list?next=/a/b", {"url": "/a/b"}),
        ("/list?page={n:int}", "/list", None),
        ("/list?page={n:int}", "/list?page=x", None),
        ("/list?kind=book", "/list?kind=book", {}),
        ("/list?kind=book", "/list?kind=books", None),
        (SITE + "/a/{x}", "/a/1", {"x": "1"}),
        (SITE, "/", {}),
        (SITE.upper().replace("HTTPS", "https") + "/a", "/a", {}),
        ("https://other.example/a/{x}", "/a/1", None),
        ("http://books.example/a/{x}", "/a/1", None),
        ("https://books.example:8443/", "/", None),
    ],
)
def test_a_pattern_gives_the_values_of_its_placeholders(pattern, url, values):
    """Segments, numbers, rests, hosts and queries match as documented, with values decoded."""
    assert Pattern(pattern).match(canonical(SITE + url)) == values


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("catalogue/{x}", "neither a path nor a URL"),
        ("ftp://a.example/", "neither a path nor a URL"),
        ("", "neither a path nor a URL"),
        ("//a.example/x", "neither a path nor a URL"),
        ("https://{host}/", "placeholder in its host"),
        ("https://exa mple/", "no usable host"),
        ("/{a}{b}", "nothing between them"),
        ("/{a}-{b}-{c}", "more than two placeholders"),
        ("/{a}/{a}", "twice"),
        ("/{a:path}/{b:path}", "more than one placeholder for a path"),
        ("/{a:integer}", "the kinds are"),
        ("/{1a}", "no placeholder"),
        ("/{a", "no placeholder"),
        ("/a}", "no placeholder"),
    ],
)
def test_a_pattern_that_cannot_be_is_told_when_it_is_written(pattern, said):
    """Every refusal shows the pattern or the placeholder and a way out."""
    with pytest.raises(SpiderError, match=said):
        Pattern(pattern)


def test_the_more_specific_pattern_sorts_first():
    """With a host, with a query, then literal before number before text before rest, from the left."""
    ordered = [
        SITE + "/{rest:path}",
        "/list?page={n:int}&q={q}",
        "/list?page={n:int}",
        "/book/new",
        "/book/{n:int}",
        "/book/{slug}-x",
        "/book/{slug}",
        "/book/{rest:path}/end",
        "/book/{rest:path}",
        "/{a}/new",
        "/{rest:path}",
    ]
    patterns = [Pattern(written) for written in reversed(ordered)]
    patterns.sort(key=lambda pattern: pattern.specificity)

    assert [pattern.written for pattern in patterns] == ordered


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        st.characters(exclude_characters="{}?#/\\.%", exclude_categories=["Cs", "Cc"]),
        min_size=1,
        max_size=10,
    )
)
def test_a_literal_pattern_fits_the_url_written_alike(text):
    """Whatever an author copies from the address bar matches the canonical form of the same text."""
    text = f"a{text}b"  # blanks at the end of a URL are not part of it
    assert Pattern(f"/{text}/{{x}}").match(canonical(f"{SITE}/{text}/1")) == {"x": "1"}


@pytest.mark.parametrize(
    "pattern", ["/{a}-{b}.html", "/{r:path}/{a}-{b}.html", "/{r:path}-{b}.x", "/{a}-{n:int}-{b}-{m:int}"]
)
@pytest.mark.parametrize(
    "url", ["-" * 8000, "-/" * 4000, ("-" * 400 + "/") * 20, "1-" * 4000, ("1-" * 240 + "/") * 16]
)
def test_no_url_makes_a_pattern_slow(pattern, url):
    """The worst URLs that a stranger can send cost a fraction of a second."""
    compiled = Pattern(pattern)
    began = time.perf_counter()
    compiled.match(f"{SITE}/{url}")

    assert time.perf_counter() - began < 0.5

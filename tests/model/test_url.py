"""One canonical text per page: rows U01 to U15, H09 and H10 of the bad-input catalogue."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.errors import InvalidURL
from gossamer.model.url import (
    MAX_URL,
    UrlOptions,
    canonical,
    document_base,
    encode_query,
    fingerprint,
    fingerprint_of_key,
    glob_matches,
    host_key,
    is_address,
    is_public_suffix,
    join_links,
    origin_of,
    site_of,
    within,
)


def reason(url: str, base: str | None = None, options: UrlOptions | None = None) -> str:
    with pytest.raises(InvalidURL) as caught:
        canonical(url, base, options=options)
    return caught.value.reason


@pytest.mark.parametrize(
    "same",
    [
        "HTTP://Example.COM",
        "http://example.com:80/",
        "http://example.com./",
        "http://example.com/?",
        "http://example.com/#top",
        "http://example.com/?#",
        "http://example.com/a/..",
        "http://example.com/%2e%2E/",
        "  http://exa\nmple.com/\t",
        "ht\ttp://example.com/",
        "http:example.com",
        "http:/\\example.com",
        "http:///example.com",
        "http://example。com/",
        "http://ex%61mple.com",
    ],
)
def test_spellings_of_one_page_become_one_text(same: str):
    """Case, default port, trailing dot, empty query, fragment, blanks and slashes do not make new pages."""
    assert canonical(same) == "http://example.com/"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.b/x%2Fy", "http://a.b/x/y"),
        ("http://a.b//x", "http://a.b/x"),
        ("http://a.b/x/", "http://a.b/x"),
        ("http://a.b/?a=1&b=2", "http://a.b/?b=2&a=1"),
        ("http://a.b/?a=", "http://a.b/?a"),
        ("http://a.b/?a=1&a=2", "http://a.b/?a=2"),
        ("http://a.b/?a;b", "http://a.b/?a&b"),
        ("http://a.b/%2561", "http://a.b/%61"),
        ("http://a.b/%7e", "http://a.b/~"),
        ("http://a.b/X", "http://a.b/x"),
        ("http://a.b/??", "http://a.b/"),
        ("http://a.b/?x?", "http://a.b/?x"),
        ("http://a.b/%00", "http://a.b/"),
        ("http://a.b/", "https://a.b/"),
    ],
)
def test_what_may_be_two_pages_stays_two_texts(one: str, other: str):
    """Nothing that a server can tell apart is merged by default."""
    assert canonical(one) != canonical(other)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://a.b/", "scheme"),
        ("file:///etc/passwd", "scheme"),
        ("java\tscript:alert(1)", "scheme"),
        ("\x01javascript:alert(1)", "scheme"),
        ("data:text/html,x", "scheme"),
        ("gopher://127.0.0.1:6379/_", "scheme"),
        ("http://u:p@a.b/", "userinfo"),
        ("http://a@b@c/", "userinfo"),
        ("http://good.com\\@@evil.com@", ""),
        ("http://@a.b/", ""),
        ("http://a.b:0/", "port"),
        ("http://a.b:22/", "port"),
        ("http://a.b:25/", "port"),
        ("http://a.b:6379/", "port"),
        ("http://a.b:65536/", "syntax"),
        ("http://", "syntax"),
        ("", "syntax"),
        ("a.b", "syntax"),
        ("http://a b/", "syntax"),
        ("http://[::1%25eth0]/", "syntax"),
        ("http://xn--a/", "syntax"),
        ("http://256.1.1.1/", "syntax"),
        ("http://./", "host"),
        ("http://a../", "host"),
        ("http://a..b/", "host"),
        ("http://{0.__class__}/", "host"),
        ("http://$(x)/", "host"),
        ("http://*.a.b/", "host"),
        ("http://" + "a" * 64 + ".com/", "host"),
        ("http://" + "a." * 130 + "com/", "host"),
        ("http://" + "é" * 10_000 + ".com/", "host"),
        ("http://a.b/" + "x" * MAX_URL, "url_too_long"),
        ("http://a.b/" + "é" * 2000, "url_too_long"),
        ("http://a.b/" + "x" * 2_000_000, "url_too_long"),
    ],
)
def test_what_is_refused_and_why(url: str, why: str):
    """Each refusal names its reason; an empty expectation means the URL is fine although it looks odd."""
    if why:
        assert reason(url) == why
    else:
        assert "@" not in origin_of(canonical(url)).prefix


def test_confusing_authorities_have_one_meaning():
    """The host that is checked is the one a browser would dial."""
    assert canonical("http://good.com\\@evil.com") == "http://good.com/@evil.com"
    assert canonical("http://good.com#@evil.com") == "http://good.com/"
    assert canonical("//evil.com", "http://good.com/") == "http://evil.com/"
    assert canonical("/\\evil.com", "http://good.com/") == "http://evil.com/"


@pytest.mark.parametrize(
    "host", ["2130706433", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.", "１２７.0.0.1"]
)
def test_disguised_addresses_are_unmasked(host: str):
    """Every spelling of an IPv4 address becomes dotted decimals before anyone judges it."""
    assert canonical(f"http://{host}/") == "http://127.0.0.1/"


def test_embedded_ipv4_is_normalised():
    """IPv6 literals have one spelling, so a guard compares one form."""
    assert host_key(canonical("http://[::ffff:127.0.0.1]/")) == "[::ffff:7f00:1]:80"


def test_the_length_limit_is_exact():
    """8,192 characters pass and one more does not; a long fragment does not count."""
    longest = "http://a.b/" + "x" * (MAX_URL - 11)
    assert len(canonical(longest)) == MAX_URL
    assert canonical("http://a.b/#" + "x" * 100_000) == "http://a.b/"
    assert reason(longest + "x") == "url_too_long"


def test_a_port_can_be_allowed_but_not_port_zero():
    """The owner of a task opens single ports; 0 is never one."""
    options = UrlOptions(allow_ports=frozenset({6379, 0}))
    assert canonical("http://a.b:6379/x", options=options) == "http://a.b:6379/x"
    assert join_links("http://a.b:6379/", ["y"], options=options)[0] == ["http://a.b:6379/y"]
    assert reason("http://a.b:0/", options=options) == "port"
    assert reason("http://a.b:22/", options=options) == "port"


def test_lone_surrogates_are_replaced():
    """Text that cannot be UTF-8 still gives a URL, as in browsers."""
    assert canonical("http://a.b/\ud800x") == "http://a.b/%EF%BF%BDx"


def test_errors_never_show_credentials_or_control_characters():
    """The message of a refused URL can be logged as it is."""
    with pytest.raises(InvalidURL) as caught:
        canonical("http://user:s3cret@a.b/\r\nX-Evil: 1")
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "a.b" in str(caught.value)


def test_parameters_can_be_sorted_and_dropped():
    """Both work on the text as written: values are kept to the byte."""
    options = UrlOptions(sort_query=True, drop_params=("utm_*", "sid"))
    url = "http://a.b/?b=%2f&utm_source=x&a=2&a=1&utm%5Fx=1&sid=9&c"
    assert canonical(url, options=options) == "http://a.b/?a=2&a=1&b=%2f&c"
    assert canonical("http://a.b/?sid=9", options=options) == "http://a.b/"


def test_links_are_joined_counted_and_unique():
    """One call gives the page's links in order, and every link left out is counted by its reason."""
    hrefs = [
        "/b",
        "c?",
        "#x",
        "",
        "javascript:void(0)",
        "mailto:x@y",
        "/b#1",
        "JavaScript:1",
        "http://u@h/",
        "//o.org",
        "http://[",
    ]
    urls, refused = join_links("http://a.b/p/q", hrefs)
    assert urls == ["http://a.b/b", "http://a.b/p/c", "http://a.b/p/q", "http://o.org/"]
    assert refused == {"fragment": 1, "scheme": 3, "userinfo": 1, "syntax": 1}


def test_a_ten_megabyte_data_link_costs_nothing():
    """Huge inline links are skipped unread, however they are spelled."""
    hrefs = ["data:" + "x" * 10_000_000, "da\tta:" + "x" * 10_000_000]
    began = time.perf_counter()
    urls, refused = join_links("http://a.b/", hrefs)
    assert time.perf_counter() - began < 0.3
    assert urls == []
    assert refused.total() == 2


@pytest.mark.parametrize(
    ("charset", "query"),
    [
        ("gbk", "%C4%E3%80"),
        ("big5", "%A7A%26%238364%3B"),
        ("shift_jis", "%26%2320320%3B%26%238364%3B"),
        ("utf-8", "%E4%BD%A0%E2%82%AC"),
        ("windows-1252", "%26%2320320%3B%80"),
    ],
)
def test_queries_are_written_in_the_charset_of_the_page(charset: str, query: str):
    """A search link on a legacy page asks the server what a browser would ask; the path stays UTF-8."""
    urls, _ = join_links("http://a.b/", ["/é?q=你€#你"], charset=charset)
    assert urls == [f"http://a.b/%C3%A9?q={query}"]


def test_encoding_leaves_plain_queries_alone():
    """Only non-ASCII queries are touched."""
    assert encode_query("/é?a=b#é", "gbk") == "/é?a=b#é"
    assert encode_query("/x?é#é", "windows-1252") == "/x?%E9#é"


def test_the_first_usable_base_wins():
    """Base tags that are no web addresses are passed over."""
    assert document_base("http://a.b/x", ["javascript:1", "http://u@c/", "/d/", "/e/"]) == "http://a.b/d/"
    assert document_base("http://a.b/x", []) == "http://a.b/x"


def test_hosts_and_sites():
    """Host keys always hold the port; sites are registrable domains as far as the short list knows."""
    assert host_key("https://example.com/x") == "example.com:443"
    assert host_key("http://example.com:8080/x") == "example.com:8080"
    assert within("a.b.c", "b.c")
    assert within("b.c", "b.c")
    assert not within("ab.c", "b.c")
    assert not within("1.127.0.0.1", "127.0.0.1")
    assert site_of("www.shop.example.co.uk") == "example.co.uk"
    assert site_of("a.b.example.com") == "example.com"
    assert site_of("x.s3.amazonaws.com") == "x.s3.amazonaws.com"
    assert site_of("127.0.0.1") == "127.0.0.1"
    assert site_of("localhost") == "localhost"
    assert is_address("[::1]")
    assert is_public_suffix("com")
    assert is_public_suffix("com.cn")
    assert not is_public_suffix("example.com")


def test_fingerprints_tell_requests_apart():
    """Sixteen bytes differ by method, URL, body and by whether an author chose the key."""
    url = "http://a.b/"
    prints = {
        fingerprint("GET", url),
        fingerprint("GET", url + "x"),
        fingerprint("HEAD", url),
        fingerprint("POST", url),
        fingerprint("POST", url, b"x"),
        fingerprint("POST", url + "x"),
        fingerprint("GET", url, b"x"),
        fingerprint_of_key(url),
    }
    assert len(prints) == 8
    assert {len(p) for p in prints} == {16}
    assert fingerprint("GET", url, b"") == fingerprint("GET", url)


def test_fingerprints_are_the_same_for_ever():
    """Stored keys depend on these bytes."""
    assert fingerprint("GET", "http://a.b/").hex() == "c2e06254ca33cb807ea57c8cbc5fe4b3"
    assert fingerprint("POST", "http://a.b/", b"x").hex() == "2abc52613dbe4815122944e8aa0b2095"
    assert fingerprint_of_key("book-1").hex() == "2752c844fdf4ab2c5e2f6c220abb4fd6"


@pytest.mark.parametrize(
    ("glob", "text", "fits"),
    [
        ("utm_*", "utm_source", True),
        ("utm_*", "xutm_", False),
        ("a*a", "a", False),
        ("a*a", "aa", True),
        ("*b*", "abc", True),
        ("*", "", True),
        ("a", "a", True),
        ("a.c", "abc", False),
        ("a*b*b", "ab", False),
    ],
)
def test_globs(glob: str, text: str, fits: bool):
    """A star is any run; everything else is literal."""
    assert glob_matches(glob, text) is fits


def test_globs_are_linear():
    """A pattern full of stars cannot stall the crawl."""
    began = time.perf_counter()
    assert not glob_matches("*a" * 50 + "b", "a" * 8000)
    assert time.perf_counter() - began < 0.3


url_text = st.text(st.sampled_from(list("abcZ019./:?#&=%25@[]\\ \t\né中;+-_~{}|^'\"")), max_size=60)


@settings(max_examples=300, deadline=None)
@given(url_text, st.sampled_from(["http://", "https://", "", "HTTP:", "//"]), st.booleans())
def test_canonical_is_a_fixed_point(text: str, start: str, sort: bool):
    """Canonical form of a canonical form is itself, with a base, without one, and with options."""
    options = UrlOptions(sort_query=sort, drop_params=("a", "b*"))
    try:
        url = canonical(start + text, "http://a.b/c/d?e", options=options)
    except InvalidURL:
        return
    assert canonical(url, options=options) == url
    assert canonical(url, "https://other.example/", options=options) == url
    assert url.isascii()
    assert "#" not in url
    assert not set(url) & set(' \t\r\n\x00"<>')
    assert origin_of(url).reason == ""
    assert url.startswith(origin_of(url).prefix + "/")


@settings(max_examples=200, deadline=None)
@given(st.lists(url_text, max_size=8))
def test_join_agrees_with_canonical(hrefs: list[str]):
    """The fast path gives exactly what joining one by one gives."""
    base = "http://a.b/c/d?e"
    expected: dict[str, None] = {}
    bad = 0
    for href in hrefs:
        try:
            if href.startswith("#"):
                raise InvalidURL("syntax")
            expected[canonical(href, base)] = None
        except InvalidURL:
            bad += 1
    urls, refused = join_links(base, hrefs)
    assert urls == list(expected)
    assert refused.total() == bad

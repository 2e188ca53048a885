"""Cookies: rows D07 and D08 of the bad-input catalogue, and RFC 6265."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.cookies import (
    MAX_AGE,
    MAX_DOMAINS,
    MAX_HEADER,
    MAX_LINES,
    MAX_PER_DOMAIN,
    CookieJar,
    _moment,
    parse,
)

NOW = 1_700_000_000.0
URL = "https://www.example.com/shop/list?x=/y"


def jar(*lines: str, url: str = URL) -> CookieJar:
    filled = CookieJar()
    filled.store(url, lines, NOW)
    return filled


def sent(filled: CookieJar, url: str = URL, now: float = NOW) -> str | None:
    return filled.header_for(url, now)


def test_what_was_set_is_sent_back():
    """Longer paths first, then in the order they were set."""
    filled = jar("a=1; Path=/", "b=2", "c = x y ; path=/shop", "d=", 'e="q"; Path=/')
    assert sent(filled) == 'b=2; c=x y; d=; a=1; e="q"'


def test_a_new_value_replaces_the_old_one():
    """Name, domain and path are the key of a cookie."""
    filled = jar("a=1", "a=2", "a=3; Path=/")
    assert sent(filled) == "a=2; a=3"


def test_hosts_keep_their_cookies():
    """Without a domain, a cookie goes to its host alone; with one, to all hosts of the domain."""
    filled = jar("own=1", "all=2; Domain=.EXAMPLE.com; Path=/")
    assert sent(filled, "https://www.example.com:8443/shop/") == "own=1; all=2"
    assert sent(filled, "https://example.com/shop/") == "all=2"
    assert sent(filled, "https://x.www.example.com/") == "all=2"
    assert sent(filled, "https://badexample.com/") is None


@pytest.mark.parametrize(
    "domain",
    [
        "com",
        "co.uk",
        "com.cn",
        "github.io",
        "other.com",
        "x.www.example.com",
        "ample.com",
        "www.example.com.evil.org",
        "*",
    ],
)
def test_foreign_and_public_domains_are_refused(domain: str):
    """No host speaks for another owner, nor for everybody under a suffix."""
    assert parse(f"a=1; Domain={domain}", URL, NOW) is None
    assert parse("a=1; Domain=co.uk", "https://shop.co.uk/", NOW) is None
    assert parse("a=1; Domain=0.0.1", "https://127.0.0.1/", NOW) is None


def test_a_suffix_or_address_may_keep_its_own():
    """`github.io`, `localhost` and addresses have cookies for themselves only."""
    for host in ("github.io", "localhost", "127.0.0.1", "[::1]"):
        cookie = parse(f"a=1; Domain={host}", f"https://{host}/", NOW)
        assert cookie is not None
        assert cookie.host_only


def test_secure_cookies_need_tls():
    """They are neither accepted from, nor sent to, nor replaced over plain HTTP."""
    filled = jar("s=1; Secure; Path=/")
    plain = "http://www.example.com/"
    assert sent(filled, plain) is None
    assert filled.store(plain, ["s=2; Path=/"], NOW) == 1
    assert filled.store(plain, ["t=2; Secure"], NOW) == 1
    assert sent(filled) == "s=1"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("__Host-a=1; Secure; Path=/", True),
        ("__Host-a=1; Secure", False),
        ("__Host-a=1; Secure; Path=/; Domain=example.com", False),
        ("__secure-a=1", False),
        ("__Secure-a=1; secure", True),
    ],
)
def test_prefixes_keep_their_promise(line: str, kept: bool):
    """A name that claims protection must have it."""
    assert (parse(line, URL, NOW) is not None) is kept


@pytest.mark.parametrize(
    "line",
    [
        "",
        "a",
        "=1",
        "a b=1",
        "a,b=1",
        "é=1",
        "a=1\x00",
        "a=1\r\nX: y",
        "a\x01=1",
        "a=中",
        "a=" + "x" * 4096,
        "x" * 1_000_000,
    ],
)
def test_illegal_cookies_are_refused_and_counted(line: str):
    """No control character ever reaches a header; the caller learns the number for one log line."""
    filled = CookieJar()
    assert filled.store(URL, [line, "ok=1"], NOW) == 1
    assert sent(filled) == "ok=1"


def test_everything_is_bounded():
    """Ten thousand cookies, many domains and fat values do not grow the jar or a request without end."""
    filled = CookieJar()
    assert filled.store(URL, (f"n{n}=1" for n in range(10_000)), NOW) == 10_000 - MAX_LINES
    header = sent(filled)
    assert header is not None
    assert header.count("=") == MAX_PER_DOMAIN
    assert f"n{MAX_LINES - 1}=1" in header
    for n in range(MAX_DOMAINS + 10):
        filled.store(f"https://h{n}.org/", ["a=1"], NOW)
    assert len(filled._domains) == MAX_DOMAINS
    fat = jar(*(f"n{n}={'x' * 4000}" for n in range(20)))
    assert len(sent(fat) or "") <= MAX_HEADER


def test_expired_cookies_are_evicted_before_living_ones():
    """A full domain loses what is dead first."""
    filled = jar("old=1", "dead=1; Max-Age=1", *(f"n{n}=1" for n in range(MAX_PER_DOMAIN - 2)))
    filled.store(URL, ["new=1"], NOW + 2)
    header = sent(filled, now=NOW + 2) or ""
    assert "old=1" in header
    assert "new=1" in header


def test_cookies_end():
    """Max-Age wins over Expires; zero and past dates remove; nothing lasts more than 400 days."""
    filled = jar("a=1; Max-Age=10; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "b=2; Max-Age=99999999999")
    assert sent(filled, now=NOW + 9) == "a=1; b=2"
    assert sent(filled, now=NOW + 10) == "b=2"
    assert sent(filled, now=NOW + MAX_AGE) is None
    filled.store(URL, ["b=; Max-Age=0"], NOW)
    assert sent(filled, now=NOW) == "a=1"
    filled.store(URL, ["a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT"], NOW)
    assert filled._domains == {}


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", 784111777.0),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 784111777.0),
        ("Sun Nov  6 08:49:37 1994", 784111777.0),
        ("Sun, 06-Nov-1994 08:49:37 GMT", 784111777.0),
        ("06 Nov 1994", None),
        ("Sun, 06 Foo 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 28:49:37 GMT", None),
        ("Sun, 46 Nov 1994 08:49:37 GMT", None),
        ("tomorrow", None),
    ],
)
def test_dates_of_servers(text: str, moment: float | None):
    """The forms seen in the wild are read, the rest makes a cookie without end date."""
    assert _moment(text) == moment


@pytest.mark.parametrize(
    ("cookie_path", "url_path", "goes"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a", "/ab", False),
        ("/a/", "/a/b", True),
        ("/a/", "/a", False),
        ("/", "/x", True),
        ("x", "/shop/y", True),
        ("x", "/y", False),
    ],
)
def test_paths(cookie_path: str, url_path: str, goes: bool):
    """A cookie goes to its path and below; a senseless path is the folder of the page."""
    assert (sent(jar(f"a=1; Path={cookie_path}"), f"https://www.example.com{url_path}") is not None) is goes


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_line_is_survived(lines: list[str]):
    """Whatever is set, the header that comes out holds only what a header may hold."""
    filled = CookieJar()
    refused = filled.store(URL, lines, NOW)
    assert 0 <= refused <= len(lines)
    header = sent(filled) or ""
    assert not set(header) & set("\r\n\x00\t")
    header.encode("latin-1")

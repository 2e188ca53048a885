"""Redirects and credentials: rows D01 to D12 of the bad-input catalogue."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.errors import InvalidURL
from gossamer.model.redirects import Redirect, follow
from gossamer.model.url import UrlOptions, canonical

HERE = "http://a.b/x/y"
HEADERS = (
    ("Authorization", "Bearer t"),
    ("cookie", "c=1"),
    ("Host", "a.b"),
    ("Proxy-Authorization", "Basic p"),
    ("Content-Type", "text/plain"),
    ("Content-Length", "3"),
    ("Accept", "*/*"),
)


def go(
    location: str | bytes | None, status: int = 302, method: str = "GET", body: bytes | None = None
) -> Redirect | None:
    return follow(status, method, HEADERS, body, HERE, location)


def sure(
    location: str | bytes, status: int = 302, method: str = "GET", body: bytes | None = None
) -> Redirect:
    redirect = go(location, status, method, body)
    assert redirect is not None
    return redirect


def names(redirect: Redirect) -> set[str]:
    return {name.lower() for name, _ in redirect.headers}


@pytest.mark.parametrize(
    ("status", "method", "then", "dropped"),
    [
        (301, "POST", "GET", True),
        (302, "POST", "GET", True),
        (303, "POST", "GET", True),
        (303, "PUT", "GET", True),
        (303, "HEAD", "HEAD", False),
        (303, "GET", "GET", False),
        (301, "PUT", "PUT", False),
        (302, "HEAD", "HEAD", False),
        (307, "POST", "POST", False),
        (308, "POST", "POST", False),
    ],
)
def test_methods_change_by_the_fetch_rules(status: int, method: str, then: str, dropped: bool):
    """A method that becomes GET leaves its body and the headers about it behind."""
    redirect = sure("/z", status, method, b"abc")
    assert (redirect.url, redirect.method, redirect.drop_body) == ("http://a.b/z", then, dropped)
    assert ("content-type" in names(redirect)) is not dropped
    assert ("content-length" in names(redirect)) is not dropped


@pytest.mark.parametrize(
    "target", ["http://other.org/", "https://a.b/", "http://a.b:8080/", "http://sub.a.b/", "//c.d/"]
)
def test_credentials_stay_with_their_origin(target: str):
    """Another host, scheme or port gets neither Authorization nor a Cookie set by hand."""
    assert names(sure(target)) == {"content-type", "content-length", "accept"}


def test_credentials_travel_within_the_origin():
    """The same scheme, host and port may see them; Host and the proxy's password are never sent on."""
    assert names(sure("http://A.B:80/z")) == {
        "authorization",
        "cookie",
        "content-type",
        "content-length",
        "accept",
    }


@pytest.mark.parametrize("status", [200, 204, 300, 304, 305, 306, 309, 404])
def test_other_statuses_are_no_redirects(status: int):
    """Only the five statuses of the standard lead elsewhere."""
    assert go("/z", status) is None


@pytest.mark.parametrize("location", [None, "", " \t", b""])
def test_no_location_is_no_redirect(location: str | bytes | None):
    """A redirect to nowhere is an answer like any other."""
    assert go(location) is None


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("file:///etc/passwd", "scheme"),
        ("data:text/html,x", "scheme"),
        ("java\tscript:1", "scheme"),
        ("gopher://a.b/", "scheme"),
        ("ftp://a.b/", "scheme"),
        ("http://u:p@a.b/", "userinfo"),
        ("http://a.b:22/", "port"),
        ("http://a..b/", "host"),
        ("/z\r\nX-Evil: 1", "bad_location"),
        ("/z\n", "bad_location"),
        (b"/z\x00", "bad_location"),
        ("http://[", "bad_location"),
        ("/" + "x" * 9000, "url_too_long"),
    ],
)
def test_bad_targets_are_named(location: str | bytes, reason: str):
    """Nothing but a clean http or https URL comes out of a redirect."""
    with pytest.raises(InvalidURL) as caught:
        go(location)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/é".encode(), "http://a.b/%C3%A9"),
        ("/é".encode().decode("latin-1"), "http://a.b/%C3%A9"),
        (b"/\xe9", "http://a.b/%E9"),
        ("/中", "http://a.b/%E4%B8%AD"),
        ("  ../z#f ", "http://a.b/z"),
        ("?", HERE),
        ("//evil.org/z", "http://evil.org/z"),
        ("/\\evil.org/z", "http://evil.org/z"),
    ],
)
def test_locations_are_read_as_browsers_do(location: str | bytes, url: str):
    """Raw UTF-8, other bytes, blanks and odd slashes lead where a browser would go."""
    assert sure(location).url == url


def test_a_redirect_to_itself_is_seen():
    """The same request again is marked; a POST that becomes a GET of the same URL is a new request."""
    assert sure("y#frag").to_itself
    assert not sure("z").to_itself
    assert not sure("y", 302, "POST", b"x").to_itself
    assert sure("y", 307, "POST", b"x").to_itself


def test_options_of_the_task_apply():
    """The target gets the same canonical form as any link of the task."""
    redirect = follow(301, "GET", (), None, HERE, "/z?utm_a=1", options=UrlOptions(drop_params=("utm_*",)))
    assert redirect is not None
    assert redirect.url == "http://a.b/z"


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=60),
    st.sampled_from([301, 302, 303, 307, 308]),
    st.sampled_from(["GET", "POST", "HEAD"]),
)
def test_any_location_is_answered(location: bytes, status: int, method: str):
    """Whatever bytes a server sends, the outcome is a canonical URL, None, or a named refusal."""
    try:
        redirect = go(location, status, method, b"x")
    except InvalidURL:
        return
    if redirect is not None:
        assert canonical(redirect.url) == redirect.url
        if not redirect.url.startswith("http://a.b/"):
            assert not {"authorization", "cookie"} & names(redirect)

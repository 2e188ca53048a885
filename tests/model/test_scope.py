"""Which URLs belong to a task."""

from __future__ import annotations

import time

import pytest

from gossamer.model.errors import SettingsError
from gossamer.model.scope import _REMEMBERED, Boundary, Scope, seed_hosts
from gossamer.model.url import canonical, host_key


def refusal(scope: Scope, url: str, depth: int = 0) -> str | None:
    return Boundary(scope).refusal(url, host_key(url), depth)


@pytest.mark.parametrize(
    ("entry", "inside", "outside"),
    [
        ("example.com", ["http://example.com/", "https://example.com:8443/x"], ["http://www.example.com/", "http://xexample.com/"]),
        ("EXAMPLE.com.", ["http://example.com/"], ["http://example.org/"]),
        ("example.com:8080", ["http://example.com:8080/"], ["http://example.com/"]),
        ("example.com:443", ["https://example.com/"], ["http://example.com/"]),
        ("*.example.com", ["http://a.b.example.com/"], ["http://example.com/", "http://badexample.com/"]),
        ("*.example.com:81", ["http://a.example.com:81/"], ["http://a.example.com/"]),
        ("*", ["http://any.thing/"], []),
        ("bücher.example", ["http://xn--bcher-kva.example/"], ["http://bucher.example/"]),
        ("127.0.0.1:8009", ["http://127.0.0.1:8009/"], ["http://127.0.0.1:8010/"]),
        ("[::1]", ["http://[::1]:99/"], ["http://[::2]/"]),
        ("https://example.com/docs/", ["https://example.com/docs/x"], ["https://example.com/", "http://example.com/docs/x"]),
        ("https://example.com", ["https://example.com/"], ["https://example.com.evil.org/", "https://example.community/"]),
        ("example.com/docs", ["http://example.com/docs", "https://example.com/docs2"], ["https://example.com/x"]),
        ("https://example.com/*/docs/*", ["https://example.com/a/b/docs/c"], ["https://example.com/docs/c"]),
        ("https://*.Example.com/Docs*", ["https://a.example.com/Docs/x"], ["https://a.example.com/docs", "https://evil.org/.example.com/Docs"]),
        ("example.com/*.html", ["http://example.com/a.html"], ["http://example.com/a.html?x"]),
        ("https://*.a.com", ["https://b.a.com/x?y"], ["http://b.a.com/x", "https://a.com/"]),
        ("*/logout*", ["http://any.org/x/logout?y"], ["http://any.org/x"]),
        ("/admin", ["http://any.org/admin/x"], ["http://any.org/x/admin"]),
        ("/*/edit", ["http://any.org/a/edit"], ["http://any.org/a/edit/1"]),
        ("*?print=*", ["http://any.org/a?print=1"], ["http://any.org/a?x=1"]),
        (r"re:/\d{4}/$", ["http://any.org/2024/"], ["http://any.org/24/"]),
    ],
)  # fmt: skip
def test_each_kind_of_entry_means_what_it_says(entry: str, inside: list[str], outside: list[str]):
    """The same entry lets in as `allow` what it keeps out as `deny`."""
    for url in inside:
        assert refusal(Scope(allow=(entry,)), canonical(url)) is None
        assert refusal(Scope(allow=("*",), deny=(entry,)), canonical(url)) == "denied"
    for url in outside:
        assert refusal(Scope(allow=(entry,)), canonical(url)) == "offsite"
        assert refusal(Scope(allow=("*",), deny=(entry,)), canonical(url)) is None


def test_reasons_have_an_order():
    """A link is counted once, by the first reason that holds."""
    scope = Scope(allow=("a.b",), deny=("/x",), depth=2)
    assert refusal(scope, "ftp://a.b/x", 9) == "scheme"
    assert refusal(scope, "http://c.d/x", 9) == "offsite"
    assert refusal(scope, "http://a.b/x", 9) == "denied"
    assert refusal(scope, "http://a.b/y", 3) == "too_deep"
    assert refusal(scope, "http://a.b/y", 2) is None


def test_an_empty_scope_refuses_everything():
    """A forgotten list does not set a crawl on the whole web."""
    assert refusal(Scope(), "http://a.b/") == "offsite"


def test_seeds_stand_for_their_hosts():
    """Without `allow`, the world of the task is its seeds' hosts, with and without www, on their ports."""
    scope = Scope(hosts=seed_hosts("http://www.a.com/x"))
    assert refusal(scope, "https://a.com/") is None
    assert refusal(scope, "https://www.a.com/") is None
    assert refusal(scope, "https://blog.a.com/") == "offsite"
    assert refusal(Scope(allow=("b.com",), hosts=seed_hosts("http://a.com/")), "http://a.com/") == "offsite"
    assert seed_hosts("http://127.0.0.1:81/") == ("127.0.0.1:81",)
    assert seed_hosts("http://localhost/") == ("localhost",)
    assert refusal(Scope(hosts=seed_hosts("http://a.com:81/")), "http://a.com:82/") == "offsite"


def test_same_site_takes_subdomains_in():
    """Subdomains of each allowed host come in, look-alikes and subdomains of addresses do not."""
    scope = Scope(allow=("a.com", "1.2.3.4"), same_site=True)
    assert refusal(scope, "http://x.y.a.com/") is None
    assert refusal(scope, "http://xa.com/") == "offsite"
    assert refusal(Scope(allow=("a.com",), deny=("a.com",), same_site=True), "http://x.a.com/") is None


@pytest.mark.parametrize(
    "entry", ["", " ", "http://", "ftp://a.b/", "user@a.b", "a b", "re:(", "x" * 501, "a.b:99999"]
)
def test_nonsense_is_refused_with_its_place(entry: str):
    """A typo in the settings is an error at the start, not an empty crawl."""
    with pytest.raises(SettingsError, match="setting `deny`"):
        Boundary(Scope(allow=("a.b",), deny=(entry,)))


def test_memory_is_bounded():
    """A web of endless subdomains does not fill the memory of the scope."""
    boundary = Boundary(Scope(allow=("*.a.com",)))
    for n in range(_REMEMBERED + 100):
        assert boundary.refusal(f"http://h{n}.a.com/", f"h{n}.a.com:80", 0) is None
    assert len(boundary._allow._known) <= _REMEMBERED


def test_globs_cannot_stall_the_crawl():
    """Many stars and a long URL cost microseconds."""
    boundary = Boundary(Scope(allow=("*",), deny=("/*" + "a*" * 200 + "b",)))
    url = "http://a.b/" + "a" * 8000
    began = time.perf_counter()
    assert boundary.refusal(url, "a.b:80", 0) is None
    assert time.perf_counter() - began < 0.3

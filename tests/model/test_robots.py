"""What robots.txt permits: rows R01 to R08 of the bad-input catalogue."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.robots import (
    DEFAULT_LIFETIME,
    MAX_BYTES,
    MIN_LIFETIME,
    RobotsRules,
    Unreachable,
    lifetime,
)

AGENT = "gossamer"
PRIVATE = "http://a.b/private/x"


def rules(body: bytes | str, status: int = 200) -> RobotsRules:
    found = RobotsRules.parse(status, body.encode() if isinstance(body, str) else body)
    assert isinstance(found, RobotsRules)
    return found


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 301, 308])
def test_no_file_means_no_rules(status: int):
    """4xx and endless redirects allow everything, and say why; their body is not read."""
    found = rules("User-agent: *\nDisallow: /", status)
    assert found.allowed(PRIVATE, AGENT)
    assert found.flag == f"http_{status}"


@pytest.mark.parametrize("status", [401, 403])
def test_an_owner_may_read_unauthorized_as_no(status: int):
    """The strict reading of 401 and 403 denies the whole host."""
    found = RobotsRules.parse(status, unauthorized_denies=True)
    assert isinstance(found, RobotsRules)
    assert not found.allowed("http://a.b/", AGENT)


@pytest.mark.parametrize(
    ("status", "code"), [(429, "http_429"), (503, "http_503"), (0, "no_answer"), (999, "http_999")]
)
def test_not_now_is_never_permission(status: int, code: str):
    """Server errors, throttling and silence leave the host waiting."""
    assert RobotsRules.parse(status) == Unreachable(code)


def test_the_longest_match_decides():
    """Google's semantics: the more specific rule wins, and Allow wins a tie."""
    found = rules("User-agent: *\nDisallow: /p\nAllow: /p/open\nDisallow: /*.pdf$\nDisallow: /q\nAllow: /q")
    assert not found.allowed("http://a.b/p/x", AGENT)
    assert found.allowed("http://a.b/p/open/1", AGENT)
    assert not found.allowed("http://a.b/x.pdf", AGENT)
    assert found.allowed("http://a.b/x.pdf?y", AGENT)
    assert found.allowed("http://a.b/q", AGENT)


def test_an_own_group_replaces_the_general_one():
    """Groups of one agent are merged, and the star group does not apply to it."""
    found = rules(
        "User-agent: Gossamer\nDisallow: /a\n\nUser-agent: *\nDisallow: /\n\nUser-agent: gossamer\nDisallow: /b"
    )
    assert not found.allowed("http://h.x/a", AGENT)
    assert not found.allowed("http://h.x/b", AGENT)
    assert found.allowed("http://h.x/c", AGENT)
    assert not found.allowed("http://h.x/c", "other")


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /private",
        b"User-agent: *\rDisallow: /private",
        "\ufeffUser-agent: *\r\nDisallow: /private".encode("utf-16-le"),
        "\ufeffUser-agent: *\nDisallow: /private".encode("utf-16-be"),
        "User-agent: *\nDisallow: /private".encode("utf-16-le"),
        b"User-agent: *\x00\nDis\x00allow: /private",
        b"\xff\xfb\x00junk\nUser-agent: *\nDisallow: /private\n\xc3\x28",
        b"user agent *\ndissallow /private",
        b"User-agent: x\nUser-agent: *\n\n\nDisallow: /private # yes",
    ],
)
def test_sloppy_files_are_obeyed(body: bytes):
    """Byte order marks, old line ends, UTF-16, NUL and misspellings do not turn a prohibition into permission."""
    found = rules(body)
    assert not found.allowed(PRIVATE, AGENT)
    assert found.allowed("http://a.b/public", AGENT)


@pytest.mark.parametrize(
    "body", [b"<!doctype html><p>Not found</p>", b'{"error": 1}', bytes(range(256)) * 10]
)
def test_what_is_no_robots_file_allows_and_is_flagged(body: bytes):
    """A page served for every path says nothing about robots."""
    found = rules(body)
    assert found.allowed(PRIVATE, AGENT)
    assert found.flag == "not_robots"


def test_an_empty_file_is_not_suspicious():
    """No rules is a valid answer; so is a file of sitemaps only."""
    assert rules(b"\n").flag is None
    found = rules(b"Sitemap: https://a.b/s.xml\n")
    assert found.flag is None
    assert found.sitemaps == ("https://a.b/s.xml",)


def test_only_the_first_half_megabyte_is_read():
    """Rules before the limit hold, rules behind it do not, and a rule cut in two is dropped."""
    head = b"User-agent: *\nDisallow: /private\n"
    filler = b"# " + b"x" * (MAX_BYTES - len(head) - 12) + b"\n"
    found = rules(head + filler + b"Disallow: /public")
    assert not found.allowed(PRIVATE, AGENT)
    assert found.allowed("http://a.b/public", AGENT)
    assert found.allowed("http://a.b/", AGENT)
    assert found.flag == "truncated"
    assert len(found.text) <= MAX_BYTES


@pytest.mark.parametrize(
    "body",
    [
        b"user-agent:*\ndisallow:/*a*a*a*a*a*a*a*a*a*a$",
        b"user-agent:*\ndisallow:/" + b"*a" * 4000 + b"b",
        b"user-agent:*\n" + b"disallow:/*aaaaaaaaaaaaaaaaaaaab\n" * 20_000,
        b"".join(b"user-agent:a%d\n" % i for i in range(15_000)) + b"disallow:/x\n" * 20_000,
        b"".join(b"user-agent:a%d\njunk\n" % i for i in range(15_000)) + b"disallow:/x\n" * 20_000,
        b"user-agent:a\n" * 38_000,
        b":\n" * 250_000,
    ],
    ids=["stars", "many stars", "many wildcards", "agents by rules", "junk between", "one agent", "colons"],
)
def test_hostile_files_cost_bounded_time(body: bytes):
    """No file of legal size holds up the crawl, neither when it is read nor when it is asked."""
    url = "http://a.b/" + "a" * 8000
    began = time.perf_counter()
    found = rules(body)
    found.allowed(url, AGENT)
    assert time.perf_counter() - began < 0.5


def test_star_patterns_match_what_they_say():
    """The linear matcher is not only fast but right."""
    found = rules(b"User-agent: *\nDisallow: /*a*b$\n")
    assert not found.allowed("http://h.x/xaxbxb", AGENT)
    assert found.allowed("http://h.x/xaxbx", AGENT)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("Crawl-delay: 2.5", (2.5, 2.5, False)),
        ("Crawl-delay: 1000000000", (3600.0, 1e9, True)),
        ("Request-rate: 1/10", (10.0, 10.0, False)),
        ("Request-rate: 1/5m", (300.0, 300.0, False)),
        ("Crawl-delay: 0", None),
        ("Crawl-delay: -1", None),
        ("Crawl-delay: nan", None),
        ("Crawl-delay: inf", None),
        ("Crawl-delay: soon", None),
        ("Request-rate: 1/" + "9" * 400, None),
        ("Disallow: /x", None),
    ],
)
def test_crawl_delays_are_clamped_and_reported(line: str, expected: tuple[float, float, bool] | None):
    """Nonsense is ignored; an absurd wish is kept to the maximum and marked so that the host can be parked."""
    delay = rules(f"User-agent: *\n{line}\n").crawl_delay(AGENT)
    assert (delay and (*delay, delay.too_long)) == expected


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, DEFAULT_LIFETIME),
        ("", DEFAULT_LIFETIME),
        ("public", DEFAULT_LIFETIME),
        ("public, max-age=3600", 3600),
        ("MAX-AGE=7200", 7200),
        ("max-age=0", MIN_LIFETIME),
        ("s-maxage=1, max-age=600", 600),
        ("no-store", MIN_LIFETIME),
        ("max-age=999999999999", DEFAULT_LIFETIME),
        ("max-age=-5", DEFAULT_LIFETIME),
    ],
)
def test_rules_live_between_five_minutes_and_a_day(header: str | None, seconds: int):
    """A change of the rules is obeyed within 24 hours, and no header makes us ask all the time."""
    assert lifetime(header) == seconds


def test_stored_text_gives_the_same_rules():
    """What the frontier keeps is enough to decide again."""
    for status in (200, 403):
        first = RobotsRules.parse(
            status, b"\xef\xbb\xbfUser-agent: *\rDisallow: /private", unauthorized_denies=True
        )
        assert isinstance(first, RobotsRules)
        assert not RobotsRules(first.text).allowed(PRIVATE, AGENT)


line = st.sampled_from(
    [
        "User-agent: *",
        "User-agent: x",
        "Disallow: /",
        "Disallow:",
        "Allow: /a",
        "Sitemap: x",
        "junk",
        ":",
        "#",
        "<p>",
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200) | st.lists(line, max_size=12).map(lambda lines: "\n".join(lines).encode()))
def test_any_bytes_give_an_answer(body: bytes):
    """Reading never raises, and reading the stored text again changes nothing."""
    found = rules(body)
    again = RobotsRules(found.text)
    for url in ("http://h.x/", "http://h.x/a", "http://h.x/robots.txt"):
        assert found.allowed(url, AGENT) is again.allowed(url, AGENT)

"""Endless sites: rows U10 to U12 of the bad-input catalogue."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.model.traps import MAX_PATTERN, TrapLimits, pattern_of, trap


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://a.b/", None),
        ("http://a.b/a/a/b", None),
        ("http://a.b/a/b/a/b/", None),
        ("http://a.b/a/b/a/b/a/b", "trap_repeat"),
        ("http://a.b/a/a/a", "trap_repeat"),
        ("http://a.b/a/x/a/y/a/z", "trap_repeat"),
        ("http://a.b/x////y", "trap_repeat"),
        ("http://a.b/?q=/a/a/a/a/a", None),
        ("http://a.b/" + "/".join(map(str, range(20))), None),
        ("http://a.b/" + "/".join(map(str, range(20))) + "/", None),
        ("http://a.b/" + "/".join(map(str, range(21))), "trap_segments"),
        ("http://a.b/" + "x/" * 200, "trap_segments"),
        ("http://a.b/?" + "&".join(f"p{n}" for n in range(20)), None),
        ("http://a.b/?" + "&".join(f"p{n}" for n in range(21)), "trap_parameters"),
    ],
)
def test_shapes_of_traps(url: str, why: str | None):
    """Only the third repeat, the 21st segment and the 21st parameter make a trap."""
    assert trap(url) == why


def test_limits_are_the_owner_s():
    """A site with honest deep paths can be crawled."""
    generous = TrapLimits(segments=30, repeats=30, parameters=50)
    assert trap("http://a.b/" + "x/" * 25, generous) is None
    assert trap("http://a.b/a/b", TrapLimits(segments=1)) == "trap_segments"


@pytest.mark.parametrize(
    ("url", "pattern"),
    [
        ("http://a.b/", "/"),
        ("http://a.b/about/us", "/about/us"),
        ("http://a.b/list/17", "/list/{n}"),
        ("http://a.b/list/page-3.html", "/list/page-{n}.html"),
        ("http://a.b/list?page=3&sort=x&page=4", "/list?page&sort"),
        ("http://a.b/list?sort=y&page=9", "/list?page&sort"),
        ("http://a.b/cal/2024/05/17/x", "/cal/{date}/x"),
        ("http://a.b/cal/2024-05", "/cal/{date}"),
        ("http://a.b/cal/12024/05", "/cal/{n}/{n}"),
        ("http://a.b/i/123e4567-e89b-12d3-a456-426614174000", "/i/{id}"),
        ("http://a.b/s;jsessionid=8F14E45FCEEA167A5A36DEDD4BEA2543/x", "/s;jsessionid={id}/x"),
        ("http://a.b/congratulationseverybody", "/congratulationseverybody"),
        ("http://a.b/%E4%BD%A0/7", "/%E4%BD%A0/{n}"),
        ("http://a.b/?p17=1", "/?p{n}"),
        ("http://a.b:8080/x", "/x"),
    ],
)
def test_patterns(url: str, pattern: str):
    """URLs that one template makes share one name; different pages keep different names."""
    assert pattern_of(url) == pattern


def test_hostile_urls_cost_microseconds():
    """The longest URL has a bounded pattern, quickly."""
    began = time.perf_counter()
    for path in (
        "a" * 8000 + "-1",
        "1-" * 4000,
        "a1" * 4000,
        "/" * 8000,
        "2024-" * 1600,
        "-".join(["deadbeef"] * 900),
    ):
        assert len(pattern_of("http://a.b/" + path)) <= MAX_PATTERN
        trap("http://a.b/" + path)
    assert time.perf_counter() - began < 0.2


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_a_number_never_makes_a_new_pattern(one: int, other: int):
    """An endless counter has one budget."""
    assert pattern_of(f"http://a.b/x/p{one}/y?n={one}") == pattern_of(f"http://a.b/x/p{other}/y?n={other}")

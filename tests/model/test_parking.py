"""Parkings double, are bounded, and patience is measured by them."""

from __future__ import annotations

import pytest

from gossamer.model import parking
from gossamer.model.host import HostView
from gossamer.model.parking import parse_retry_after

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def test_parkings_double_up_to_five_minutes():
    """5, 10, 20 … 300, and never more however high the level."""
    assert [parking.schedule(level) for level in range(8)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert parking.schedule(10**9) == 300


def test_covered_is_the_sum_of_the_schedule():
    """The closed form agrees with adding up."""
    for level in range(40):
        assert parking.covered(level) == sum(parking.schedule(n) for n in range(level))


@pytest.mark.parametrize("park", [0.1, 5.0, 60.0, 300.0, 3600.0])
def test_a_long_wait_reaches_the_level_it_stands_for(park: float):
    """An hour by Retry-After counts as an hour of parkings, a short one as one level."""
    reached = parking.level_reached(3, park)
    assert reached >= 4
    assert parking.covered(reached) >= park
    assert reached == 4 or parking.covered(reached - 1) < park


def test_old_trouble_is_no_outage():
    """A bad answer two hours ago does not use up the patience; two hours of parkings do."""
    assert not parking.exhausted(HostView(host="h", bad_for=7200.0, level=0), 1800.0)
    assert parking.exhausted(HostView(host="h", bad_for=7200.0, level=12), 1800.0)
    assert not parking.exhausted(HostView(host="h", bad_for=1799.0, level=12), 1800.0)


def test_a_stranger_that_cannot_be_reached_gets_little_patience():
    """A name without address that never answered is given a minute, a host known to answer the whole patience."""
    stranger, known = HostView(host="h"), HostView(host="h", latency=0.1)
    assert parking.patience(stranger, "dns", 1800.0) == 60.0
    assert parking.patience(known, "dns", 1800.0) == 1800.0
    assert parking.patience(stranger, "http_503", 1800.0) == 1800.0
    assert parking.patience(stranger, "connect", 10.0) == 10.0
    assert parking.patience(stranger, "connect", 7200.0) == 240.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120.0),
        (" 120 ", 120.0),
        ("0", 0.0),
        ("-5", 0.0),
        ("1000000000", 3600.0),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tuesday, 14-Nov-23 22:14:20 GMT", 60.0),
        ("Tue Nov 14 22:14:20 2023", 60.0),
        ("Tue, 14 Nov 2023 21:00:00 GMT", 0.0),
        ("Tue, 14 Nov 2099 22:13:20 GMT", 3600.0),
        (None, None),
        ("", None),
        ("abc", None),
        ("1.5e3", None),
        ("12 monkeys", None),
        ("Tue, 99 Nov 2023 22:13:20 GMT", None),
        ("nan", None),
        ("inf", None),
        ("9" * 5000, None),
        ("٣", None),
    ],
)
def test_retry_after_is_clamped_or_ignored(value: str | None, seconds: float | None):
    """Numbers and dates become 0 to 3600 seconds, garbage becomes nothing, and nothing raises."""
    assert parse_retry_after(value, NOW) == seconds

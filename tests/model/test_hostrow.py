"""The host's row: maxima, clamps, and the strictest of several wishes."""

from __future__ import annotations

import pytest

from gossamer.model.host import HostOrder, RobotsOrder, Wish
from gossamer.model.hostrow import (
    MAX_PARKED,
    NO_LIMIT,
    HostRow,
    effective_delay,
    free_slots,
    knows_robots,
    limit_of,
    obey,
    ready_at,
    ready_from,
    view,
)

NOW = 1_000.0


def test_the_turn_counts_from_the_send_time_and_never_moves_back() -> None:
    """Two orders leave the later turn, whichever comes first; nothing sent moves nothing."""
    row = HostRow(name="a.test")
    obey(row, HostOrder(turn=5.0), 2.0, NOW)
    assert row.next_turn == NOW + 3.0
    obey(row, HostOrder(turn=1.0), 0.0, NOW)
    obey(row, HostOrder(turn=99.0), None, NOW)
    obey(row, None, 0.0, NOW)
    assert row.next_turn == NOW + 3.0


def test_anothers_delay_counts_from_the_last_send() -> None:
    """A task that wishes a delay waits it out after a request of a task that wishes none."""
    row = HostRow(name="a.test")
    obey(row, HostOrder(), 2.0, NOW)
    wish = Wish(delay=5.0)
    assert ready_at(row, wish, [(wish, 0.0)], None, granted=False, now=NOW) == NOW + 3.0


def test_parking_is_clamped_when_set_and_when_read() -> None:
    """Neither a server's wish nor a clock that leapt back parks a host for more than an hour."""
    row = HostRow(name="a.test")
    obey(row, HostOrder(park=1e9, level=1), 0.0, NOW)
    assert row.parked_until == NOW + MAX_PARKED
    far = HostRow(name="a.test", parked_until=NOW + 1e6)
    assert ready_from(far, NOW) == NOW + MAX_PARKED
    assert view(far, NOW).parked_for == MAX_PARKED


def test_good_forgives_a_level_only_after_the_parking() -> None:
    """Trouble ends at once; the level falls by one, never below 0, when the parking is over."""
    row = HostRow(name="a.test", trouble=3, bad_since=NOW - 9, level=1, parked_until=NOW + 5)
    obey(row, HostOrder(good=True), 0.0, NOW)
    assert (row.trouble, row.bad_since, row.level) == (0, None, 1)
    for _ in range(2):
        obey(row, HostOrder(good=True), 0.0, NOW + 5)
    assert row.level == 0


def test_bad_starts_the_patience_clock_once() -> None:
    """More trouble does not set the first bad answer's time anew."""
    row = HostRow(name="a.test")
    obey(row, HostOrder(bad=True), 0.0, NOW)
    obey(row, HostOrder(bad=True), 0.0, NOW + 7)
    assert (row.trouble, view(row, NOW + 10).bad_for) == (2, 10.0)


def test_rules_are_known_until_they_expire() -> None:
    """The version counts up and reads 0 when the time of the rules is over."""
    row = HostRow(name="a.test")
    assert not knows_robots(row, NOW)
    obey(row, HostOrder(robots=RobotsOrder(b"x", 10.0, crawl_delay=2.0)), 0.0, NOW)
    assert (view(row, NOW).robots_version, view(row, NOW, robots=True).robots) == (1, b"x")
    assert effective_delay(row, []) == 2.0
    assert view(row, NOW + 10.0).robots_version == 0


@pytest.mark.parametrize(
    ("measured", "asking", "delay", "limit"),
    [
        (None, [(Wish(per_host=4), 0.0), (Wish(per_host=2), 0.0)], 0.0, 2),
        (None, [(Wish(), 0.5)], 0.5, 1),
        (0.0, [(Wish(), 0.5)], 0.0, 4),
        (0.2, [(Wish(delay=1.0), 0.0)], 1.0, 1),
        (3.0, [(Wish(delay=1.0), 0.0)], 3.0, 1),
        (3.0, [], 0.0, NO_LIMIT),
    ],
)
def test_the_strictest_wins(
    measured: float | None, asking: list[tuple[Wish, float]], delay: float, limit: int
) -> None:
    """Any delay means one slot; without one the smallest wish counts; the first delay is for the unmeasured."""
    row = HostRow(name="a.test", delay=measured)
    assert effective_delay(row, asking) == delay
    assert limit_of(delay, asking) == limit


def test_the_host_of_the_seeds_is_free() -> None:
    """No limit, no delay, no rules to ask for, and orders do not touch it."""
    row = HostRow(name="")
    obey(row, HostOrder(park=9.0, bad=True, delay=1.0, turn=5.0), 0.0, NOW)
    assert row == HostRow(name="")
    assert knows_robots(row, NOW)
    assert free_slots(row, [(Wish(per_host=1, delay=9.0), 1.0)]) > 1_000


@pytest.mark.parametrize(
    ("row", "old", "granted", "at"),
    [
        ({}, None, False, NOW),
        ({}, NOW - 5, False, NOW - 5),
        ({}, NOW - 5, True, NOW),
        ({"next_turn": NOW - 2}, NOW - 5, False, NOW),
        ({"next_turn": NOW + 2}, NOW - 5, False, NOW + 2),
        ({"parked_until": NOW + 9, "next_turn": NOW + 2}, None, False, NOW + 9),
        ({"open": 4}, NOW - 5, False, None),
        ({"robots_open": True}, NOW - 5, False, None),
    ],
)
def test_a_lane_keeps_its_place_until_it_was_served(
    row: dict[str, float], old: float | None, granted: bool, at: float | None
) -> None:
    """Ready since `old` unless granted from or its turn moved on; not ready while something must end first."""
    host = HostRow(name="a.test", **row)  # type: ignore[arg-type]
    assert ready_at(host, Wish(), [(Wish(), 0.0)], old, granted=granted, now=NOW) == at

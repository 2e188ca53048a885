"""The pace of single exchanges: what is written, what is left alone, and the bounds of every order."""

from __future__ import annotations

import random

import pytest

from gossamer.model.host import HostOrder, HostView, Wish
from gossamer.model.pace import SEVERAL, Pace, wish_of
from gossamer.model.retry import CAUSES
from gossamer.model.robots import RobotsRules
from gossamer.model.settings import Settings

LOCAL = "127.0.0.1:8000"


def pace(*, eager: tuple[str, ...] = (), **settings: object) -> Pace:
    made = Settings(**{"jitter": 0.0, **settings})  # type: ignore[arg-type]
    return Pace(made, wish_of(made, eager))


def row(**values: object) -> HostView:
    return HostView(**{"host": "h.example", "latency": 0.05, **values})  # type: ignore[arg-type]


def test_a_quick_host_in_health_costs_nothing():
    """With delay 0 and a usual latency nothing is written: the hot path."""
    assert pace().answered(row(delay=0.0), 0.06, 0.5) is None
    assert pace().after(row(delay=0.0), "http_404", 0.06, 0.5) is None


def test_the_first_answer_of_a_local_host_is_noted_once():
    """An eager host is measured by its first answer as delay 0; from then on nothing is written."""
    local = pace(eager=(LOCAL,))
    order = local.answered(HostView(host=LOCAL), 0.002, 0.9)
    assert order is not None
    assert (order.delay, order.turn, order.good) == (0.0, 0.0, False)
    assert order.latency is not None
    assert local.answered(HostView(host=LOCAL, delay=order.delay, latency=order.latency), 0.003, 0.9) is None


def test_an_unknown_host_starts_at_a_quarter_second_and_eases_to_nothing():
    """Good quick answers ease the delay to 0 within some tens of requests, never upwards."""
    view, delays = HostView(host="h.example"), []
    for _ in range(40):
        order = pace().answered(view, 0.1, 0.0)
        if order is None:
            break
        assert order.delay is not None
        delays.append(order.delay)
        view = row(delay=order.delay, latency=order.latency)
    assert delays == sorted(delays, reverse=True)
    assert 0.2 < delays[0] < 0.25
    assert delays[-1] == 0.0
    assert 15 < len(delays) < 40


def test_a_slow_host_is_asked_one_by_one():
    """Latency that stays above a second raises the delay towards it, and quick answers undo that."""
    view = row(delay=0.0)
    for _ in range(30):
        order = pace().answered(view, 3.0, 0.0)
        assert order is not None
        view = row(delay=order.delay, latency=order.latency)
    assert view.delay is not None
    assert 2.0 < view.delay <= 3.1
    for _ in range(100):
        order = pace().answered(view, 0.05, 0.0)
        if order is None:
            break
        view = row(delay=order.delay, latency=order.latency)
    assert view.delay == 0.0


def test_one_slow_page_does_not_slow_its_host():
    """A single answer of 15 s from a quick host leaves the delay at 0."""
    order = pace().answered(row(delay=0.0), 15.0, 0.0)
    assert order is not None
    assert order.delay == 0.0


def test_a_wished_delay_is_kept_and_only_lengthened():
    """The task's own delay is the least gap; jitter lengthens it by at most its share."""
    slow = pace(delay=2.0, jitter=0.5)
    for rand in (0.0, 0.5, 0.999):
        order = slow.answered(row(), 0.05, rand)
        assert order is not None
        assert 2.0 <= order.turn <= 3.0
        assert order.delay is None


def test_crawl_delay_is_kept_although_throttling_is_off():
    """What robots.txt asks is no part of the throttle."""
    order = pace(throttle=False, delay=0.0).answered(row(crawl_delay=7.0), 0.05, 0.0)
    assert order is not None
    assert (order.turn, order.delay) == (7.0, None)


def test_without_throttle_the_shared_delay_is_left_alone():
    """A task that does not adapt never writes the delay of other tasks, whatever happens."""
    fixed = pace(throttle=False, delay=0.0)
    assert fixed.answered(row(), 0.05, 0.0) is None
    for code in ("http_429", "http_503", "timeout_header"):
        order = fixed.failed(row(trouble=2), code, 0.0)
        assert order is not None
        assert order.delay is None


def test_a_good_answer_forgives():
    """Trouble or a level in the row makes a good order, also from a host without delay."""
    for view in (row(delay=0.0, trouble=1), row(delay=0.0, level=2), row(delay=0.0, bad_for=3.0)):
        order = pace().answered(view, 0.05, 0.0)
        assert order is not None
        assert order.good


def test_a_single_503_delays_only_its_own_page():
    """It is counted, but neither parks the host nor slows it."""
    order = pace().failed(row(delay=0.0), "http_503", 0.5)
    assert order == HostOrder(bad=True)


@pytest.mark.parametrize("code", ["http_500", "http_503", "timeout_header", "connect", "dns", "reset"])
def test_several_first_attempts_in_a_row_park_the_host(code: str):
    """The fifth failure of a first attempt parks for the first, shortest time."""
    assert pace().failed(row(delay=0.0, trouble=SEVERAL - 2), code, 0.0).park == 0  # type: ignore[union-attr]
    order = pace().failed(row(delay=0.0, trouble=SEVERAL - 1), code, 0.0)
    assert order is not None
    assert (order.park, order.level, order.bad, order.give_up) == (5.0, 1, True, "")


def test_repeated_attempts_are_no_evidence():
    """A page that failed before speaks for itself, until the host is known to be in trouble."""
    assert pace().failed(row(delay=0.0, trouble=SEVERAL - 1), "http_503", 0.0, retries=1) is None
    order = pace().failed(row(delay=0.0, trouble=SEVERAL), "http_503", 0.0, retries=1)
    assert order is not None
    assert order.park > 0


def test_429_parks_at_once_and_longer_each_time():
    """Without Retry-After the parkings double; the delay is raised once per spell."""
    parks, level = [], 0
    for spell in range(8):
        order = pace().failed(row(delay=0.0, level=level, trouble=spell, bad_for=spell), "http_429", 0.0)
        assert order is not None
        assert order.delay == (0.2 if spell == 0 else None)
        parks.append(order.park)
        level = order.level
    assert parks == [5, 10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize("code", ["http_429", "http_503"])
def test_retry_after_is_obeyed_exactly(code: str):
    """The host is parked for what it asked, not shortened by patience and not lengthened by chance."""
    order = pace(jitter=1.0, host_patience=10.0).failed(row(), code, 0.9, retry_after=120.0)
    assert order is not None
    assert order.park == 120.0
    assert order.bad


def test_retry_after_zero_does_not_park_for_a_single_503():
    """`Retry-After: 0` says that the page may be asked again, nothing about the host."""
    assert pace().failed(row(delay=0.0), "http_503", 0.0, retry_after=0.0) == HostOrder(bad=True)


def test_retry_after_one_for_ever_is_not_one_request_a_second():
    """A host that asks for a second again and again is parked longer each time nevertheless."""
    parks, level = [], 0
    for _ in range(8):
        order = pace().failed(row(level=level), "http_429", 0.0, retry_after=1.0)
        assert order is not None
        parks.append(order.park)
        level = order.level
    assert parks == [1, 2, 4, 8, 16, 32, 60, 60]


def test_patience_ends_with_the_cause_as_code():
    """A host in trouble all the time is given up; its last parking was cut to end with the patience."""
    last = pace().failed(row(trouble=20, level=10, bad_for=1700.0), "connect", 0.0)
    assert last is not None
    assert (last.park, last.give_up) == (100.0, "")
    over = pace().failed(row(trouble=21, level=11, bad_for=1800.0), "connect", 0.0)
    assert over is not None
    assert over.give_up == "connect"


def test_what_says_nothing_about_the_host_changes_nothing():
    """A body that is too large is nobody's trouble; only the turn of a host with a delay is kept."""
    assert pace().after(row(delay=0.0), "too_large", 0.1, 0.0) is None
    assert pace().after(row(delay=2.0), "too_large", 0.1, 0.0) == HostOrder(turn=2.0)


def test_robots_rules_are_kept_with_their_crawl_delay():
    """The order holds text, lifetime and delay, and the next page waits for that delay."""
    rules = RobotsRules.parse(200, b"User-agent: *\nDisallow: /x\nCrawl-delay: 3\n")
    assert isinstance(rules, RobotsRules)
    order = pace().robots_known(HostView(host="h"), rules, 0.1, 0.0, cache_control="max-age=7200")
    assert order.robots is not None
    assert (order.robots.ttl, order.robots.crawl_delay, order.turn, order.good) == (7200.0, 3.0, 3.0, True)
    assert not RobotsRules(order.robots.body.decode()).allowed("http://h/x", "Gossamer")


def test_unreachable_robots_make_the_host_wait():
    """Growing parkings, then the host is given up as robots_unreachable or by its plainer cause."""
    waits = [pace().robots_unknown(row(level=n, trouble=n, bad_for=n), "http_503", 0.0) for n in range(8)]
    assert [order.park for order in waits] == [2, 4, 8, 16, 32, 64, 120, 120]
    assert all(order.bad and order.robots is None and not order.give_up for order in waits)
    old = row(level=20, trouble=9, bad_for=1900.0)
    for code, said in [("http_503", "robots_unreachable"), ("timeout_header", "robots_unreachable")] + [
        (code, code) for code in ("dns", "connect", "tls", "http_429")
    ]:
        assert pace().robots_unknown(old, code, 0.0).give_up == said


def test_a_refused_address_is_not_waited_for():
    """The guard's refusal of the host itself ends it at once; that of a redirect's target does not."""
    assert pace().robots_unknown(row(), "blocked_address", 0.0).give_up == "blocked_address"
    order = pace().robots_unknown(row(), "blocked_address", 0.0, elsewhere=True)
    assert order.give_up == ""
    assert order.park > 0


def test_every_order_is_within_bounds():
    """Whatever the row and the cause: no negative or endless number, delay within max_delay, park within an hour."""
    rand = random.Random(7)
    for _ in range(20_000):
        settings = Settings(
            delay=rand.choice([None, 0.0, 5.0]),
            throttle=rand.random() < 0.8,
            host_patience=rand.choice([1.0, 60.0, 1800.0, 1e6]),
            max_delay=rand.choice([0.0, 1.0, 60.0]),
        )
        view = HostView(
            host="h",
            delay=rand.choice([None, 0.0, 0.1, 30.0]),
            level=rand.randrange(100),
            trouble=rand.randrange(30),
            bad_for=rand.uniform(0, 4000),
            latency=rand.choice([0.0, 0.05, 8.0]),
            crawl_delay=rand.choice([0.0, 3600.0]),
        )
        after = rand.choice([None, 0.0, 1.0, 3600.0])
        code = rand.choice(["", *CAUSES])
        order = Pace(settings, wish_of(settings)).after(
            view, code, rand.uniform(0, 60), rand.random(), retries=rand.randrange(5), retry_after=after
        )
        if order is None:
            continue
        assert 0 <= order.park <= 3600
        assert 0 <= order.turn <= 3600 * 1.25
        assert order.turn >= (settings.delay or 0.0)
        assert order.delay is None or order.delay <= settings.max_delay
        assert not (order.good and order.bad)
        assert order.park == 0 or order.level > view.level


def test_the_wish_of_the_default_settings_is_polite():
    """Four at once, a slow start, robots obeyed; an explicit delay replaces the slow start."""
    assert wish_of(Settings()) == Wish(per_host=4, first_delay=0.25, robots=True)
    assert wish_of(Settings(delay=0.0)).first_delay == 0.0
    assert wish_of(Settings(delay=3.0)).delay == 3.0

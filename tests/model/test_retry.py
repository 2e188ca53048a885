"""Every cause has one meaning, and every page ends."""

from __future__ import annotations

import pytest

from gossamer.model.host import HostOrder
from gossamer.model.record import Verdict
from gossamer.model.retry import CAUSES, MAX_DELAY, SINK, cause_of, code_of, crashed, decide
from gossamer.model.settings import Settings
from gossamer.ports.transport import FETCH_CODES

PLAIN = Settings(jitter=0.0)


def test_every_code_of_the_transport_is_in_the_table():
    """No code that a transport may raise is met unprepared."""
    assert set(CAUSES) >= FETCH_CODES


@pytest.mark.parametrize(
    ("status", "code"),
    [
        *((status, "") for status in (200, 204, 299)),
        *((status, f"http_{status}") for status in (206, 304, 404, 503)),
        *((status, "protocol") for status in (100, 0, 999, -1, 600)),
    ],
)
def test_a_status_is_a_cause(status: int, code: str):
    """2xx is a page, other statuses are their own code, and what HTTP does not know is a broken protocol."""
    assert code_of(status) == code


def test_a_part_that_was_asked_for_is_a_page():
    """206 is an answer only to a Range request."""
    assert code_of(206, part_asked=True) == ""
    assert decide("http_206", 0, PLAIN, 0.0).verdict is Verdict.FAILED


@pytest.mark.parametrize("status", [304, 400, 401, 403, 404, 410, 413, 418, 451, 499])
def test_an_answer_that_is_no_page_is_done(status: int):
    """The server did answer: DONE with the status as code, at once and for ever."""
    decision = decide(f"http_{status}", 0, PLAIN, 0.0)
    assert (decision.verdict, decision.code) == (Verdict.DONE, f"http_{status}")


@pytest.mark.parametrize(
    "code", sorted(code for code, cause in CAUSES.items() if cause.retry and cause.burns)
)
def test_whatever_fails_for_ever_ends_failed_within_its_budget(code: str):
    """Each retryable cause is tried again at most `retries` times, then FAILED under its own code."""
    retries = 0
    while (decision := decide(code, retries, PLAIN, 0.0)).verdict is Verdict.RETRY:
        assert decision.burned
        assert decision.step == SINK
        assert decision.delay > 0
        retries += 1
    assert (decision.verdict, decision.code) == (Verdict.FAILED, code)
    assert retries == min(PLAIN.retries, cause_of(code).most)


@pytest.mark.parametrize(
    "code", ["too_large", "blocked_address", "url", "http_501", "handler_error", "unheard_of"]
)
def test_what_no_retry_can_heal_fails_at_once(code: str):
    """Repeating is not tried where it cannot help, nor for a code that nobody knows."""
    assert decide(code, 0, PLAIN, 0.0).verdict is Verdict.FAILED


def test_delays_double_and_are_bounded():
    """1, 2, 4, 8 seconds, and never more than the bound."""
    delays = [decide("http_503", n, PLAIN, 0.0).delay for n in range(4)]
    assert delays == [1.0, 2.0, 4.0, 8.0]
    patient = Settings(retries=100, retry_delay=3600.0, jitter=0.0)
    assert max(decide("dns", n, patient, 0.0).delay for n in range(100)) == MAX_DELAY


def test_chance_only_lengthens():
    """Jitter adds up to its share, and never takes away."""
    settings = Settings(jitter=0.5)
    assert decide("http_503", 0, settings, 0.0).delay == 1.0
    assert decide("http_503", 0, settings, 1.0).delay == 1.5


def test_retry_after_is_kept_where_only_the_page_waits():
    """A server's Retry-After on any retryable answer is the least delay of that page."""
    assert decide("http_500", 0, PLAIN, 0.0, retry_after=77.0).delay == 77.0


def test_a_parked_host_burns_no_attempt():
    """The page waits with its host: no delay of its own, no attempt counted, even when its budget is used up."""
    decision = decide("http_503", 4, PLAIN, 0.0, order=HostOrder(park=5.0, level=1, bad=True))
    assert decision.verdict is Verdict.RETRY
    assert (decision.burned, decision.delay, decision.step) == (False, 0.0, SINK)


def test_a_host_given_up_takes_the_page_with_it():
    """The record in hand ends like those that the order ends."""
    order = HostOrder(park=5.0, give_up="http_429")
    decision = decide("http_429", 0, PLAIN, 0.0, order=order)
    assert (decision.verdict, decision.code) == (Verdict.FAILED, "http_429")


def test_an_answer_is_not_undone_by_the_hosts_state():
    """A 404 of a host that is given up for other reasons stays DONE."""
    assert decide("http_404", 0, PLAIN, 0.0, order=HostOrder(give_up="dns")).verdict is Verdict.DONE


def test_429_without_a_host_row_still_burns_nothing():
    """Where no row can be parked the page waits by itself."""
    decision = decide("http_429", 9, PLAIN, 0.0, retry_after=30.0)
    assert (decision.verdict, decision.burned, decision.delay) == (Verdict.RETRY, False, 30.0)


def test_a_page_is_done():
    """The empty code ends the record as DONE without a code."""
    decision = decide("", 3, PLAIN, 0.0)
    assert (decision.verdict, decision.code) == (Verdict.DONE, "")


def test_the_third_death_is_poison():
    """Two deaths of a child are tried again without burning an attempt, the third ends the record."""
    assert [crashed(n).verdict for n in range(3)] == [Verdict.RETRY, Verdict.RETRY, Verdict.FAILED]
    assert crashed(2).code == "poison"
    assert all(crashed(n).crashed for n in range(3))
    assert not crashed(0).burned

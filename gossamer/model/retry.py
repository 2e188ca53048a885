"""What is tried again, when, and at whose expense: one table of causes and one function.

A *cause* is why an attempt brought no page: a code of the transport (`dns`, `timeout_header`), a status
(`http_503`), or what became of the handler (`handler_error`). The code of a cause is the code of the record in the
end, so codes are for ever.

1. An answer ends the record as DONE, also `DONE(http_404)`. What could not be got ends FAILED, after the retries where
   a retry may help and at once where it cannot.
2. A retry waits (the first delay times the growth, times a little chance so that failures do not come back in step)
   and sinks below what has not been tried yet.
3. An attempt for which the *host* is parked (`model.pace` decides that) is not burned: the page is not to blame. It
   needs no delay of its own, it waits with its host; `host_patience` is what ends it.
4. A page that fails for ever while its host is well burns every attempt, so it ends within its budget.

Everything here is pure: chance comes in as a number.
"""

from __future__ import annotations

import msgspec

from gossamer.model.host import HostOrder
from gossamer.model.record import Verdict
from gossamer.model.settings import Settings

MAX_DELAY = 600.0
"""No page waits longer than this for its next attempt, whatever the growth says."""
MAX_CRASHES = 3
"""So many child processes may die over one record before it is poison."""
SINK = -1
"""What a retry's priority changes by: behind everything of the same rank that has not been tried."""


class Cause(msgspec.Struct, frozen=True, gc=False):
    """What one code means: is it worth another attempt, and whom does it speak against?"""

    retry: bool = False
    first: float = 1.0  # first delay, in units of settings.retry_delay
    growth: float = 2.0
    most: int = 1000  # never more repeated attempts than this, however many the settings allow
    bad: bool = False  # speaks against the host: some of these in a row and it is parked
    burns: bool = True  # False: the host asked for it, so no attempt counts
    failed: bool = True  # how it ends: FAILED, or DONE because the server did answer


_NEVER = Cause()
_ANSWERED = Cause(failed=False)
_HOST = Cause(retry=True, bad=True)  # the host is in trouble, or the way to it
_SLOW = Cause(retry=True, bad=True, first=2.0)
_ONCE = Cause(retry=True, most=1)  # rarely heals, but one accident is possible

CAUSES: dict[str, Cause] = {
    # No answer: codes of the transport.
    "dns": Cause(retry=True, bad=True, first=2.0),
    "connect": _HOST,
    "timeout_connect": _SLOW,
    "timeout_header": _SLOW,
    "timeout_total": _SLOW,
    "too_slow": _SLOW,
    "reset": _HOST,
    "incomplete": _HOST,
    "protocol": _ONCE,
    "coding": _ONCE,
    "tls": _ONCE,  # a handshake may have met a restart; a certificate stays what it is
    "proxy": Cause(retry=True, first=2.0),  # speaks against the proxy, not against the host
    "too_large": _NEVER,
    "header_limit": _NEVER,
    "blocked_address": _NEVER,
    "scheme": _NEVER,
    "url": _NEVER,
    # Answers that are no page.
    "http_206": _NEVER,  # a part that nobody asked for
    "http_408": _HOST,
    "http_425": Cause(retry=True),  # too early: about this request alone
    "http_429": Cause(retry=True, bad=True, burns=False),
    "http_501": _NEVER,  # will not be implemented by asking again
    "http_505": _NEVER,
    # Redirects that lead nowhere.
    "redirect_loop": _NEVER,
    "redirect_limit": _NEVER,
    "bad_location": _NEVER,
    # The page came, its handling failed.
    "handler_error": _NEVER,  # a mistake in a handler does not heal; `retry-failed` is for after the repair
    "handler_timeout": _NEVER,
    "parse_error": _NEVER,
    "middleware_error": _NEVER,
    "item": _NEVER,
    "asked": Cause(retry=True),  # the handler itself asked for another attempt
    "poison": _NEVER,
}
CAUSES.update({f"http_{status}": _HOST for status in range(500, 600) if status not in (501, 505)})
CAUSES.update({f"http_{status}": _ANSWERED for status in range(300, 500) if f"http_{status}" not in CAUSES})

_STATUSES = {status: f"http_{status}" for status in range(300, 600)} | {206: "http_206"}


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What becomes of the record; the fields of an Outcome of the same names."""

    verdict: Verdict
    code: str = ""
    delay: float = 0.0
    step: int = 0  # added to the record's priority
    burned: bool = True
    crashed: bool = False


DONE = Decision(Verdict.DONE)


def code_of(status: int, *, part_asked: bool = False) -> str:
    """The cause that a status is: "" for a page. A status outside of HTTP's range is `protocol`."""
    if 200 <= status < 300 and (status != 206 or part_asked):
        return ""
    return _STATUSES.get(status, "protocol")


def cause_of(code: str) -> Cause:
    """What a code means; one that nobody listed is final."""
    return CAUSES.get(code, _NEVER)


def decide(
    code: str,
    retries: int,
    settings: Settings,
    rand: float,
    retry_after: float | None = None,
    order: HostOrder | None = None,
) -> Decision:
    """The verdict on an attempt that ended by `code` ("" is a page) after so many burned ones.

    `order` is what `model.pace` made of the same end: whether the host is parked for it, or given up.
    """
    if not code:
        return DONE
    cause = cause_of(code)
    if not cause.retry:
        return Decision(Verdict.FAILED if cause.failed else Verdict.DONE, code)
    if order is not None and order.give_up:
        return Decision(Verdict.FAILED, order.give_up)
    if order is not None and order.park > 0:
        return Decision(Verdict.RETRY, code, step=SINK, burned=False)
    if not cause.burns:
        # Only where no host row exists to be parked: the page then waits by itself.
        return Decision(
            Verdict.RETRY, code, _delay(cause, 0, settings, rand, retry_after), SINK, burned=False
        )
    if retries >= min(settings.retries, cause.most):
        return Decision(Verdict.FAILED, code)
    return Decision(Verdict.RETRY, code, _delay(cause, retries, settings, rand, retry_after), SINK)


def crashed(crashes: int) -> Decision:
    """The verdict on a record over which a child process died, after so many earlier deaths."""
    if crashes + 1 >= MAX_CRASHES:
        return Decision(Verdict.FAILED, "poison", crashed=True)
    return Decision(Verdict.RETRY, "crash", step=SINK, burned=False, crashed=True)


def _delay(cause: Cause, retries: int, settings: Settings, rand: float, retry_after: float | None) -> float:
    grown = settings.retry_delay * cause.first * cause.growth ** min(retries, 32)
    delay = min(grown, MAX_DELAY) * (1.0 + settings.jitter * rand)
    return max(delay, retry_after or 0.0)

"""How long a host in trouble is left alone, and when it is given up.

1. Each parking without a good answer between is twice as long as the last: 5, 10, 20 … up to 300 seconds. Good answers
   take the level back one by one.
2. Retry-After is obeyed as it is (up to an hour). A host that asks for less than a fifth of rule 1 again and again gets
   that fifth, so that `Retry-After: 1` for ever is not one request a second for ever.
3. A host is given up when it gave no good answer for the patience *and* its parkings cover a good part of that time.
   The second half matters: one bad answer yesterday and one today are no outage.
4. A host that never answered anything, and whose name, door or certificate is the reason, gets little patience: it is
   a typing error far more often than a restart.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.utils import parsedate_to_datetime

from gossamer.model.host import HostView

FIRST_PARK = 5.0
LONGEST_PARK = 300.0
LONGEST_WAIT = 3600.0  # of what a server may ask by Retry-After
ROBOTS_SHARE = 0.4  # robots are asked for sooner again: nothing else can go on before they are known
ASKED_SHARE = 0.2
STRANGER_PATIENCE = 60.0
STRANGER_SHARE = 1 / 30
STRANGE = frozenset({"dns", "connect", "tls"})
_DOUBLINGS = 6  # 5 s doubled so often passes the longest park
_COVERED_THEN = FIRST_PARK * (2.0**_DOUBLINGS - 1)
_NUMBER = re.compile(r"[+-]?[0-9]{1,20}")


def schedule(level: int) -> float:
    """How long a host that was parked `level` times in a row is parked next."""
    return FIRST_PARK * 2.0**level if level < _DOUBLINGS else LONGEST_PARK


def covered(level: int) -> float:
    """How many seconds all parkings up to this level have lasted together."""
    if level <= _DOUBLINGS:
        return FIRST_PARK * (2.0**level - 1)
    return _COVERED_THEN + LONGEST_PARK * (level - _DOUBLINGS)


def level_reached(level: int, park: float) -> int:
    """The level after a parking of so many seconds: one more, or what a long wait by Retry-After stands for."""
    reached = level + 1
    while covered(reached) < park:
        reached += 1
    return reached


def patience(view: HostView, code: str, host_patience: float) -> float:
    """How long this host may give no good answer."""
    if code in STRANGE and view.delay is None and not view.latency:
        return min(host_patience, max(STRANGER_PATIENCE, host_patience * STRANGER_SHARE))
    return host_patience


def exhausted(view: HostView, limit: float) -> bool:
    """Whether the host was in trouble for longer than the patience, all the time (rule 3)."""
    return view.bad_for >= limit and covered(view.level) >= limit / 2


def parse_retry_after(value: str | None, wall_now: float) -> float | None:
    """Seconds to wait by a Retry-After header, 0 to 3600; None where it says nothing that can be read."""
    if not value or len(value) > 100:
        return None
    value = value.strip()
    if _NUMBER.fullmatch(value):
        seconds = float(value)
    else:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, OverflowError, IndexError):
            return None
        # HTTP dates are GMT, also where the zone was forgotten.
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - wall_now
    return min(max(seconds, 0.0), LONGEST_WAIT)

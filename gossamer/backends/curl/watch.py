"""Keeps the deadlines of all open exchanges, and the caps on their heads.

One timer looks at all of them several times a second, so an exchange that goes well costs one comparison instead of
timers to set and cancel. A deadline is noticed at most one look late.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from time import monotonic

from gossamer.backends.curl.handle import Handle
from gossamer.ports.transport import FetchError

LOOK_EVERY = 0.05

OnPassed = Callable[[Handle, FetchError], None]


class Watch:
    """Looks at the open exchanges while there are any."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        open_handles: Callable[[], Collection[Handle]],
        on_passed: OnPassed,
    ) -> None:
        self._loop = loop
        self._open = open_handles
        self._on_passed = on_passed
        self._timer: asyncio.TimerHandle | None = None

    def wake(self) -> None:
        """To be called when an exchange begins."""
        if self._timer is None:
            self._timer = self._loop.call_later(LOOK_EVERY, self._look)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        handles = self._open()
        self._timer = self._loop.call_later(LOOK_EVERY, self._look) if handles else None
        now = monotonic()
        passed = []
        for handle in handles:
            if now >= handle.next_look or len(handle.lines) == handle.lines.maxlen:
                error = judge(handle, now)
                if error is not None:
                    passed.append((handle, error))
        for handle, error in passed:
            self._on_passed(handle, error)


def judge(handle: Handle, now: float) -> FetchError | None:
    """What ends this exchange now, if anything; else when to look again."""
    exchange = handle.exchange
    deadlines, caps = exchange.deadlines, exchange.caps
    if len(handle.lines) == handle.lines.maxlen:
        return FetchError(
            "header_limit", f"more than {caps.header_fields} fields or {caps.interim} interim responses"
        )
    end = handle.started + deadlines.total
    if handle.sent_at > now:
        due = handle.started + deadlines.connect
        if now >= due <= end:
            return FetchError("timeout_connect", f"no connection within {deadlines.connect:g} s")
        handle.next_look = min(due, end)
    elif not handle.headers_ended():
        due = handle.sent_at + deadlines.header
        if now >= due and due <= end:
            return FetchError("timeout_header", f"the headers did not end within {deadlines.header:g} s")
        handle.next_look = min(due, end)
    else:
        error = _judge_body(handle, now)
        if error is not None:
            return error
        handle.next_look = min(handle.next_look, end)
    if now >= end:
        return FetchError("timeout_total", f"the exchange took more than {deadlines.total:g} s")
    return None


def _judge_body(handle: Handle, now: float) -> FetchError | None:
    """The least rate, as a mean over each window."""
    deadlines, received = handle.exchange.deadlines, handle.received
    if handle.window_start > now:
        handle.window_start, handle.window_bytes = now, received
    elif now - handle.window_start >= deadlines.min_rate_window:
        if received - handle.window_bytes < deadlines.min_rate * (now - handle.window_start):
            return FetchError("too_slow", f"less than {deadlines.min_rate} bytes per second")
        handle.window_start, handle.window_bytes = now, received
    handle.next_look = handle.window_start + deadlines.min_rate_window
    return None

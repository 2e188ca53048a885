"""Log lines that say the same again and again: the first few are shown, then one line tells that the others are not."""

from __future__ import annotations

import logging
from collections import Counter

from gossamer.services.progress import View, ViewHandler

SHOWN = 5
MOST_KINDS = 1_000


class SparingHandler(ViewHandler):
    """Shows so many warnings and errors of one kind: the same sentence, about whatever page.

    A first argument that is one word (`handler_error`) belongs to the kind; URLs and the like do not.
    """

    def __init__(self, view: View, shown: int = SHOWN) -> None:
        super().__init__(view)
        self._shown = shown
        self._seen: Counter[tuple[str, str]] = Counter()

    def emit(self, record: logging.LogRecord) -> None:
        kind = _kind(record)
        if record.levelno >= logging.WARNING and (kind in self._seen or len(self._seen) < MOST_KINDS):
            self._seen[kind] += 1
            if self._seen[kind] > self._shown + 1:
                return
            if self._seen[kind] == self._shown + 1:
                record = logging.makeLogRecord(record.__dict__)  # others may handle it too
                what = kind[1] or "lines like the last one"
                record.msg, record.args = f"… further {what}: they are counted, not shown", ()
        super().emit(record)


def _kind(record: logging.LogRecord) -> tuple[str, str]:
    first = record.args[0] if isinstance(record.args, tuple) and record.args else ""
    return str(record.msg), first if isinstance(first, str) and first.isidentifier() else ""

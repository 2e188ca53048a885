"""What a person sees while a crawl runs: a live panel, plain lines, or nothing.

The engine pushes a `Snapshot` a few times a second into the view that `make_view` chose. All of it goes to stderr:
stdout belongs to results. A view never raises because of what is pushed, never reads a clock and starts no thread,
so it can neither slow the crawl nor hold up its end.
"""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TextIO

from gossamer.services import figures

LINE_EVERY = 5.0
"""Seconds between two plain lines; the first one comes sooner, to show that something happens."""
FIRST_LINE = 1.0


@dataclass(kw_only=True, slots=True)
class Snapshot:
    """The crawl at one moment, over all workers."""

    task: str
    state: str = "RUNNING"
    seconds: float = 0.0
    """Since this command started."""
    pages: int = 0
    items: int = 0
    failed: int = 0
    skipped: int = 0
    retried: int = 0
    pending: int = 0
    leased: int = 0
    bytes: int = 0
    hosts_busy: int = 0
    """Hosts with an open exchange."""
    hosts: int = 0
    """Hosts known so far; 0 where that is not counted."""
    errors: dict[str, int] = field(default_factory=dict)
    """FAILED pages by code."""
    page_rate: float = 0.0
    """Pages per second over the last seconds."""
    byte_rate: float = 0.0
    workers: int = 1
    sink_lag: int = 0
    """Items that are settled and not yet in the output."""
    max_pages: int | None = None
    note: str = ""
    """One sentence that matters now, such as what a Ctrl-C has started."""


class View(Protocol):
    """Shows snapshots between its entry and its exit."""

    def update(self, snapshot: Snapshot) -> None:
        """Show this; cheap to call often."""

    def say(self, line: str) -> None:
        """One line that stays: a log line, above whatever moves."""

    def close(self) -> None:
        """Take away what moves and give the terminal back. Safe to repeat."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Silent:
    """`--quiet`: nothing but what is said."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def update(self, snapshot: Snapshot) -> None:
        """Nothing is shown."""

    def say(self, line: str) -> None:
        _write(self._stream, line)

    def close(self) -> None:
        """Nothing to give back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Lines(Silent):
    """For files, pipes and CI: one line every few seconds, and one whenever the note changes."""

    def __init__(self, stream: TextIO, every: float = LINE_EVERY) -> None:
        super().__init__(stream)
        self._every = every
        self._next = min(FIRST_LINE, every)
        self._note = ""

    def update(self, snapshot: Snapshot) -> None:
        noted = snapshot.note if snapshot.note != self._note else ""
        self._note = snapshot.note
        if noted or snapshot.seconds >= self._next:
            self._next = snapshot.seconds + self._every
            self.say(line_of(snapshot, noted))


def make_view(*, quiet: bool = False, stream: TextIO | None = None) -> View:
    """The view for this terminal, pipe or wish."""
    stream = sys.stderr if stream is None else stream
    if quiet:
        return Silent(stream)
    if not stream.isatty() or not _can_draw(stream):
        return Lines(stream)
    from gossamer.services.panel import Live, wide_enough

    return Live(stream) if wide_enough(stream) else Lines(stream)


def line_of(snapshot: Snapshot, note: str = "") -> str:
    """`12s  3,210 pages (412/s)  3,180 items  0 failed  1,790 waiting`."""
    said = [
        figures.duration(round(snapshot.seconds)),
        f"{figures.counted(snapshot.pages, 'page')} ({figures.rate(snapshot.page_rate)})",
        figures.counted(snapshot.items, "item"),
        f"{snapshot.failed:,} failed",
        f"{snapshot.pending + snapshot.leased:,} waiting",
    ]
    if snapshot.state != "RUNNING":
        said.append(snapshot.state.lower())
    if note:
        said.append(figures.plain(note))
    return "  ".join(said)


class ViewHandler(logging.Handler):
    """Log records as lines of the view, so that they never tear the panel."""

    def __init__(self, view: View) -> None:
        super().__init__()
        self._view = view

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._view.say(self.format(record))
        except Exception:  # noqa: BLE001  (logging must not end a crawl)
            self.handleError(record)


def _can_draw(stream: TextIO) -> bool:
    """True if the stream takes the signs of the panel."""
    import os

    return os.environ.get("TERM") != "dumb" and "utf" in (stream.encoding or "").lower()


def _write(stream: TextIO, line: str) -> None:
    try:
        stream.write(f"{line}\n")
        stream.flush()
    except (OSError, ValueError):
        pass  # nobody reads any more; a crawl does not end because its watcher left

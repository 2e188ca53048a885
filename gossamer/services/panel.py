"""The live panel: one calm frame of fixed height, redrawn in place a few times a second.

Each frame is one `Text` of lines cut to the width, so that a redraw is cheap (the crawl shares the core with it), and
nothing moves except the figures. Foreign words (task names, codes) are stripped of control characters before.
"""

from __future__ import annotations

import shutil
import sys
from collections import deque
from types import TracebackType
from typing import Any, Self, TextIO, cast

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.live import Live as RichLive
from rich.text import Text

from gossamer.services import figures
from gossamer.services.progress import Snapshot
from gossamer.services.timeleft import TimeLeft

WIDTH, LEAST = 80, 56
REDRAW = 0.2
"""Seconds between two frames: faster is not read, only paid for."""
HISTORY = 30
BARS = "▁▂▃▄▅▆▇█"
HINT = "Ctrl-C stops safely, the same command goes on"

QUIET, PLAIN, STRONG, GOOD, BAD, WARN = "bright_black", "", "bold", "green", "red", "yellow"


def wide_enough(stream: TextIO) -> bool:
    """True if the panel fits into the terminal."""
    return _columns(stream) >= LEAST


class Whole:
    """A terminal that shows each write at once and whole: a frame is never seen half erased.

    By the synchronized output mode (2026); terminals that do not know it ignore it.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(f"\x1b[?2026h{text}\x1b[?2026l")
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Live:
    """The view of a terminal."""

    def __init__(self, stream: TextIO, *, console: Console | None = None) -> None:
        whole = cast("TextIO", Whole(stream))
        self._console = console or Console(file=whole, highlight=False, markup=False, emoji=False)
        # What a handler prints stands above the panel too, unless stdout goes elsewhere: then it is somebody's result.
        self._live = RichLive(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=sys.stdout.isatty()
        )
        self._frame = Frame()
        self._next = 0.0
        self._note = ""

    def update(self, snapshot: Snapshot) -> None:
        self._frame.seen(snapshot)
        # A new note is an answer to a keystroke: it is shown at once.
        if snapshot.seconds >= self._next or snapshot.note != self._note:
            self._next = snapshot.seconds + REDRAW
            self._note = snapshot.note
            self._live.update(self._frame.draw(snapshot, self._console.width), refresh=True)

    def say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)

    def close(self) -> None:
        self._live.stop()

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Frame:
    """Draws a snapshot, remembering the rates of the last seconds."""

    def __init__(self) -> None:
        self._rates: deque[float] = deque(maxlen=HISTORY)
        self._second = -1
        self._left = TimeLeft()

    def seen(self, snapshot: Snapshot) -> None:
        """Take note for the sparkline and for the time left, once a second."""
        if int(snapshot.seconds) != self._second:
            self._second = int(snapshot.seconds)
            self._rates.append(snapshot.page_rate)
            self._left.seen(snapshot.seconds, snapshot.pages, snapshot.pending + snapshot.leased)

    def draw(self, snapshot: Snapshot, columns: int) -> Text:
        width = max(LEAST, min(WIDTH, columns)) - 1  # the last column stays free: some terminals wrap on it
        rows = [[], *self._rows(snapshot, width), [], self._bar(snapshot, width - 6), []]
        frame = Text(no_wrap=True, overflow="crop", end="")
        _edge(frame, "╭", "╮", width, (figures.plain(snapshot.task), STRONG), (_state(snapshot), QUIET))
        for row in rows:
            _row(frame, row, width)
        note = figures.plain(snapshot.note)
        _edge(frame, "╰", "╯", width, (note, WARN) if note else (HINT, QUIET), ("", ""))
        return frame

    def _rows(self, now: Snapshot, width: int) -> list[list[tuple[str, str]]]:
        spark = sparkline(self._rates)[-max(0, width - 46) :]
        waiting = [f"{now.leased:,} open"]
        if now.hosts or now.hosts_busy:
            known = f" of {now.hosts:,}" if now.hosts else ""
            waiting.append(f"{now.hosts_busy:,}{known} hosts busy")
        unwritten = f"{now.sink_lag:,} not yet written" if now.sink_lag else ""
        return [
            _figure("Pages", f"{now.pages:,}", figures.rate(now.page_rate), spark=spark),
            _figure("Items", f"{now.items:,}", unwritten),
            _figure("Waiting", f"{now.pending:,}", " · ".join(waiting)),
            _figure("Received", figures.size(now.bytes), f"{figures.size(now.byte_rate)}/s"),
            _figure("Skipped", f"{now.skipped:,}", f"{now.retried:,} retried" if now.retried else ""),
            _figure("Failed", f"{now.failed:,}", figures.causes(now.errors), BAD if now.failed else PLAIN),
        ]

    def _bar(self, now: Snapshot, width: int) -> list[tuple[str, str]]:
        """Of the pages asked for, or else of those known so far; with the time left where it can be known."""
        waiting = now.pending + now.leased
        ended = now.pages + now.failed + now.skipped
        share = ended / (ended + waiting) if ended + waiting else 0.0
        of = "of known"
        if now.max_pages and now.pages / now.max_pages > share:
            share, of = now.pages / now.max_pages, f"of {now.max_pages:,}"
        share = min(1.0, share)
        left = self._left.left(now.max_pages)
        said = f"{int(100 * share):3} % {of}"
        right = f"about {figures.about(left)} left" if left and now.state == "RUNNING" else ""
        room = width - 38
        full = round(room * share)
        return [
            ("━" * full, GOOD),
            ("─" * (room - full), QUIET),
            (f"  {said:<16}", PLAIN),
            (f"{right:>20}", QUIET),
        ]


def sparkline(rates: deque[float]) -> str:
    """The rates as a row of bars from zero, so that a steady crawl looks steady."""
    top = max(rates, default=0.0)
    if top <= 0:
        return ""
    return "".join(BARS[min(len(BARS) - 1, int(rate / top * (len(BARS) - 1) + 0.5))] for rate in rates)


def _state(now: Snapshot) -> str:
    said = [now.state.lower(), figures.duration(int(now.seconds))]
    if now.workers > 1:
        said.insert(0, f"{now.workers} workers")
    return " · ".join(said)


def _figure(
    label: str, figure: str, beside: str, style: str = PLAIN, *, spark: str = ""
) -> list[tuple[str, str]]:
    row = [(f"{label:<10}", QUIET), (f"{figure:>11}", style), (f"    {beside:<12}", QUIET)]
    if spark:
        row.append((f" {spark}", GOOD))
    return row


def _row(frame: Text, row: list[tuple[str, str]], width: int) -> None:
    frame.append("│", QUIET)
    room = width - 4
    frame.append("  ")
    for text, style in row:
        text = set_cell_size(text, room) if cell_len(text) > room else text
        frame.append(text, style)
        room -= cell_len(text)
    frame.append(" " * room)
    frame.append("│\n", QUIET)


def _edge(
    frame: Text, start: str, end: str, width: int, left: tuple[str, str], right: tuple[str, str]
) -> None:
    """A border with words in it: what it is at the left, how it stands at the right."""
    after = f" {right[0]} ─" if right[0] else ""
    room = width - cell_len(after) - 6
    name = left[0] if cell_len(left[0]) <= room else f"{set_cell_size(left[0], room - 1)}…"
    frame.append(f"{start}─ ", QUIET)
    frame.append(name, left[1])
    frame.append(f" {'─' * (width - cell_len(name) - cell_len(after) - 5)}{after}{end}", QUIET)
    if start == "╭":
        frame.append("\n")


def _columns(stream: TextIO) -> int:
    try:
        import os

        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns

"""Progress is a panel on a terminal, lines in a pipe and nothing when quiet; it goes to the stream it was given only."""

from __future__ import annotations

import io
import logging
from collections import deque
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from gossamer.services import figures
from gossamer.services.panel import LEAST, Frame, Live, Whole, sparkline
from gossamer.services.progress import Lines, Silent, Snapshot, ViewHandler, line_of, make_view
from gossamer.services.timeleft import TimeLeft


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"  # type: ignore[assignment]

    def isatty(self) -> bool:
        return True


def busy(**changes: Any) -> Snapshot:
    known: dict[str, Any] = {
        "task": "books",
        "seconds": 12.4,
        "pages": 3210,
        "items": 3180,
        "pending": 1726,
        "leased": 64,
        "page_rate": 412.3,
        "bytes": 41_200_000,
    }
    return Snapshot(**(known | changes))


def drawn(snapshot: Snapshot, columns: int = 80, frame: Frame | None = None) -> list[str]:
    return (frame or Frame()).draw(snapshot, columns).plain.splitlines()


def live(columns: int = 80) -> tuple[Live, Terminal]:
    stream = Terminal()
    console = Console(file=stream, force_terminal=True, width=columns, height=24, color_system=None)
    return Live(stream, console=console), stream


def test_a_plain_line_tells_the_whole_crawl():
    """The line of a pipe is exactly what the documentation shows."""
    assert line_of(busy()) == "12s  3,210 pages (412/s)  3,180 items  0 failed  1,790 waiting"


def test_a_plain_line_names_a_state_that_is_not_running():
    """A pause and a note stand at the end of the line."""
    line = line_of(busy(state="PAUSED"), "a note\x1b[2J")
    assert line.endswith("waiting  paused  a note�[2J")


def test_lines_come_every_few_seconds():
    """Many updates a second make one line at a time: soon the first, then one each interval."""
    stream = io.StringIO()
    with Lines(stream, every=5.0) as view:
        for tenth in range(121):
            view.update(busy(seconds=tenth / 10))
    assert [line.partition(" ")[0] for line in stream.getvalue().splitlines()] == ["1s", "6s", "11s"]


def test_a_new_note_is_told_at_once_and_once():
    """What a Ctrl-C started is seen immediately, also between two lines."""
    stream = io.StringIO()
    view = Lines(stream)
    for seconds in (0.1, 0.2, 0.3):
        view.update(busy(seconds=seconds, note="stopping" if seconds > 0.1 else ""))
    assert stream.getvalue().count("stopping") == 1


def test_quiet_shows_nothing_but_what_is_said():
    """--quiet has no progress; a warning still comes through."""
    stream = Terminal()
    view = make_view(quiet=True, stream=stream)
    view.update(busy())
    view.say("the disk is full")
    assert isinstance(view, Silent)
    assert stream.getvalue() == "the disk is full\n"


def test_the_stream_decides_about_the_view(monkeypatch: pytest.MonkeyPatch):
    """A pipe, a dumb terminal and an encoding without the signs get lines; a terminal gets the panel."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    assert isinstance(make_view(stream=io.StringIO()), Lines)
    assert isinstance(make_view(stream=Terminal()), Live)
    monkeypatch.setenv("COLUMNS", str(LEAST - 1))
    assert isinstance(make_view(stream=Terminal()), Lines)
    monkeypatch.setenv("COLUMNS", "80")
    latin = Terminal()
    latin.encoding = "latin-1"  # type: ignore[misc]
    assert isinstance(make_view(stream=latin), Lines)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(make_view(stream=Terminal()), Lines)


def test_a_reader_that_left_does_not_end_the_crawl():
    """A closed stderr is no reason to fail."""
    stream = io.StringIO()
    view = Lines(stream)
    stream.close()
    view.update(busy())


@pytest.mark.parametrize("columns", [LEAST, 60, 72, 80, 200])
@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot(task="t"),
        busy(),
        busy(
            task="長い名前" * 30, note="字" * 200, errors={f"http_{n}": n for n in range(500, 530)}, failed=9
        ),
        busy(
            pages=10**10, items=10**10, pending=10**10, bytes=10**15, max_pages=10**11, workers=16, sink_lag=7
        ),
    ],
)
def test_every_frame_has_one_shape(snapshot: Snapshot, columns: int):
    """Whatever is in it, a frame has the same height and a straight right edge, so nothing flickers or wraps."""
    frame = Frame()
    for second in range(40):
        snapshot.seconds = second
        frame.seen(snapshot)
    lines = drawn(snapshot, columns, frame)
    assert len(lines) == 12
    assert {cell_len(line) for line in lines} == {min(80, columns) - 1}
    assert {line[-1] for line in lines} == set("╮│╯")


def test_a_frame_tells_the_figures():
    """Rates, queue, hosts and errors by code stand in the panel."""
    text = "\n".join(
        drawn(
            busy(
                hosts=40, hosts_busy=12, failed=3, errors={"timeout": 1, "http_503": 2}, retried=4, sink_lag=5
            )
        )
    )
    for said in (
        "3,210    412/s",
        "64 open · 12 of 40 hosts busy",
        "http_503 2 · timeout 1",
        "4 retried",
        "5 not yet",
    ):
        assert said in text


def test_the_panel_strips_what_a_terminal_would_obey():
    """A task name with an escape sequence cannot clear the screen."""
    assert "\x1b" not in "".join(drawn(busy(task="\x1b[2Jevil", note="\x1b]0;evil")))


def test_the_panel_is_redrawn_in_place_and_taken_away():
    """Frames are not more frequent than the eye reads; a log line stays above; nothing of the panel remains."""
    view, stream = live()
    with view:
        for step in range(30):
            view.update(busy(seconds=step / 10))
        frames = stream.getvalue().count("╭")
        view.say("WARNING one line that stays")
        view.update(busy(seconds=3.0, note="stopping"))
    assert 10 <= frames <= 16
    assert "one line that stays" in stream.getvalue()
    assert stream.getvalue().count("\x1b[?25l") == stream.getvalue().count("\x1b[?25h")


def test_a_frame_is_shown_whole():
    """Erasing and drawing are one synchronized write, so no half frame is ever seen."""
    stream = Terminal()
    Whole(stream).write("frame")
    assert stream.getvalue() == "\x1b[?2026hframe\x1b[?2026l"
    assert Whole(stream).isatty()


def test_what_a_handler_prints_does_not_tear_the_panel(monkeypatch: pytest.MonkeyPatch):
    """A print to the same terminal stands above the panel; into a pipe it goes untouched."""
    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    view, stream = live()
    with view:
        view.update(busy())
        print("found one")
    assert "found one" in stream.getvalue()
    pipe = io.StringIO()
    monkeypatch.setattr("sys.stdout", pipe)
    view, stream = live()
    with view:
        print("found two")
    assert pipe.getvalue() == "found two\n"
    assert "found two" not in stream.getvalue()


def test_closing_twice_is_safe():
    """The end of a crawl may be reached on several ways."""
    view, _ = live()
    with view:
        view.close()


def test_log_records_go_through_the_view():
    """A log line never tears the panel, because the view itself writes it."""
    stream = io.StringIO()
    record = logging.LogRecord("test", logging.WARNING, "x.py", 1, "host %s is parked", ("a.example",), None)
    ViewHandler(Lines(stream)).handle(record)
    assert stream.getvalue() == "host a.example is parked\n"


def test_a_sparkline_starts_at_zero():
    """A steady crawl is a full line, a halved one half as high, an idle one empty."""
    assert sparkline(deque([400.0, 400.0, 200.0, 0.0])) == "██▅▁"
    assert sparkline(deque([0.0])) == ""


class TestTimeLeft:
    """The time left is told only where it can be known."""

    @staticmethod
    def after(points: list[tuple[float, int, int]], max_pages: int | None = None) -> float | None:
        left = TimeLeft()
        for point in points:
            left.seen(*point)
        return left.left(max_pages)

    def test_a_growing_queue_has_no_end(self):
        """As long as more is found than got, nobody knows."""
        assert self.after([(t, 100 * t, 50 * t) for t in range(1, 20)]) is None

    def test_a_shrinking_queue_ends_when_it_is_empty(self):
        """100 fewer a second with 1,000 to go are ten seconds."""
        assert self.after([(t, 100 * t, 2000 - 100 * t) for t in range(1, 11)]) == pytest.approx(10)

    def test_a_bound_on_pages_is_an_end(self):
        """With max_pages the rest is known although the queue grows."""
        assert self.after([(t, 100 * t, 500 * t) for t in range(1, 11)], 3000) == pytest.approx(20)

    def test_nothing_is_said_too_early(self):
        """Two seconds are no measurement."""
        assert self.after([(0, 0, 100), (2, 50, 50)], 100) is None

    def test_a_crawl_that_stands_still_has_no_end(self):
        """Without progress there is nothing to divide by."""
        assert self.after([(t, 7, 100) for t in range(20)], 100) is None

    def test_only_the_last_seconds_count(self):
        """An early growth is forgotten."""
        points = [(t, 10 * t, 10 * t) for t in range(100)] + [
            (t, 10 * t, 2000 - 10 * t) for t in range(100, 140)
        ]
        assert self.after(points) == pytest.approx(61, abs=1)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0s"),
        (0.02, "20ms"),
        (0.42, "0.4s"),
        (12, "12s"),
        (59.6, "1m 00s"),
        (72, "1m 12s"),
        (7380, "2h 03m"),
        (273_600, "3d 4h"),
    ],
)
def test_durations_are_short(seconds: float, said: str):
    """Two units at most."""
    assert figures.duration(seconds) == said


@pytest.mark.parametrize(
    ("octets", "said"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (99_960, "100 kB"),
        (41_200_000, "41.2 MB"),
        (3e12, "3.0 TB"),
    ],
)
def test_sizes_have_three_digits(octets: float, said: str):
    """Sizes are as long as they are exact."""
    assert figures.size(octets) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(4, "a few seconds"), (38, "40s"), (58, "1m 00s"), (95, "1m 40s"), (3000, "50m"), (5400, "1h 30m")],
)
def test_estimates_are_no_more_exact_than_they_are(seconds: float, said: str):
    """An estimate moves in steps."""
    assert figures.about(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.2, "just now"), (9.7, "9s ago"), (59.9, "59s ago"), (119, "1m ago"), (90_000, "1d ago")],
)
def test_ages_have_one_unit(seconds: float, said: str):
    """`3h ago` is enough."""
    assert figures.ago(seconds) == said


def test_causes_are_ranked_and_bounded():
    """The most frequent come first, the rest is a number."""
    assert figures.causes({"a": 1, "b": 1000, "c": 2, "none": 0}, 2) == "b 1,000 · c 2 · 1 more"

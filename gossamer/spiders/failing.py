"""What is said when the author's own code raises: one line, with the place in the author's file."""

from __future__ import annotations

import linecache
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from gossamer.model.errors import GossamerError

MAX_LINE = 300

_OURS = str(Path(__file__).resolve().parents[1])
_LIBRARIES = tuple(
    {
        path
        for name, path in sysconfig.get_paths().items()
        if name in {"stdlib", "platstdlib", "purelib", "platlib"}
    }
)


class HandlerFailed(GossamerError):  # noqa: N818  (a fact about a page, known by this name to the engine)
    """A handler (or hook) raised: nothing of what it asked for exists. The cause is chained to it."""

    code = "handler"

    def __init__(self, function: str, error: BaseException) -> None:
        self.function = function
        self.error = type(error).__name__
        self.place = place_of(error)
        said = " ".join(str(error).split())
        told = f"{function} raised {self.error}{f': {said}' if said else ''}"
        super().__init__(told[:MAX_LINE], where=self.place)


def place_of(error: BaseException) -> str:
    """`books.py:12 in book: price = float(text)`: the innermost line that is the author's."""
    frames = list(_frames(error.__traceback__))
    if not frames:
        return "unknown"
    own = [frame for frame in frames if _is_author_s(frame.filename)]
    frame = (own or [frame for frame in frames if not frame.filename.startswith(_OURS)] or frames)[-1]
    line = linecache.getline(frame.filename, frame.lineno or 0).strip()
    place = f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return f"{place}: {line}"[:MAX_LINE] if line else place


def _frames(trace: TracebackType | None) -> traceback.StackSummary:
    # Without the lines of the source: they are looked up for one frame only.
    return traceback.StackSummary.extract(traceback.walk_tb(trace), lookup_lines=False)


def _is_author_s(filename: str) -> bool:
    return not filename.startswith((_OURS, *_LIBRARIES, "<frozen"))

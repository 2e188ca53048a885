"""Where a crawl starts: whatever an author gives as `start`, read as one stream.

A stream is read as it is needed: a file of a hundred million lines or a generator that never ends costs no memory. What
cannot be a URL is handed on all the same, for the engine counts it with a reason.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Mapping
from inspect import isawaitable
from pathlib import Path
from typing import Any, TextIO

from gossamer.model.errors import InvalidURL, SpiderError
from gossamer.model.request import Request
from gossamer.model.url import canonical

Seed = str | Request
Source = Seed | Path | Iterable[Seed] | Callable[[], Any]

STDIN = "-"
MAX_LINE = 32 * 1024
_LINES_AT_ONCE = 1000


def check_start(spider: str, start: Any) -> None:
    """Refuse at once what can never start a crawl; everything else shows while it is read."""
    if isinstance(start, str) and start != STDIN:
        try:
            canonical(start)
        except InvalidURL as error:
            raise SpiderError(
                f"The spider {spider!r} cannot start from {start!r:.200}: {error.what}",
                hint='write a full URL (https://…), Path("urls.txt") for a file of URLs, or "-" for standard input',
            ) from None
    elif isinstance(start, bytes | Mapping) or not (
        isinstance(start, str | Request | Path | Iterable | AsyncIterable) or callable(start)
    ):
        raise SpiderError(
            f"The spider {spider!r} cannot start from a {type(start).__name__}",
            hint="give a URL, a list of URLs, a Path, or a function that yields URLs",
        )


async def read_seeds(start: Any) -> AsyncIterator[Seed]:
    """Every seed of `start`, in its order."""
    if isinstance(start, Path):
        lines = _lines_of(start)
    elif start == STDIN:
        lines = _lines(sys.stdin)
    elif isinstance(start, str | Request):
        yield start
        return
    else:
        lines = _called(start)
    async for seed in lines:
        yield seed


async def _called(start: Any) -> AsyncIterator[Seed]:
    source = start() if callable(start) else start
    if isawaitable(source):
        source = await source
    if isinstance(source, str | Request | Path):
        async for seed in read_seeds(source):
            yield seed
    elif isinstance(source, AsyncIterable):
        async for seed in source:
            yield _seed(seed)
    elif isinstance(source, Iterable):
        for seed in source:
            yield _seed(seed)
    else:
        raise SpiderError(
            f"start gave a {type(source).__name__} instead of URLs", hint="yield or return URLs and Requests"
        )


def _seed(value: Any) -> Seed:
    if not isinstance(value, str | Request):
        raise SpiderError(f"start gave {value!r:.100}, which is no URL", hint="yield URLs and Requests")
    return value


async def _lines_of(path: Path) -> AsyncIterator[Seed]:
    try:
        file = path.open(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise SpiderError(f"The file of URLs cannot be read: {error.strerror}", where=str(path)) from None
    with file:
        async for line in _lines(file):
            yield line


async def _lines(file: TextIO) -> AsyncIterator[Seed]:
    """One URL a line; blank lines and comments (#) are passed over. Read in a thread: a pipe may keep it waiting."""
    while lines := await asyncio.to_thread(_some_lines, file):
        for line in lines:
            if (url := line.strip()) and not url.startswith("#"):
                yield url


def _some_lines(file: TextIO) -> list[str]:
    """The next lines: many of a file, those that are there of a terminal or a pipe."""
    lines: list[str] = []
    while len(lines) < _LINES_AT_ONCE and (line := file.readline(MAX_LINE)):
        lines.append(line)
        if file is sys.stdin:
            break
    return lines

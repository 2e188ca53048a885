"""The composition root: the only place that chooses backends. Settings go in, opened objects come out."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.model.errors import StateError
from gossamer.model.settings import Settings
from gossamer.ports.blobs import BODY
from gossamer.ports.cache import AnswerCache
from gossamer.ports.frontier import Frontier
from gossamer.ports.sinks import ItemSink
from gossamer.ports.transport import Transport
from gossamer.services.bodies import BLOBS

FRONTIER_FILE = "frontier.db"


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def open_frontier(state: Path) -> AsyncIterator[Frontier]:
    """The frontier that a state folder holds; made if there is none."""
    async with SqliteFrontier(state / FRONTIER_FILE) as frontier:
        yield frontier


def has_state(state: Path) -> bool:
    """Whether anything was ever crawled with this folder."""
    return (state / FRONTIER_FILE).exists()


def discard_state(state: Path) -> None:
    """Remove what a state folder holds, and nothing else that may lie in it."""
    try:
        for file in state.glob(f"{Path(FRONTIER_FILE).stem}.*"):
            file.unlink()
        shutil.rmtree(state / "sessions", ignore_errors=True)
        _discard_blobs(state / BLOBS)
    except OSError as error:
        raise StateError(
            f"The old state cannot be removed: {error.strerror}",
            where=str(state),
            hint="check its permissions",
        ) from error


def _discard_blobs(folder: Path) -> None:
    """Remove the bodies: no record is left that names them, and nobody else ever would.

    The folder itself may be a link to a larger disk, where others have their own; only ours are taken out of it.
    """
    if not folder.is_dir():
        return
    for kind in (BODY, ".new"):
        if (folder / kind).is_dir():
            shutil.rmtree(folder / kind)
    if not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def open_cache(settings: Settings) -> AnswerCache | None:
    """Where answers are kept during development; None unless that is asked for."""
    if settings.cache is None:
        return None
    from gossamer.backends.files.cache import FileAnswerCache

    return FileAnswerCache(Path(settings.cache))


def open_sink(output: Path) -> ItemSink:
    """Where items go: a file, or standard output for `-`."""
    from gossamer.backends.files.jsonl import JsonlSink, StdoutSink

    return StdoutSink() if str(output) == "-" else JsonlSink(output)


def open_transport(settings: Settings) -> Transport:
    """What carries exchanges; opened with `async with`."""
    from gossamer.backends.curl.transport import CurlTransport

    return CurlTransport(
        allow_net=settings.allow_net,
        ca_file=settings.ca_file,
        idle_connections=max(512, 2 * settings.concurrency),
    )

"""A worker with all that it works with: the same in a command of one process, in each child of a crew, and in a script."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from gossamer.crawling.handling import Handling
from gossamer.crawling.pulse import Pulse
from gossamer.crawling.runtime import Runtime
from gossamer.crawling.worker import Worker
from gossamer.model.errors import ExitCode
from gossamer.model.task import TaskSpec
from gossamer.ports.frontier import Frontier
from gossamer.services.bodies import BLOBS
from gossamer.services.heap import keep_heap
from gossamer.services.strangers import Telling
from gossamer.services.submission import Kept
from gossamer.services.wiring import SystemClock, open_cache, open_transport
from gossamer.spiders.spider import Spider

log = logging.getLogger("gossamer")

STUCK_IN = "STUCK_GOSSAMER_IN"  # where this process was stuck in its former lives
MOST_TIMES = 3


@asynccontextmanager
async def worker_parts(
    frontier: Frontier,
    spec: TaskSpec,
    spider: Spider,
    kept: Kept,
    state: Path,
    *,
    on_stuck: Callable[[str, float], None] | None = None,
) -> AsyncIterator[Worker]:
    """A worker with its transport, blobs and watch, ready to run."""
    from gossamer.backends.files.blobs import FileBlobs

    keep_heap()
    runtime = Runtime(
        spec,
        spider,
        kept.settings,
        incarnation=frontier.incarnation,
        hosts=kept.hosts,
        home=kept.home,
        cache=open_cache(kept.settings),
    )
    pulse = Pulse(kept.settings.handler_hard, on_stuck or only_said)
    async with contextlib.AsyncExitStack() as stack:
        transport = await stack.enter_async_context(
            Telling(open_transport(kept.settings), kept.settings.host_patience)
        )
        blobs = (
            await stack.enter_async_context(FileBlobs(state / BLOBS)) if kept.settings.keep_bodies else None
        )
        pulse.start()
        stack.callback(pulse.stop)
        yield Worker(
            frontier, transport, {spec.name: runtime}, Handling(pulse), SystemClock(),
            concurrency=kept.settings.concurrency, blobs=blobs,
        )  # fmt: skip


def only_said(where: str, seconds: float) -> None:
    """Where the process is not ours to replace: a notebook, a script."""
    log.error("the handler of %s has not come back for %.0f s", where, seconds)


def begin_again(where: str, seconds: float) -> None:
    """This process is stuck in a handler: become a new one, which goes on where this one was.

    A page that hangs is handled in a child the next time. What hangs in the same place again and again is no page's handler,
    and nothing would ever change about it: then the run ends.
    """
    places = os.environ.get(STUCK_IN, "").split("\n")
    tells = "\x1b[?25h\n" if sys.stderr.isatty() else ""
    what = f"the handler of {where}" if "://" in where else where
    said = f"{tells}gossamer: {what} has not come back for {seconds:.0f} s"
    if places.count(where) >= MOST_TIMES - 1:
        sys.stderr.write(f"{said}, now {MOST_TIMES} times; the run ends (what was crawled is kept)\n")
        sys.stderr.flush()
        os._exit(int(ExitCode.TASK_FAILED))
    sys.stderr.write(f"{said}; starting this process anew\n")
    sys.stderr.flush()
    os.environ[STUCK_IN] = "\n".join([*places, where][-100:])
    arguments = [word for word in sys.argv[1:] if word != "--fresh"]
    os.execv(sys.executable, [sys.executable, "-m", "gossamer.services.cli", *arguments])  # noqa: S606  (this same program)

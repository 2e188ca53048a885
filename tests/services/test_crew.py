"""A supervisor and its children: the dead are replaced, and the silent are ended first."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from gossamer.services import crew

BEATING = "import os, sys, time\nwhile True:\n    os.write(int(sys.argv[1]), b'.')\n    time.sleep(0.02)"
QUIET = "import time\ntime.sleep(60)"


async def child_that(does: str) -> tuple[asyncio.subprocess.Process, int]:
    heart, beats = os.pipe()
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", does, str(beats), pass_fds=[beats])
    os.close(beats)
    return child, heart


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(crew, "SILENT", 0.3)


async def test_a_child_whose_heart_stands_still_is_killed() -> None:
    """A process that was stopped may hold the store's lock; nobody would ever get it again."""
    child, heart = await child_that(BEATING)
    listening = asyncio.create_task(crew.listen(heart, child))
    await asyncio.sleep(0.8)
    assert child.returncode is None, "it beats, and is left alone"
    child.send_signal(signal.SIGSTOP)
    assert await asyncio.wait_for(child.wait(), 5) == -signal.SIGKILL
    await asyncio.wait_for(listening, 5)


async def test_a_child_that_never_beats_is_killed() -> None:
    """What hangs before it has begun is no worker either."""
    child, heart = await child_that(QUIET)
    await asyncio.wait_for(crew.listen(heart, child), 5)
    assert await asyncio.wait_for(child.wait(), 5) == -signal.SIGKILL


async def test_a_child_that_ends_is_not_killed() -> None:
    """The end of the pipe is the end of the child, and its own exit code stays."""
    child, heart = await child_that("import sys; sys.exit(3)")
    await asyncio.wait_for(crew.listen(heart, child), 5)
    assert await child.wait() == 3


def test_ends_are_told_in_words() -> None:
    """A signal by its name, a hung handler as such, else the exit code."""
    assert crew.told(-signal.SIGKILL) == "was ended by SIGKILL"
    assert crew.told(crew.STUCK) == "was stuck in a handler"
    assert crew.told(4) == "ended with exit code 4"

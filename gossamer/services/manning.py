"""`gossamer worker` on one machine: so many processes, kept alive until they are told to stop."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

from gossamer.model.errors import ExitCode
from gossamer.services.crew import Crew, Duty
from gossamer.services.projects import Project
from gossamer.services.running import run_loop
from gossamer.services.wiring import open_frontier


def man(duty: Duty, processes: int) -> int:
    """Until the processes have ended; the exit code."""
    logging.basicConfig(format="%(message)s", level=logging.WARNING, stream=sys.stderr)
    logging.getLogger("gossamer").setLevel(logging.INFO)
    run_loop(_man(duty, processes))
    return int(ExitCode.COMPLETED)


async def _man(duty: Duty, processes: int) -> None:
    # What is wrong with the store or a project is told once, here, and not by each process again and again.
    for target in duty.role.projects if duty.role is not None else ():
        Project(target).spiders()
    async with open_frontier(Path(duty.state), duty.frontier, duty.namespace, telling=True):
        pass
    crew = Crew(duty, processes)
    told: list[int] = []

    def stop() -> None:
        if told:
            crew.kill()
        else:
            crew.stop()
        told.append(1)

    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, stop)
    await crew.run()

"""Several worker processes on one machine: a supervisor starts them, and starts anew those that die.

The supervisor feeds seeds, brings items to their sinks, shows progress and keeps limits; the children only work. A child that
is killed, or that ends itself because a handler hangs, is replaced; what it held goes back to the frontier at once, since its
locks are gone with it. A child that is alive and does nothing (it was stopped, the machine swaps) is known by its silence: it
may hold the store's lock, so it is killed and replaced too. Children end with their supervisor, however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import platform
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from gossamer.crawling.worker import Worker
from gossamer.model.errors import ExitCode, TaskFailed

log = logging.getLogger("gossamer")

PR_SET_PDEATHSIG = 1
FRONTIER = "GOSSAMER_FRONTIER"  # where a child finds the URL of the frontier that it shares
STUCK = 86  # the exit code of a child whose handler hangs
MOST_DEATHS = 10  # of one place in the crew within the time below: then something is wrong with all of them
DEATHS_WITHIN = 60.0
STOP_WITHIN = 28.0  # seconds that children have to finish what is open
BEAT_EVERY = 1.0
SILENT = (
    5.0  # twice so many seconds without a beat, and a child is killed; the second time is for our own sleep
)


class Role(msgspec.Struct, frozen=True):
    """What `gossamer worker` was started with."""

    projects: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()  # empty: all
    concurrency: int = 64
    labels: tuple[str, ...] = ()
    delay: float = 0.0  # no host is asked more often than this by this worker
    proxy: str | None = None


class Duty(msgspec.Struct, frozen=True):
    """What a child needs to find its task and its spider."""

    state: str
    task: str
    parent: int
    file: str | None = None
    urls: tuple[str, ...] = ()
    select: dict[str, str] = {}
    follow: bool = True
    args: dict[str, str] = {}
    frontier: str = ""
    namespace: str = ""
    role: Role | None = None  # it serves whatever tasks there are, instead of one


class Crew:
    """So many children, kept alive until the task ends."""

    def __init__(self, duty: Duty, count: int) -> None:
        # Everybody on the machine sees the words of a command; the frontier's URL may hold a password.
        self._duty = msgspec.json.encode(msgspec.structs.replace(duty, frontier="")).decode()
        self._environment = {**os.environ, FRONTIER: duty.frontier}
        self._count = count
        self._children: dict[int, asyncio.subprocess.Process] = {}
        self._stopping = False
        self.deaths = 0

    async def run(self) -> None:
        """Until every child has ended in peace. Raises TaskFailed when they die faster than is reasonable."""
        try:
            async with asyncio.TaskGroup() as group:
                for place in range(self._count):
                    group.create_task(self._keep(place))
        except* TaskFailed as failures:
            raise failures.exceptions[0] from None

    async def _keep(self, place: int) -> None:
        loop = asyncio.get_running_loop()
        deaths: list[float] = []
        while not self._stopping:
            child, heart = await self._start(place)
            listening = asyncio.create_task(listen(heart, child))
            try:
                code = await child.wait()
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)
            self._children.pop(place, None)
            if code == ExitCode.COMPLETED or self._stopping:
                return
            self.deaths += 1
            deaths = [at for at in deaths if loop.time() - at < DEATHS_WITHIN] + [loop.time()]
            log.warning("worker %d %s; another one takes its place", place + 1, told(code))
            if len(deaths) >= MOST_DEATHS:
                raise TaskFailed(
                    f"Worker {place + 1} died {len(deaths)} times within a minute",
                    hint="see the messages above; the same command goes on where it stopped",
                )
            await asyncio.sleep(min(0.05 * 2 ** len(deaths), 5.0))

    async def _start(self, place: int) -> tuple[asyncio.subprocess.Process, int]:
        """A child, and the end of the pipe on which its heart is heard."""
        heart, beats = os.pipe()
        try:
            # A session of its own: Ctrl-C at the terminal reaches the supervisor, who tells the children in order.
            child = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "gossamer.services.crew", self._duty, str(place), str(beats),
                start_new_session=True, pass_fds=[beats], env=self._environment,
            )  # fmt: skip
        except BaseException:
            os.close(heart)
            raise
        finally:
            os.close(beats)
        self._children[place] = child
        if self._stopping:  # it was being made when the others were told
            child.terminate()
        return child, heart

    def stop(self) -> None:
        """Let the children finish what is open; those that cannot are killed, which loses nothing."""
        self._stopping = True
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
        asyncio.get_running_loop().call_later(STOP_WITHIN, self.kill)

    def kill(self) -> None:
        """End them at once, which loses nothing."""
        self._stopping = True
        for child in self._children.values():
            with contextlib.suppress(ProcessLookupError):
                child.kill()


async def listen(heart: int, child: asyncio.subprocess.Process) -> None:
    """Kill the child when its heart stands still."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    pipe, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(heart, "rb", 0)
    )
    silent, worked = 0, 0.0
    try:
        while silent < 2:
            try:
                async with asyncio.timeout(SILENT):
                    if not await reader.read(1024):
                        return
                silent = 0
            except TimeoutError:
                before, worked = worked, cpu_of(child.pid)
                # One long call into C keeps its heart from beating, too. That is work, and the pulse's to judge when it ends.
                silent = 0 if worked - before > SILENT / 2 else silent + 1
        log.warning(
            "a worker (process %d) has given no sign of life for %g s and is ended", child.pid, 2 * SILENT
        )
        with contextlib.suppress(ProcessLookupError):
            child.kill()
    finally:
        pipe.close()


def cpu_of(pid: int) -> float:
    """Seconds of processor that a process has had so far."""
    try:
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def beat(beats: int) -> None:
    """Let the supervisor hear that this process is scheduled; what its loop does is the pulse's to watch."""
    with contextlib.suppress(OSError):  # the supervisor is gone: the kernel ends us
        while True:
            os.write(beats, b".")
            time.sleep(BEAT_EVERY)


def told(code: int) -> str:
    if code == STUCK:
        return "was stuck in a handler"
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"


async def work(duty: Duty, place: int) -> None:
    """A child's life: one worker, until its task has ended or it is told to stop."""
    if duty.role is not None:
        from gossamer.services.role import serve

        await serve(duty, duty.role)
        return
    from gossamer.services.running import spider_for, worker_parts
    from gossamer.services.submission import read_kept
    from gossamer.services.wiring import open_frontier

    spider = spider_for(duty)
    async with open_frontier(Path(duty.state), duty.frontier, duty.namespace) as frontier:
        found = await frontier.tasks([duty.task])
        if not found:
            raise TaskFailed(f"There is no task {duty.task!r}", where=duty.state)
        kept = read_kept(found[0].spec)
        async with worker_parts(
            frontier, found[0].spec, spider, kept, Path(duty.state), on_stuck=stuck
        ) as worker:
            worker.name = f"{platform.node()}-{os.getpid()}" if duty.frontier else f"worker-{place + 1}"
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leave_in_time, worker)
            await worker.run()


def leave_in_time(worker: Worker) -> None:
    """Stop in good order; and at last anyhow, for the store may be away and the supervisor dead."""
    worker.stop()
    asyncio.get_running_loop().call_later(STOP_WITHIN, os._exit, int(ExitCode.COMPLETED))


def stuck(where: str, seconds: float) -> None:
    print(
        f"gossamer: the handler of {where} has not come back for {seconds:.0f} s; this worker is replaced",
        file=sys.stderr,
    )
    sys.stderr.flush()
    os._exit(STUCK)


def main(argv: list[str]) -> int:
    from gossamer.model.errors import GossamerError
    from gossamer.services.running import run_loop

    duty = msgspec.json.decode(argv[0], type=Duty)
    duty = msgspec.structs.replace(duty, frontier=os.environ.pop(FRONTIER, ""))
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != duty.parent:
        return int(ExitCode.COMPLETED)  # the supervisor went away before we could be told
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=beat, args=(int(argv[2]),), name="heart", daemon=True).start()
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        run_loop(work(duty, int(argv[1])))
    except GossamerError as error:
        print(f"gossamer: {error}", file=sys.stderr)
        return int(ExitCode.TASK_FAILED)
    return int(ExitCode.COMPLETED)


def duty_of(state: str, task: str, **spider: Any) -> Duty:
    """A duty under this process."""
    return Duty(state, task, os.getpid(), **spider)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

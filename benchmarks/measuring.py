"""Runs one program and measures it from outside: wall time from start to exit, CPU, peak memory.

CPU and memory are the kernel's account of the process and of all children it has waited for. Peak memory is that of the
largest single process. A program that outlives its time is killed with everything it started.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = 600
"""Characters kept of what a failed program said last."""


@dataclass
class Measured:
    """One run of one program."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_rss_mib: float = 0.0
    server_cpu_seconds: float = 0.0
    problem: str | None = None
    """Why this run counts for nothing; None: it counts."""

    def to_json(self) -> dict[str, Any]:
        return {
            name: round(value, 4) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }


def cores() -> list[int]:
    """The cores that we may use; none where the system does not tell."""
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


def cpu_seconds(pid: int) -> float:
    """What a process that is alive has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pinned(core: int | None) -> Callable[[], None] | None:
    """What a child does first, so that it and its children stay on that core."""
    return None if core is None else lambda: os.sched_setaffinity(0, {core})


def measure(
    command: Sequence[str],
    folder: Path,
    *,
    timeout: float,
    core: int | None = None,
    watch: Callable[[int], None] | None = None,
    every: float = 0.25,
) -> Measured:
    """Run it to its end, its words in `folder`/stdout and /stderr. `watch(pid)` is called again and again meanwhile."""
    result = Measured()
    over = threading.Event()
    with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
        start = time.perf_counter()
        process = subprocess.Popen(
            list(command), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            start_new_session=True, preexec_fn=pinned(core),  # noqa: PLW1509  (no thread of ours is alive here)
        )  # fmt: skip
        late = threading.Timer(timeout, _kill, [process.pid])
        late.start()
        watcher = threading.Thread(target=_watch, args=(process.pid, watch, every, over))
        watcher.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
            result.seconds = time.perf_counter() - start
            process.returncode = os.waitstatus_to_exitcode(status)
        finally:
            expired = not late.is_alive()
            late.cancel()
            over.set()
            _kill(process.pid)  # what it may have left running
            watcher.join()
    result.cpu_seconds = usage.ru_utime + usage.ru_stime
    result.peak_rss_mib = usage.ru_maxrss / 1024
    if expired:
        result.problem = f"not done within {timeout:.0f} s"
    elif process.returncode != 0:
        result.problem = f"exit {process.returncode}: {last_words(folder)}"
    return result


def last_words(folder: Path) -> str:
    """The end of what the program said on standard error, or else on standard output."""
    for name in ("stderr", "stdout"):
        said = (folder / name).read_text(errors="replace").strip()[-KEPT:]
        if said:
            return " ".join(said.replace(str(folder), "…").replace(str(ROOT), ".").split())
    return "it said nothing"


def resident_mib(group: int) -> float:
    """Resident memory of all processes of a group now; shared pages count in each."""
    pages = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # gone meanwhile
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def cpu_of(pid: int) -> float:
    """CPU seconds that a running process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _watch(pid: int, watch: Callable[[int], None] | None, every: float, over: threading.Event) -> None:
    while watch is not None and not over.wait(every):
        watch(pid)


def _kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)

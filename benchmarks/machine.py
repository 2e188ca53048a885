"""What the figures were measured on: processor, system, versions, disk."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measuring import ROOT, cores

PEERS = ROOT / ".venv-peers"
OURS = ("gossamer", "pycurl", "selectolax", "can-ada", "msgspec", "uvloop")
THEIRS = ("scrapy", "twisted", "crawlee", "impit", "parsel", "lxml", "uvloop")
_ASK = """
import importlib.metadata as m, sys
for name in sys.argv[1:]:
    try: print(name, m.version(name))
    except m.PackageNotFoundError: print(name, "is missing")
"""


def describe(folder: Path) -> dict[str, str]:
    """One line each, for people; nothing that would name the machine or its folders."""
    p50, p99 = fdatasync(folder)
    return {
        "processor": f"{_processor()}, {len(cores()) or os.cpu_count()} cores, {_memory()} of memory",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "disk": f"{_filesystem(folder)}, fdatasync of 4 KiB p50 {p50:.2f} ms, p99 {p99:.2f} ms",
        "fdatasync_p50_ms": f"{p50:.3f}",
        "gossamer": f"{_versions(Path(sys.executable), OURS)}, {_curl()}, SQLite {_sqlite()}",
        "commit": _commit(),
        "peers": _versions(PEERS / "bin" / "python", THEIRS),
    }


def fdatasync(folder: Path, times: int = 200) -> tuple[float, float]:
    """Milliseconds (p50, p99) to append 4 KiB to a file of this folder and have it on the disk."""
    path = folder / "fdatasync"
    spent = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    try:
        for _ in range(times):
            os.write(handle, b"x" * 4096)
            before = time.perf_counter()
            os.fdatasync(handle)
            spent.append((time.perf_counter() - before) * 1e3)
    finally:
        os.close(handle)
        path.unlink()
    return statistics.median(spent), sorted(spent)[int(times * 0.99)]


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _filesystem(folder: Path) -> str:
    """The kind of file system that the folder lies on: figures from tmpfs would be worth nothing."""
    mounts = Path("/proc/mounts")
    best, kind = "", "unknown file system"
    for line in mounts.read_text().splitlines() if mounts.exists() else ():
        _, point, named, *_ = line.split()
        if folder.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, named
    return kind


def _versions(python: Path, names: tuple[str, ...]) -> str:
    if not python.exists():
        return "not installed"
    said = subprocess.run(
        [python, "-c", _ASK, *names], capture_output=True, text=True, timeout=60, check=True
    )
    return ", ".join(said.stdout.splitlines())


def _curl() -> str:
    import pycurl

    return str(pycurl.version).split()[1] if " " in pycurl.version else str(pycurl.version)


def _sqlite() -> str:
    import sqlite3

    return sqlite3.sqlite_version


def _commit() -> str:
    try:
        head = _git("rev-parse", "--short", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return "commit unknown"
    return f"commit {head}{' with changes' if changed else ''}"


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    return done.stdout.strip()

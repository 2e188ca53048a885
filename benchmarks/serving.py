"""The site of the benchmark, served by a child process that is started anew for every run."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.measuring import ROOT, cpu_of, pinned

PATIENCE = 60.0


@dataclass(frozen=True)
class Pages:
    """Which site: so many pages of so many bytes, 40 links each."""

    count: int
    size: int = 12_800
    tls: bool = False
    gzip: bool = False

    def path(self, number: int) -> str:
        return f"/page/{number:0{self.width}}" if number else "/"

    @property
    def width(self) -> int:
        return len(str(self.count - 1))


@dataclass(frozen=True)
class Site:
    """A site that is being served."""

    pages: Pages
    url: str
    ca: str | None
    pid: int

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    def cpu_seconds(self) -> float:
        return cpu_of(self.pid)


@contextmanager
def serve(pages: Pages, folder: Path, core: int | None) -> Iterator[Site]:
    """Serve it until the block ends; the child also ends by itself when this process is gone."""
    command = [sys.executable, "-m", "gossamer.testing.web", "bench"]
    command += ["--pages", str(pages.count), "--size", str(pages.size)]
    command += ["--gzip"] * pages.gzip
    command += ["--tls", "--dir", str(folder)] if pages.tls else []
    child = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=pinned(core),  # noqa: PLW1509  (no thread of ours is alive here)
    )  # fmt: skip
    assert child.stdout is not None
    try:
        line = child.stdout.readline() if select.select([child.stdout], [], [], PATIENCE)[0] else b""
        if not line:
            raise RuntimeError("the site did not start")
        ready = json.loads(line)
        yield Site(pages, ready["url"], ready.get("ca"), child.pid)
    finally:
        child.terminate()
        try:
            child.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.communicate()

"""The test web as a child process, so that it neither shares the crawler's loop nor outlives the test."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from gossamer.testing.web.known import KnownWeb
from gossamer.testing.web.log import OriginLog

PATIENCE = 30.0


class Child:
    """A running child: what its ready line said, and the way to its back door."""

    def __init__(self, process: subprocess.Popen[bytes], ready: dict[str, Any]) -> None:
        self.ready = ready
        self.pid = process.pid
        self.url: str = ready["url"]
        self.seeds: list[str] = ready["seeds"]
        self.hosts: list[str] = ready["hosts"]
        self.port: int = ready["port"]
        self.ca: str | None = ready.get("ca")

    def log(self) -> OriginLog:
        """Everything that has reached the origin so far."""
        return OriginLog.parse(self._ask("log").decode().splitlines())

    def clear_log(self) -> None:
        self._ask("log/clear")

    def reset(self) -> None:
        """Makes flaky pages fail again as they did at first."""
        self._ask("reset")

    def _ask(self, what: str) -> bytes:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # loopback: never by a proxy
        with opener.open(f"{self.ready['control']}/{what}", timeout=PATIENCE) as answer:
            content: bytes = answer.read()
        return content


@contextmanager
def start_child(kind: str, **options: object) -> Iterator[Child]:
    """Starts `python -m gossamer.testing.web KIND --option value …` and stops it when the block ends.

    True stands for a bare option; None and False leave it out. The child's complaints go to our standard error.
    """
    command = [sys.executable, "-m", "gossamer.testing.web", kind]
    for name, value in options.items():
        if value is True:
            command.append(f"--{name}")
        elif value is not None and value is not False:
            command += [f"--{name}", str(value)]
    # The child must find this very package, wherever it lies and whatever the working directory is.
    found_in = os.pathsep.join(filter(None, (str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH"))))
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": found_in}
    )
    try:
        ready = _ready_line(cast("IO[bytes]", process.stdout))
        if ready is None:
            raise RuntimeError(f"the test web did not start; its command was: {' '.join(command)}")
        yield Child(process, ready)
    finally:
        _stop(process)


@contextmanager
def serve_child(web: KnownWeb, **options: object) -> Iterator[Child]:
    """Serves this known web from a child process, and tells it here under which addresses."""
    with start_child("known", **web.arguments(), **options) as child:
        web.bind([*child.hosts, child.ready["foreign"]])
        yield child


def _ready_line(output: IO[bytes]) -> dict[str, Any] | None:
    with selectors.DefaultSelector() as selector:
        selector.register(output, selectors.EVENT_READ)
        line = output.readline() if selector.select(PATIENCE) else b""
    return json.loads(line) if line else None


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

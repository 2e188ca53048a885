"""The shipped sites, served by a child process, so that the product can show itself on a machine without a network."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gossamer.model.errors import TaskFailed

READY_WITHIN = 20.0


@contextmanager
def serve(kind: str, *options: str) -> Iterator[dict[str, Any]]:
    """What the child says when it is ready (url, hosts, port); it ends with this block, or with this process."""
    # A module of the test kit, started by its name: the product itself never imports it.
    command = [sys.executable, "-m", "gossamer.testing.web", kind, *options]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603  (our own words)
    assert child.stdout is not None
    try:
        line = child.stdout.readline()
        if not line:
            raise TaskFailed("The site of the demo did not start", hint="run: " + " ".join(command))
        yield json.loads(line)
    finally:
        child.terminate()
        try:
            child.wait(READY_WITHIN)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        child.stdout.close()
        if child.stdin is not None:
            child.stdin.close()

"""One server process: started, waited for, stopped, killed, frozen, started again on what it kept."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1
READY_WITHIN = 20.0
STOP_WITHIN = 10.0


class ServerMissing(Exception):  # noqa: N818  (a fact about this machine)
    """The program of a server is not installed here."""


def program(name: str, package: str, *places: str) -> str:
    """Where the program is. Raises ServerMissing with what to install."""
    found = shutil.which(
        name, path=":".join([*places, "/usr/local/bin", "/usr/bin", "/usr/sbin"])
    ) or shutil.which(name)
    if found is None:
        raise ServerMissing(f"{name} is not installed (Debian: apt-get install {package})")
    return found


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.5):
        return True
    return False


def wait_until(condition: Callable[[], bool], what: str, within: float = READY_WITHIN) -> None:
    """Look again and again until it is so; a server has no event to tell it by."""
    late = time.monotonic() + within
    while not condition():
        if time.monotonic() > late:
            raise TimeoutError(f"{what} not within {within:g} s")
        time.sleep(0.02)


class ServerProcess:
    """A process that dies with its starter; its words are in a file."""

    def __init__(self, command: Sequence[str], folder: Path, name: str, *, user: str | None = None) -> None:
        self.command = list(command)
        self.folder = folder
        self.name = name
        self.user = user
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def said(self) -> str:
        """The end of what it wrote."""
        with contextlib.suppress(OSError):
            return (self.folder / f"{self.name}.log").read_text(errors="replace")[-2000:]
        return ""

    def start(self, ready: Callable[[], bool]) -> None:
        """Start it, and return when it is ready."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / f"{self.name}.log").open("ab") as log:
            self._process = subprocess.Popen(
                self.command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True, preexec_fn=die_with_parent, user=self.user,  # noqa: PLW1509
            )  # fmt: skip

        def is_ready() -> bool:
            if self._process is not None and self._process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self._process.returncode}: {self.said}")
            return ready()

        wait_until(is_ready, f"{self.name} is ready")

    def send(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """In good order, then by force."""
        self.send(number)
        if self._process is not None:
            try:
                self._process.wait(STOP_WITHIN)
            except subprocess.TimeoutExpired:
                self.kill()


def die_with_parent() -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)

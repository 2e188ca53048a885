"""A cluster on this machine: a store, workers that reach it each through a proxy of its own, and who submitted the task."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from gossamer.testing.servers import RedisSentinels, RedisServer
from gossamer.testing.servers.process import die_with_parent
from gossamer.testing.servers.proxy import FaultProxy

CLI = (sys.executable, "-m", "gossamer.services.cli")
PLANTED_CLI = (sys.executable, "-m", "gossamer.testing.faults")
CONCURRENCY = 8
TASK = "nemesis"
Store = RedisServer | RedisSentinels


class WorkerProcess:
    """`gossamer worker` with one child; it and its child are one fault's victim together."""

    def __init__(self, store: Store, folder: Path, number: int, environment: dict[str, str]) -> None:
        # Sentinels tell where the master really is, so nothing stands between it and a worker.
        self.proxy = FaultProxy(store.port if isinstance(store, RedisServer) else 0).start()
        self._url = f"redis://127.0.0.1:{self.proxy.port}/0" if isinstance(store, RedisServer) else store.url
        self.folder = folder / f"worker-{number}"
        self.folder.mkdir(parents=True)
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        words = ["worker", "--frontier", self._url, "--concurrency", str(CONCURRENCY)]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*cli(self._environment), *words], cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self._environment,
                start_new_session=True, preexec_fn=die_with_parent,  # noqa: PLW1509
            )  # fmt: skip

    @property
    def said(self) -> str:
        return (self.folder / "log").read_text(errors="replace")

    @property
    def family(self) -> list[int]:
        """The supervisor and its children."""
        assert self._process is not None
        pid = self._process.pid
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            return [pid, *map(int, children)]
        return [pid]

    def send(self, number: signal.Signals) -> None:
        """To all of the family, or to none that is gone."""
        for pid in self.family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def kill_child(self) -> None:
        for pid in self.family[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        self.send(signal.SIGKILL)
        if self._process is not None:
            self._process.wait()

    def drain(self, within: float = 40.0) -> int:
        """SIGTERM, and how it ended."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(within)

    def stop(self) -> None:
        self.send(signal.SIGCONT)
        self.kill()
        self.proxy.stop()


class Cluster:
    """Used as a context manager; everything that it started is ended with it."""

    def __init__(
        self,
        folder: Path,
        workers: int,
        environment: dict[str, str] | None = None,
        *,
        sentinels: bool = False,
    ) -> None:
        plain = {name: value for name, value in os.environ.items() if not name.startswith("GOSSAMER_")}
        self.environment = plain | (environment or {})
        self.folder = folder
        self.store: Store = RedisSentinels(folder / "store") if sentinels else RedisServer(folder / "store")
        self.workers: list[WorkerProcess] = []
        self._count = workers
        self._submitter: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.store.start()
        for number in range(self._count):
            worker = WorkerProcess(self.store, self.folder, number, self.environment)
            worker.start()
            self.workers.append(worker)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._submitter is not None and self._submitter.poll() is None:
            self._submitter.kill()
            self._submitter.wait()
        for worker in self.workers:
            worker.stop()
        self.store.stop()

    @property
    def output(self) -> Path:
        return self.folder / "items.jsonl"

    def submit(self, *words: str) -> None:
        """The task, followed to its end by a process that does not work on it."""
        self._submitter = subprocess.Popen(
            [*cli(self.environment), *words, "--frontier", self.store.url, "--task", TASK, "--no-work", "--output", str(self.output),
             "--state", str(self.folder / "state"), "--json"],
            cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=self.environment, preexec_fn=die_with_parent,  # noqa: PLW1509
        )  # fmt: skip

    @property
    def is_over(self) -> bool:
        return self._submitter is not None and self._submitter.poll() is not None

    def wait(self, within: float) -> tuple[int | None, str, str]:
        """How the submitter ended and what it said; None where it did not end in time."""
        assert self._submitter is not None
        try:
            out, err = self._submitter.communicate(timeout=within)
        except subprocess.TimeoutExpired:
            self._submitter.kill()
            out, err = self._submitter.communicate()
            return None, out, err
        return self._submitter.returncode, out, err

    # What faults need of the store

    @property
    def server(self) -> RedisServer:
        """The one that holds the truth now."""
        return self.store if isinstance(self.store, RedisServer) else self.store.master

    def copy_store(self) -> Path:
        """The store's files as they are at this moment."""
        kept = self.folder / "store-before"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder / "store" / "appendonlydir", kept)
        return kept

    def restore_store(self, kept: Path) -> None:
        """What came after the copy is lost."""
        place = self.folder / "store" / "appendonlydir"
        shutil.rmtree(place)
        shutil.copytree(kept, place)


def cli(environment: dict[str, str]) -> tuple[str, ...]:
    """The product's door, or that of its fault tools where a mistake is to be planted."""
    return PLANTED_CLI if "FAULT_PLANT" in environment else CLI

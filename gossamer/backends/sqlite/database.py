"""One file, one writer thread in each process, and turns between processes.

Writers of several processes queue at a lock file, where the kernel wakes the next one, instead of polling SQLite's own
lock. Checkpoints run on a third connection beside the writer, so that a commit costs one fsync of the log and no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from gossamer.backends.sqlite import schema
from gossamer.model.errors import StateError

T = TypeVar("T")

PAGE_CACHE_KIB = 192 * 1024  # most of what one process may hold of the file
CHECKPOINT_EVERY = 2.0  # seconds
LOG_LIMIT = 128 * 1024 * 1024  # a log longer than this is cut at the price of a short halt
SWITCH_INTERVAL = (
    0.0005  # the writer gives the interpreter lock back between statements and must not wait 5 ms for it
)


class Database:
    """Transactions on one SQLite file, in the order in which they were asked for."""

    def __init__(self, path: Path, on_rollback: Callable[[], None] = lambda: None) -> None:
        """`on_rollback` is called on the writer's thread, before its next transaction."""
        self.path = path
        self._on_rollback = on_rollback
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="frontier-writer")
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="frontier-reader")
        self._turn = -1
        self._stop = threading.Event()
        self._checkpointer: threading.Thread | None = None
        self._write: sqlite3.Connection
        self._read: sqlite3.Connection
        self._pid = os.getpid()

    async def open(self) -> None:
        sys.setswitchinterval(min(sys.getswitchinterval(), SWITCH_INTERVAL))
        await asyncio.get_running_loop().run_in_executor(self._writer, self._open)
        self._checkpointer = threading.Thread(
            target=self._checkpoint, name="frontier-checkpoint", daemon=True
        )
        self._checkpointer.start()

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` in a transaction of its own; durable when this returns."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, self._transact, work)

    async def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run `work` on a consistent reading that waits for no writer."""
        return await asyncio.get_running_loop().run_in_executor(self._reader, self._snapshot, work)

    async def close(self) -> None:
        self._stop.set()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._writer, self._close)
        self._writer.shutdown()
        self._reader.shutdown()

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._turn = os.open(self.path.with_suffix(".turn"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            # SQLite waits for nobody while it makes a file write ahead, or makes an end of that: openers and closers take turns.
            with self._turn_taken():
                self._write = self._connect(PAGE_CACHE_KIB)
                self._read = self._connect(16 * 1024)
            self._write.execute(schema.INBOX)
            with self._transaction():
                self._prepare()
        except (OSError, sqlite3.Error) as error:
            raise explained(error, self.path) from error

    def _connect(self, cache_kib: int) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, cached_statements=256)
        for pragma in schema.PRAGMAS.split(";"):
            db.execute(pragma)
        db.execute(f"PRAGMA cache_size = -{cache_kib}")
        return db

    def _prepare(self) -> None:
        version = self._write.execute("PRAGMA user_version").fetchone()[0]
        if version > schema.VERSION:
            raise StateError(
                f"The state was written by a newer Gossamer (format {version}, this one knows {schema.VERSION})",
                where=str(self.path),
                hint="upgrade Gossamer, or name another folder with --state",
            )
        if version == 0:
            if self._write.execute("SELECT count(*) FROM sqlite_master WHERE type = 'table'").fetchone()[0]:
                raise StateError(
                    "The file is a database, but not one of Gossamer's",
                    where=str(self.path),
                    hint="name another folder with --state",
                )
            schema.create(self._write)
        elif version < schema.VERSION:
            schema.migrate(self._write, version)

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            with self._transaction():
                return work(self._write)
        except (OSError, sqlite3.Error) as error:
            raise explained(error, self.path) from error

    @contextlib.contextmanager
    def _turn_taken(self) -> Iterator[None]:
        fcntl.flock(self._turn, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._turn, fcntl.LOCK_UN)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._turn_taken():
            self._write.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._write.execute("COMMIT")
            except BaseException:
                # Whatever went wrong: nothing of this call may stay, and the next one needs a clean connection.
                self._on_rollback()
                if self._write.in_transaction:
                    self._write.execute("ROLLBACK")
                raise

    def _snapshot(self, work: Callable[[sqlite3.Connection], T]) -> T:
        try:
            self._read.execute("BEGIN")
            try:
                return work(self._read)
            finally:
                self._read.execute("COMMIT")
        except (OSError, sqlite3.Error) as error:
            raise explained(error, self.path) from error

    def _checkpoint(self) -> None:
        """Move the log into the file now and then; only a log that has grown too long makes writers wait."""
        log = self.path.with_name(self.path.name + "-wal")
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA busy_timeout = 1000")
        try:
            while not self._stop.wait(CHECKPOINT_EVERY):
                with contextlib.suppress(
                    OSError, sqlite3.Error
                ):  # the next round tries again; writers report faults
                    size = log.stat().st_size
                    db.execute(f"PRAGMA wal_checkpoint({'RESTART' if size > LOG_LIMIT else 'PASSIVE'})")
        finally:
            db.close()

    def _close(self) -> None:
        if self._turn < 0:
            return
        with self._turn_taken():
            for db in (getattr(self, "_read", None), getattr(self, "_write", None)):
                if db is not None:
                    db.close()
        os.close(self._turn)
        self._turn = -1


def explained(error: Exception, path: Path) -> Exception:
    """The same fault in words that tell the user what to do; anything unknown stays what it is."""
    if isinstance(error, StateError):
        return error
    text = str(error).lower()
    for signs, what, hint in FAULTS:
        if any(sign in text for sign in signs):
            return StateError(f"{what} ({error})", where=str(path), hint=hint)
    return StateError(
        f"The crawl's state cannot be used ({error})",
        where=str(path),
        hint="what is in brackets is what SQLite says; with a copy of the state nothing is lost",
    )


FAULTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("disk is full", "no space left"),
        "The disk is full",
        "free some space and run the same command again: nothing is lost",
    ),
    (
        ("readonly", "read-only", "permission denied", "unable to open"),
        "The state folder cannot be written",
        "check its permissions, or name another folder with --state",
    ),
    (
        ("malformed", "not a database", "corrupt"),
        "The state file is damaged",
        "restore it from a backup, or begin anew with --fresh",
    ),
    (
        ("not a directory", "is a directory", "file exists"),
        "The state folder is not a folder",
        "name another one with --state",
    ),
    (
        ("disk i/o", "file too large", "input/output"),
        "The disk refuses to write",
        "check its space, quota and health, then run the same command again: nothing that was settled is lost",
    ),
    (("locked",), "Another program holds the state file", "end it, or name another folder with --state"),
)


def one(db: sqlite3.Connection, sql: str, *args: Any) -> Any:
    """The first column of the first row; None when there is no row."""
    row = db.execute(sql, args).fetchone()
    return row[0] if row else None

"""The composition root: the only place that chooses backends. Settings go in, opened objects come out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import secrets
import shutil
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from difflib import get_close_matches
from hashlib import blake2b
from pathlib import Path

from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.backends.sqlite.sessions import SessionLocks
from gossamer.model.errors import SettingsError, StateError, UsageError
from gossamer.model.settings import Settings
from gossamer.ports.blobs import BODY
from gossamer.ports.cache import AnswerCache
from gossamer.ports.frontier import Frontier
from gossamer.ports.sinks import ItemSink
from gossamer.ports.transport import Transport
from gossamer.services.bodies import BLOBS

FRONTIER_FILE = "frontier.db"
SESSIONS = "sessions"
MACHINE = "machine"
REDIS = ("redis", "rediss", "redis+sentinel", "rediss+sentinel")
RUNNING = "running"  # one locked file for each task that a process runs
DAMAGED = ".damaged"
LOOKS, LOOK_AGAIN = 5, 0.02  # at a lock that somebody may hold for a moment only


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


@asynccontextmanager
async def open_frontier(
    state: Path, url: str = "", namespace: str = "", *, telling: bool = False
) -> AsyncIterator[Frontier]:
    """The frontier that a URL names, or the one that a state folder holds; made if there is none. `telling`: what a store's
    settings weaken of the promise is said, as whoever begins to work wants to hear once."""
    async with (
        shared_frontier(url, namespace, telling=telling)
        if url
        else SqliteFrontier(state / FRONTIER_FILE) as frontier
    ):
        yield frontier


def shared_frontier(url: str, namespace: str = "", *, telling: bool = False) -> Frontier:
    """The backend that the URL's scheme names, not opened yet. Raises SettingsError for one that nobody knows."""
    scheme = url.partition(":")[0]
    if scheme in REDIS:
        with needing("redis", "redis"):
            from gossamer.backends.redis.frontier import RedisFrontier
        return RedisFrontier(url, namespace=namespace, telling=telling)
    near = get_close_matches(scheme, REDIS, n=1)
    raise SettingsError(
        f"No frontier is kept at {scheme or url[:20]!r}",
        where="option --frontier",
        hint=f"{near[0]}://…" if near else "redis://host:6379/0; leave it out for a file in the state folder",
    )


@contextmanager
def needing(extra: str, driver: str) -> Iterator[None]:
    """What is imported here is an extra: say how to get it where it is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != driver:
            raise
        raise SettingsError(
            f"This needs the package {driver!r}, which is not installed",
            where="option --frontier",
            hint=f"pip install 'gossamer[{extra}]'",
        ) from None


def machine_id(state: Path) -> str:
    """What tells this state folder, and so this machine, from all others: drawn once, and kept in it."""
    file = state / MACHINE
    with contextlib.suppress(FileNotFoundError):
        if kept := file.read_text(encoding="ascii").strip():
            return kept
    state.mkdir(parents=True, exist_ok=True)
    drawn = secrets.token_hex(8)
    new = file.with_name(f"{MACHINE}.{drawn}")
    new.write_text(f"{drawn}\n", encoding="ascii")
    try:
        os.link(new, file)  # whoever is first draws for all
    except FileExistsError:
        drawn = file.read_text(encoding="ascii").strip()
    finally:
        new.unlink(missing_ok=True)
    return drawn


def has_state(state: Path) -> bool:
    """Whether anything was ever crawled with this folder."""
    return (state / FRONTIER_FILE).exists()


def discard_state(state: Path) -> None:
    """Remove what a state folder holds, and nothing else that may lie in it."""
    try:
        for file in state.glob(f"{Path(FRONTIER_FILE).stem}.*"):
            if DAMAGED not in file.name:
                file.unlink()
        shutil.rmtree(state / SESSIONS, ignore_errors=True)
        _discard_blobs(state / BLOBS)
    except OSError as error:
        raise _not_removed(state, error) from error


def set_aside(state: Path) -> Path:
    """Give the damaged state file another name, with the log that belongs to it: somebody may still read the other tasks out
    of it. Bodies stay, for its records name them."""
    file = state / FRONTIER_FILE
    kept, again = file.with_name(f"{file.name}{DAMAGED}"), 1
    while kept.exists():
        again += 1
        kept = file.with_name(f"{file.name}{DAMAGED}-{again}")
    try:
        for end in ("-wal", ""):  # the file last: as long as it is there, this may be done again
            with contextlib.suppress(FileNotFoundError):
                file.with_name(file.name + end).rename(f"{kept}{end}")
        file.with_name(f"{file.name}-shm").unlink(missing_ok=True)
        shutil.rmtree(state / SESSIONS, ignore_errors=True)
    except OSError as error:
        raise _not_removed(state, error) from error
    return kept


def is_damaged(error: StateError) -> bool:
    """Whether the state file itself is broken: every other fault of a state goes away with its cause."""
    return type(error.__cause__) is sqlite3.DatabaseError


def _not_removed(state: Path, error: OSError) -> StateError:
    return StateError(
        f"The old state cannot be removed: {error.strerror}", where=str(state), hint="check its permissions"
    )


def is_worked_on(state: Path) -> bool:
    """Whether a living process leases pages of this state, whichever task they are of."""
    folder = state / SESSIONS
    if not folder.is_dir():
        return False
    locks = SessionLocks(folder)
    return any(not locks.is_orphaned(file.name) for file in folder.iterdir())


@contextmanager
def holding(state: Path, task: str) -> Iterator[None]:
    """Run this task here and nowhere else. Raises UsageError where another process runs it; a process that dies lets go."""
    file = _run_file(state, task)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle = _locked(file)
    except OSError as error:
        raise _not_held(state, error) from error
    if handle is None:
        raise running_elsewhere(state, task)
    try:
        with contextlib.suppress(OSError):  # on a full disk: the number is only told, the lock is what counts
            os.pwrite(handle, b"%d" % os.getpid(), 0)
        yield
    finally:
        with contextlib.suppress(OSError):
            file.unlink()  # while it is locked, so that nobody's new file is removed
        os.close(handle)


def _not_held(state: Path, error: OSError) -> StateError:
    if isinstance(error, FileExistsError | NotADirectoryError):
        what, hint = "The state folder is not a folder", "name another one with --state"
    elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
        what, hint = "The disk is full", "free some space and run the same command again: nothing is lost"
    else:
        what = f"The state folder cannot be written ({error.strerror})"
        hint = "check its permissions, or name another folder with --state"
    return StateError(what, where=str(state), hint=hint)


def _locked(file: Path) -> int | None:
    """The file, opened and locked; None where somebody has it, and not only to look at it."""
    for _ in range(LOOKS):
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with contextlib.suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), file.stat()):  # else who had it has just removed it
                return handle
        os.close(handle)
        time.sleep(LOOK_AGAIN)
    return None


def runner(state: Path, task: str) -> str | None:
    """The number of the process that runs this task now, or None where nobody does."""
    return _holder(_run_file(state, task))


def is_shared(state: Path, task: str) -> bool:
    """Whether somebody runs another task of this state, be it so new that the state does not know it yet."""
    ours, folder = _run_file(state, task), state / RUNNING
    return folder.is_dir() and any(file != ours and _holder(file) is not None for file in folder.iterdir())


def _holder(file: Path) -> str | None:
    try:
        handle = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(handle, 20, 0).decode("ascii", "replace") or "?"
    finally:
        os.close(handle)
    return None


def running_elsewhere(state: Path, task: str) -> UsageError:
    number = runner(state, task)
    return UsageError(
        "This crawl is running in another process" + (f" ({number})" if number else ""),
        where=f"{task} in {state}",
        hint="stop it first (Ctrl-C, or `gossamer cancel`), or name another folder with --state",
    )


def _run_file(state: Path, task: str) -> Path:
    return state / RUNNING / blake2b(task.encode(), digest_size=12).hexdigest()


def _discard_blobs(folder: Path) -> None:
    """Remove the bodies: no record is left that names them, and nobody else ever would.

    The folder itself may be a link to a larger disk, where others have their own; only ours are taken out of it.
    """
    if not folder.is_dir():
        return
    for kind in (BODY, ".new"):
        if (folder / kind).is_dir():
            shutil.rmtree(folder / kind)
    if not folder.is_symlink() and not any(folder.iterdir()):
        folder.rmdir()


def open_cache(settings: Settings) -> AnswerCache | None:
    """Where answers are kept during development; None unless that is asked for."""
    if settings.cache is None:
        return None
    from gossamer.backends.files.cache import FileAnswerCache

    return FileAnswerCache(Path(settings.cache))


def open_sink(output: Path, on_reader_gone: Callable[[], None] | None = None) -> ItemSink:
    """Where items go: a file, or standard output for `-`, whose reader may leave before the end."""
    from gossamer.backends.files.jsonl import JsonlSink, StdoutSink

    return StdoutSink(on_reader_gone=on_reader_gone) if str(output) == "-" else JsonlSink(output)


def open_transport(settings: Settings) -> Transport:
    """What carries exchanges; opened with `async with`."""
    from gossamer.backends.curl.transport import CurlTransport

    return CurlTransport(
        allow_net=settings.allow_net,
        ca_file=settings.ca_file,
        idle_connections=max(512, 2 * settings.concurrency),
    )

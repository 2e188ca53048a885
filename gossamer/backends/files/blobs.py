"""Blobs as files: `folder/body/9f/86/9f86d08…`, written so that a name appears only with its whole content.

The life of a blob: a temporary file in `folder/.new` with a random name → written → fsync → rename to its place → fsync
of the folders that changed. Every folder is opened by name *inside* the one before it and never through a symbolic
link, so nothing that somebody plants in the tree leads out of it.

A batch shares its waits: all files are written before the first is synced, then all are synced at once (few journal commits
cover them), and each folder is synced once.
"""

from __future__ import annotations

import asyncio
import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self, TypeVar

from gossamer.model.errors import StateError
from gossamer.ports.blobs import BODY, BlobMissing, Key, key_of, parse_key

T = TypeVar("T")
Folders = tuple[str, ...]

_NEW = ".new"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = (
    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
)  # NONBLOCK: a planted pipe must not hang us
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STALE = 3600.0  # a temporary file of this age was left by a crash
_THREADS = 2
_SYNCERS = 8
_TOGETHER = 100  # open files at once
_REMEMBERED = 65_536


class FileBlobs:
    """The blobs below one folder, which is made if it does not exist. Several processes may share it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._root = -1
        self._threads: ThreadPoolExecutor | None = None
        self._syncers: ThreadPoolExecutor | None = None
        self._durable: set[Folders] = set()  # folders whose own names are known to be safe

    async def __aenter__(self) -> Self:
        self._threads = ThreadPoolExecutor(_THREADS, "blobs")
        self._syncers = ThreadPoolExecutor(_SYNCERS, "blobs-sync")
        try:
            await self._run(self._open)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)  # first: its work may still need the syncers
        syncers, self._syncers = self._syncers, None
        if syncers is not None:
            await asyncio.to_thread(syncers.shutdown)
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    async def put(self, content: bytes, kind: str = BODY) -> str:
        return (await self.put_many([content], kind))[0]

    async def put_many(self, contents: Sequence[bytes], kind: str = BODY) -> list[str]:
        return await self._run(lambda: self._put(contents, kind))

    async def get(self, key: str) -> bytes:
        parsed = parse_key(key)
        return await self._run(lambda: self._get(key, parsed))

    async def exists(self, key: str) -> bool:
        parsed = parse_key(key)
        return await self._run(lambda: self._size(parsed) is not None)

    async def delete(self, key: str) -> bool:
        parsed = parse_key(key)
        return await self._run(lambda: self._delete(parsed))

    async def _run(self, work: Callable[[], T]) -> T:
        if self._threads is None:
            raise StateError(
                "The blob store is not open", where=str(self._folder), hint="use it inside `async with`"
            )
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._guarded, work)

    def _guarded(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except OSError as error:
            raise _explained(error, self._folder) from error

    def _open(self) -> None:
        if not self._folder.is_dir():
            self._folder.mkdir(parents=True, exist_ok=True)
            _sync_folder(self._folder.parent)
        # The folder itself is the user's choice and may be a link; what is below it may not.
        self._root = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with self._inside(_NEW, make=True) as new:
            _sweep(new)

    def _put(self, contents: Sequence[bytes], kind: str) -> list[str]:
        keys = [key_of(kind, content) for content in contents]
        wanted = [
            (parse_key(key), content) for key, content in dict(zip(keys, contents, strict=True)).items()
        ]
        for start in range(0, len(wanted), _TOGETHER):
            self._put_some(wanted[start : start + _TOGETHER])
        return keys

    def _put_some(self, wanted: list[tuple[Key, bytes]]) -> None:
        with self._inside(_NEW) as new:
            written: list[tuple[str, Key, int]] = []
            try:
                for key, content in wanted:
                    if self._size(key) != len(content):
                        name, file = _written(new, content)
                        written.append((name, key, file))
                self._sync_all([file for _, _, file in written])
                for name, key, _ in written:
                    with self._inside(*_place(key), make=True) as place:
                        os.rename(name, key.digest, src_dir_fd=new, dst_dir_fd=place)
            finally:
                for name, _, file in written:
                    os.close(file)
                    with suppress(OSError):
                        os.unlink(name, dir_fd=new)  # still there only if something went wrong
        # Also where nothing was written: another process may have renamed but not synced yet.
        self._sync({_place(key) for key, _ in wanted})

    def _sync(self, places: set[Folders]) -> None:
        """Make the names in these folders durable; the folders' own names only once, for they stay."""
        above = {place[:depth] for place in places - self._durable for depth in range(len(place))}
        opened = [self._opened(*folder) for folder in sorted(places | above, key=len, reverse=True)]
        try:
            self._sync_all(opened)
        finally:
            for folder in opened:
                os.close(folder)
        if len(self._durable) > _REMEMBERED:
            self._durable.clear()
        self._durable |= places

    def _get(self, key: str, parsed: Key) -> bytes:
        try:
            with self._inside(*_place(parsed)) as place:
                file = os.open(parsed.digest, _READ, dir_fd=place)
                with os.fdopen(file, "rb") as opened:
                    content = opened.read()
        except FileNotFoundError:
            raise BlobMissing("There is no such blob", where=key) from None
        if key_of(parsed.kind, content) != key:
            raise BlobMissing(
                "The blob is damaged: its content is not what its name says",
                where=str(self._folder.joinpath(*_place(parsed), parsed.digest)),
                hint="remove the file and fetch the page again; check the disk",
            )
        return content

    def _size(self, parsed: Key) -> int | None:
        """The size of the stored file; None for whatever is no regular file."""
        try:
            with self._inside(*_place(parsed)) as place:
                found = os.stat(parsed.digest, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:
            return None
        return found.st_size if stat.S_ISREG(found.st_mode) else None

    def _delete(self, parsed: Key) -> bool:
        try:
            with self._inside(*_place(parsed)) as place:
                os.unlink(parsed.digest, dir_fd=place)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def _inside(self, *names: str, make: bool = False) -> Iterator[int]:
        opened = self._opened(*names, make=make)
        try:
            yield opened
        finally:
            os.close(opened)

    def _opened(self, *names: str, make: bool = False) -> int:
        """The folder at this place, opened step by step without following links."""
        opened = os.dup(self._root)
        for name in names:
            above = opened
            try:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=above)
                opened = os.open(name, _FOLDER, dir_fd=above)
            finally:
                os.close(above)
        return opened

    def _sync_all(self, files: Sequence[int]) -> None:
        """Sync at once what may be synced in any order: the file system then commits many together."""
        if len(files) < _SYNCERS or self._syncers is None:
            for file in files:
                os.fsync(file)
        else:
            list(self._syncers.map(os.fsync, files))


def _place(key: Key) -> Folders:
    """65,536 folders a kind: a hundred million blobs leave some 1,500 files in each."""
    return key.kind, key.digest[:2], key.digest[2:4]


def _written(folder: int, content: bytes) -> tuple[str, int]:
    """A new file with this content, not yet synced: its name and its open descriptor."""
    name = secrets.token_hex(16)
    file = os.open(name, _CREATE, 0o644, dir_fd=folder)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(file, rest) :]
    except BaseException:
        os.close(file)
        os.unlink(name, dir_fd=folder)
        raise
    return name, file


def _sync_folder(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _sweep(folder: int) -> None:
    """Remove what crashes left behind. Files of living processes are younger."""
    limit = time.time() - _STALE
    for name in os.listdir(folder):
        with suppress(OSError):
            if os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime < limit:
                os.unlink(name, dir_fd=folder)


def _explained(error: OSError, folder: Path) -> StateError:
    what, hint = {
        errno.ENOSPC: ("The disk is full", "free some space and start the same command again"),
        errno.EDQUOT: ("The disk quota is used up", "free some space and start the same command again"),
        errno.EROFS: ("The disk is read-only", "choose another folder"),
        errno.EACCES: (
            "The folder of the blobs may not be written",
            "change its rights or choose another folder",
        ),
        errno.ELOOP: ("A symbolic link stands where a folder of the blobs should be", "remove the link"),
        errno.ENOTDIR: (
            "Something that is no folder stands where one should be",
            "remove it, or choose another",
        ),
    }.get(
        error.errno or 0, (f"A blob could not be stored or read: {error.strerror or error}", "check the disk")
    )
    return StateError(what, where=str(folder), hint=hint)

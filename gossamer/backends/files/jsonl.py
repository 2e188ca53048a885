"""Items as lines of a JSON Lines file, each exactly once.

The file's length is kept with the cursor, and a hash of the last lines before it. Whatever lies behind that length when
the sink is opened was written by a run that died before its cursor moved, so it is cut off, and comes again from
the log. What does not come again was somebody else's: it is kept beside the file, in `NAME.removed`. A file that does not end
there as it did is not the one that was left, and is not touched.

A name that ends in `.gz` is written as gzip, one member a batch, so that cutting works the same.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import gzip
import logging
import os
import shutil
import stat
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

import msgspec

from gossamer.model.errors import OutputError
from gossamer.ports.sinks import Items

log = logging.getLogger("gossamer")

LARGEST = 64 * 1024 * 1024  # of what is compared with what comes again; no run of ours leaves more behind
TAIL = 1024  # bytes before the length by which the file is recognised
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe must not hang us


class _State(msgspec.Struct):
    """What is kept with the cursor."""

    length: int = 0
    tail: str = ""
    inode: int = 0  # by which an empty beginning is recognised


class JsonlSink:
    """One file, which nobody else may write to meanwhile: it is locked as long as the sink is open."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._compress = self.path.suffix == ".gz"
        self._file = -1
        self._inode = 0
        self._length = 0
        self._tail = b""
        self._whole = True  # False: a write failed, and the file may be longer than we know
        self._cut = _Cut(self.path, compressed=self._compress)

    async def open(self, number: int, state: bytes) -> bytes:
        await asyncio.to_thread(self._guarded, self._open, number, self._read_state(state))
        return self._state()

    async def write(self, items: Items) -> bytes:
        if items:
            await asyncio.to_thread(self._guarded, self._append, items)
        return self._state()

    async def close(self) -> None:
        file, self._file = self._file, -1
        if file >= 0:
            self._cut.keep()  # what has not come again until now was not of the last run
            os.close(file)

    def _guarded(self, work: object, *arguments: object) -> None:
        try:
            work(*arguments)  # type: ignore[operator]
        except OSError as error:
            raise _explained(error, self.path) from error

    def _open(self, number: int, known: _State) -> None:
        new = not os.path.lexists(self.path)
        if new and known.length:
            raise self._error("The output file is gone", "put it back as it was, or begin anew with --fresh")
        if new:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, _FLAGS, 0o644)
        found = os.fstat(self._file)
        if not stat.S_ISREG(found.st_mode):
            raise self._error(
                "The output is not a regular file", "name another file, or - for standard output"
            )
        self._lock()
        if number and not known.tail:
            raise self._error("The place reached in the output file is not known", "begin anew with --fresh")
        if found.st_size and (not known.tail or (not known.length and known.inode != found.st_ino)):
            raise self._error(
                "The output file exists already, and was not written by this crawl",
                "name another one with --output, or begin anew with --fresh, which replaces it",
            )
        self._recognise(known, found.st_size)
        self._inode = found.st_ino
        self._cut.find(self._file, known.length, found.st_size, is_new=not known.tail)
        os.ftruncate(self._file, known.length)
        if new:
            os.fsync(self._file)
            _sync_folder(self.path.parent)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self._error(
                "Another process is writing to the output file", "wait for it to end, or name another file"
            ) from None

    def _recognise(self, known: _State, size: int) -> None:
        """Make sure that the file is the one that was left, and stand at the end of what counts."""
        if size < known.length:
            raise self._error(
                f"The output file is shorter ({size:,} bytes) than this crawl has left it ({known.length:,})",
                "put the file back, or begin anew with --fresh",
            )
        start = max(known.length - TAIL, 0)
        self._tail = os.pread(self._file, known.length - start, start)
        if known.tail and _digest(self._tail) != known.tail:
            raise self._error(
                "The output file was changed after this crawl had written it",
                "put the file back as it was, or begin anew with --fresh",
            )
        self._length, self._whole = known.length, True

    def _append(self, items: Items) -> None:
        if self._file < 0:
            raise self._error("The output is not open", "open the sink before writing to it")
        found = os.fstat(self._file)
        if (
            found.st_nlink == 0
            or found.st_size < self._length
            or (self._whole and found.st_size > self._length)
        ):
            raise self._error(
                "The output file was removed or changed while this crawl writes it",
                "put it back as it was and start the same command again, or begin anew with --fresh",
            )
        text = b"\n".join([item.data for item in items]) + b"\n"
        data = gzip.compress(text, 6, mtime=0) if self._compress else text
        self._whole = False
        # At the known length, so a repetition after a failure overwrites what the failure left.
        rest, place = memoryview(data), self._length
        while rest:
            written = os.pwrite(self._file, rest, place)
            rest, place = rest[written:], place + written
        os.ftruncate(self._file, place)
        os.fsync(self._file)
        self._length, self._whole = place, True
        self._tail = (self._tail + data[-TAIL:])[-TAIL:]
        self._cut.came_again(text)

    def _state(self) -> bytes:
        return msgspec.json.encode(_State(self._length, _digest(self._tail), self._inode))

    def _read_state(self, state: bytes) -> _State:
        try:
            return msgspec.json.decode(state, type=_State) if state else _State()
        except msgspec.DecodeError as error:
            raise self._error(
                "The place reached in the output file cannot be read", "begin anew with --fresh"
            ) from error

    def _error(self, what: str, hint: str) -> OutputError:
        return OutputError(what, where=str(self.path), hint=hint)


class _Cut:
    """What was cut off the file, until it has come again.

    It waits in a hidden file, so that a kill between the cut and the next write loses nothing either.
    """

    def __init__(self, path: Path, *, compressed: bool) -> None:
        self._path = path
        self._waiting = path.with_name(f".{path.name}.cut")
        self._kept = path.with_name(f"{path.name}.removed")
        self._compressed = compressed
        self._rest: bytes | None = None  # the text that is still to come again; None: nothing is waited for

    def find(self, file: int, start: int, size: int, *, is_new: bool) -> None:
        """Save what stands from `start` on, before it is cut off; or find what a run saved that was killed then."""
        self._rest = None
        if size > start:
            new, old = self._read(os.pread(file, LARGEST, start)), self._text()
            if old is not None and not (new or b"").startswith(old) and not (new and old.startswith(new)):
                self._keep()
                old = None
            # A run that was killed while it wrote the same again leaves the beginning of it: the longer one tells more.
            if old is None or new is None or len(new) > len(old):
                _copy(file, start, size, self._waiting)
        elif not self._waiting.exists():
            return
        self._rest = self._text()
        if is_new or size - start > LARGEST or self._rest is None:
            self._keep()

    def _text(self) -> bytes | None:
        """What waits, as text; None where there is nothing, or nothing that this sink may have written."""
        try:
            with self._waiting.open("rb") as file:
                return self._read(file.read(LARGEST))
        except FileNotFoundError:
            return None

    def _read(self, data: bytes) -> bytes | None:
        return _unpacked(data) if self._compressed else data

    def came_again(self, text: bytes) -> None:
        """This has been written, and is durable."""
        rest = self._rest
        if rest is None:
            return
        if text.startswith(rest):
            self._rest = None
            with suppress(OSError):  # what was written is written: an old copy that stays is no failure of it
                self._waiting.unlink(missing_ok=True)
        elif rest.startswith(text):
            self._rest = rest[len(text) :]
        else:
            self.keep()

    def keep(self) -> None:
        """It was not ours, or may not have been."""
        if self._rest is not None:
            try:
                self._keep()
            except OSError as error:  # it stays where it waits
                log.warning("%s could not be added to %s: %s", self._waiting, self._kept, error.strerror)

    def _keep(self) -> None:
        self._rest = None
        with self._waiting.open("rb") as source, _opened(self._kept, os.O_APPEND) as target:
            shutil.copyfileobj(source, target)
            target.flush()
            os.fsync(target.fileno())
        size = self._waiting.stat().st_size
        self._waiting.unlink()
        log.warning(
            "Behind the items of this crawl there was something else in %s (%s bytes). It was cut off, and is kept in %s",
            self._path,
            f"{size:,}",
            self._kept,
        )


def _opened(path: Path, how: int) -> BinaryIO:
    """A regular file to write to, made if it is not there."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | how, 0o644)
    return os.fdopen(file, "wb", closefd=True)


def _copy(file: int, start: int, end: int, path: Path) -> None:
    """A part of a file as a file of its own, durable."""
    with _opened(path, os.O_TRUNC) as target:
        while start < end and (data := os.pread(file, min(end - start, 1024 * 1024), start)):
            target.write(data)
            start += len(data)
        target.flush()
        os.fsync(target.fileno())
    _sync_folder(path.parent)


def _unpacked(data: bytes) -> bytes | None:
    """The text of gzip members, of which the last may be torn; None where it is something else."""
    text = []
    while data:
        member = zlib.decompressobj(31)
        try:
            text.append(member.decompress(data, LARGEST))
        except zlib.error:
            return None
        data = member.unused_data
    return b"".join(text)


class StdoutSink:
    """Items to standard output, for pipes. What went into a pipe cannot be taken back: after a kill, the items of
    the last batch may come again."""

    def __init__(
        self, stream: BinaryIO | None = None, on_reader_gone: Callable[[], None] | None = None
    ) -> None:
        self._stream = stream or sys.stdout.buffer
        self._on_reader_gone = on_reader_gone

    async def open(self, number: int, state: bytes) -> bytes:  # noqa: ARG002  (nothing to go back to)
        return b""

    async def write(self, items: Items) -> bytes:
        if items:
            data = b"\n".join([item.data for item in items]) + b"\n"
            try:
                await asyncio.to_thread(self._print, data)
            except OutputError as error:
                if self._on_reader_gone is not None and isinstance(error.__cause__, BrokenPipeError):
                    self._on_reader_gone()
                raise
        return b""

    async def close(self) -> None:
        """Standard output belongs to the process."""

    def _print(self, data: bytes) -> None:
        try:
            self._stream.write(data)
            self._stream.flush()
        except (OSError, ValueError) as error:
            raise OutputError(
                "Nobody reads standard output any more", hint="name a file with --output; the items are kept"
            ) from error


def _digest(tail: bytes) -> str:
    return blake2b(tail, digest_size=8).hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make the new file's name durable."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


_EXPLAINED = {
    errno.EACCES: ("there is no permission to", "check its permissions, or name another file with --output"),
    errno.EPERM: ("there is no permission to", "check its permissions, or name another file with --output"),
    errno.EROFS: ("the disk is read-only", "name a file elsewhere with --output"),
    errno.ENOSPC: ("the disk is full", "free some space; the items wait in the crawl's state"),
    errno.EDQUOT: ("the disk quota is used up", "free some space; the items wait in the crawl's state"),
    errno.ELOOP: ("it is a symbolic link", "name the file that it points to"),
    errno.EISDIR: ("it is a folder", "name a file in it with --output"),
    errno.ENOTDIR: ("a part of its path is a file", "name another file with --output"),
    errno.EEXIST: ("a part of its path is a file", "name another file with --output"),
    errno.ENXIO: ("it is a pipe or a device", "name a file with --output, or - for standard output"),
    errno.ENAMETOOLONG: ("its name is too long", "name another file with --output"),
}


def _explained(error: OSError, path: Path) -> OutputError:
    why, hint = _EXPLAINED.get(
        error.errno or 0, (error.strerror or str(error), "name another file with --output")
    )
    return OutputError(f"The output cannot be written: {why}", where=str(path), hint=hint)

"""Items as lines of a JSON Lines file, each exactly once.

The file's length is kept with the cursor. Whatever lies behind that length when the sink is opened was written by a run that
died before its cursor moved, so it is cut off, and comes again from the log.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from gossamer.model.errors import OutputError


class JsonlSink:
    """Appends to one file, which nobody else may write to meanwhile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1
        self._length = 0

    async def open(self, number: int, state: bytes) -> None:
        self._length = int(state) if state else 0
        await asyncio.to_thread(self._open, number)

    async def write(self, items: Sequence[tuple[int, bytes]]) -> bytes:
        data = b"\n".join([item for _, item in items]) + b"\n"
        await asyncio.to_thread(self._append, data)
        return str(self._length).encode()

    async def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _open(self, number: int) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._file = os.open(self.path, flags, 0o644)
            found = os.fstat(self._file)
            if not stat.S_ISREG(found.st_mode):
                raise OutputError("The output is not a regular file", where=str(self.path), hint="name another file")
            if number == 0 and found.st_size:
                raise OutputError(
                    "The output file exists already, and was not written by this crawl",
                    where=str(self.path),
                    hint="name another one with --output, or begin anew with --fresh, which replaces it",
                )
            if found.st_size < self._length:
                raise OutputError(
                    f"The output file is shorter ({found.st_size:,} bytes) than this crawl has left it ({self._length:,})",
                    where=str(self.path),
                    hint="put the file back, or begin anew with --fresh",
                )
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, self._length, os.SEEK_SET)
        except OSError as error:
            raise self._explained(error) from error

    def _append(self, data: bytes) -> None:
        try:
            # After a failed attempt the file may hold half of it: begin at the known length again.
            os.ftruncate(self._file, self._length)
            os.lseek(self._file, self._length, os.SEEK_SET)
            view = memoryview(data)
            while view:
                view = view[os.write(self._file, view) :]
            os.fdatasync(self._file)
        except OSError as error:
            raise self._explained(error) from error
        self._length += len(data)

    def _explained(self, error: OSError) -> OutputError:
        hints = {
            "EACCES": "check its permissions, or name another file with --output",
            "ENOSPC": "free some space; the items wait in the crawl's state",
            "ELOOP": "the output must not be a symbolic link",
            "EISDIR": "name a file with --output, not a folder",
        }
        name = os.strerror(error.errno or 0)
        import errno

        hint = hints.get(errno.errorcode.get(error.errno or 0, ""), "name another file with --output")
        return OutputError(f"The output cannot be written: {name}", where=str(self.path), hint=hint)

"""The development cache in a folder: one file an answer, `folder/9f/9f86…`, in MessagePack.

Several processes may share it: a file appears whole, by renaming. Nothing is synced to disk, for a lost answer is fetched
again; a file that cannot be read counts as none.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from contextlib import suppress
from pathlib import Path

import msgspec

from gossamer.model.errors import SettingsError
from gossamer.ports.transport import Answer

log = logging.getLogger("gossamer")

_VERSION = b"1"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Answer)


class FileAnswerCache:
    """Answers below one folder, which is made now: a folder that cannot be used is told before anything is fetched."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._warned = False
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._trial()
        except OSError as error:
            raise SettingsError(
                f"The folder of the cache cannot be used: {error.strerror}",
                where=f"cache = {str(folder)!r}",
                hint="name another folder, or leave the setting out",
            ) from error

    async def get(self, key: bytes) -> Answer | None:
        return await asyncio.to_thread(self._read, key)

    async def put(self, key: bytes, answer: Answer) -> None:
        await asyncio.to_thread(self._write, key, answer)

    def _trial(self) -> None:
        name = self._folder / f".{secrets.token_hex(8)}"
        os.close(os.open(name, _CREATE, 0o600))
        name.unlink()

    def _place(self, key: bytes) -> Path:
        name = key.hex()
        return self._folder / name[:2] / name

    def _read(self, key: bytes) -> Answer | None:
        try:
            with os.fdopen(os.open(self._place(key), _READ), "rb") as file:
                data = file.read()
            return _decoder.decode(data[1:]) if data[:1] == _VERSION else None
        except (OSError, msgspec.DecodeError):
            return None

    def _write(self, key: bytes, answer: Answer) -> None:
        place = self._place(key)
        new = place.with_name(f".{secrets.token_hex(8)}")
        try:
            place.parent.mkdir(exist_ok=True)
            with os.fdopen(os.open(new, _CREATE, 0o644), "wb") as file:
                file.write(_VERSION + _encoder.encode(answer))
            new.rename(place)
        except OSError as error:
            with suppress(OSError):
                new.unlink()
            if not self._warned:
                self._warned = True
                log.warning("answers are not cached any more: %s", error.strerror)

"""Undoes a body's content codings while it streams, and never makes more of it than its caps allow.

libcurl could do this. It takes four times as long for gzip as ISA-L does, knows zstd only where it was built in, and
calls a page whole whose coded data broke off in the middle (docs/design/decisions.md).

As in browsers, what counts of a body is its first gzip member or zstd frame: what follows is not looked at.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

import brotli
from isal import isal_zlib

from gossamer.ports.transport import FetchError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ACCEPTED = "gzip, deflate, br, zstd"
"""The codings that are asked for."""
_PLAIN = frozenset(("", "identity", "none"))
_WINDOW = 23  # RFC 9659: 8 MiB of memory at most, whatever a frame asks for
# The stubs of ISA-L give an instance where the class stands.
_ERRORS = (cast("type[Exception]", isal_zlib.error), brotli.error, zstd.ZstdError)


class Decoder:
    """Undoes the codings of one body."""

    def __init__(self, codings: Sequence[str], most: int, *, cuts: bool = False) -> None:
        """`codings` in the order in which they were applied; raises `FetchError` for one that is not known.

        What becomes more than `most` bytes is refused, or left at that where it `cuts`.
        """
        self._cuts = cuts
        try:
            self._steps = [_STEPS[coding]() for coding in reversed(codings)]
        except KeyError as unknown:
            raise FetchError("coding", f"the content coding {unknown} is not known") from None
        self._left = [most] * len(self._steps)
        self.cut = False
        """Something follows the end of the coded data, or passed the bound; it will not be decoded."""

    @property
    def whole(self) -> bool:
        """Whether the coded data came to its end, and nothing followed."""
        return not self.cut and all(step.ended for step in self._steps)

    def feed(self, chunk: bytes) -> bytes:
        """What the next bytes of the body stand for; raises `FetchError`."""
        left = self._left
        for place, step in enumerate(self._steps):
            if step.ended:
                self.cut = self.cut or bool(chunk)
                return b""
            try:
                chunk = step.feed(chunk, left[place] + 1)
            except _ERRORS:
                raise FetchError("coding", "the body is not encoded as its headers say") from None
            left[place] -= len(chunk)
            if left[place] < 0:
                if not self._cuts:
                    raise FetchError("too_large", "more decoded bytes than are allowed")
                chunk = chunk[: left[place]]
                left[place] = 0
                self.cut = True
            self.cut = self.cut or step.followed
        return chunk


def coded(codings: Sequence[str], most: int, *, cuts: bool = False) -> Decoder | None:
    """What undoes these codings into at most so many bytes; None if there is nothing to undo."""
    real = [coding for coding in codings if coding not in _PLAIN]
    return Decoder(real, most, cuts=cuts) if real else None


class _Step(Protocol):
    """Undoes one coding. `ended`: the data is complete; `followed`: and more came with its last bytes."""

    ended: bool
    followed: bool

    def feed(self, chunk: bytes, most: int) -> bytes:
        """Decode a chunk into little more than `most` bytes: whoever gets so many stops."""
        ...


class _Framed:
    """A coding whose decoder sees the end of its data by itself."""

    def __init__(self, decoder: Any = None) -> None:
        self._decoder = decoder
        self.ended = self.followed = False

    def feed(self, chunk: bytes, most: int) -> bytes:
        decoder = self._decoder
        data: bytes = decoder.decompress(chunk, most)
        if decoder.eof:
            self.ended = True
            self.followed = bool(decoder.unused_data)
        return data


class _Deflate(_Framed):
    """Some servers send the zlib format that is meant, some the bare data that the name promises."""

    def __init__(self) -> None:
        super().__init__()
        self._start = b""

    def feed(self, chunk: bytes, most: int) -> bytes:
        if self._decoder is None:
            chunk = self._start = self._start + chunk
            if len(chunk) < 2:
                return b""
            in_zlib_format = chunk[0] & 15 == 8 and int.from_bytes(chunk[:2]) % 31 == 0
            self._decoder = isal_zlib.decompressobj(15 if in_zlib_format else -15)
        return super().feed(chunk, most)


class _Brotli:
    """Its decoder refuses bytes that follow the data, so there they are an error."""

    followed = False

    def __init__(self) -> None:
        self._decoder = brotli.Decompressor()
        self.ended = False

    def feed(self, chunk: bytes, most: int) -> bytes:
        data: bytes = self._decoder.process(chunk, output_buffer_limit=most)
        self.ended = self._decoder.is_finished()
        return data


def _gzip() -> _Step:
    return _Framed(isal_zlib.decompressobj(31))


def _zstd() -> _Step:
    return _Framed(zstd.ZstdDecompressor(options={zstd.DecompressionParameter.window_log_max: _WINDOW}))


_STEPS: dict[str, Callable[[], _Step]] = {
    "gzip": _gzip,
    "x-gzip": _gzip,
    "deflate": _Deflate,
    "br": _Brotli,
    "zstd": _zstd,
}

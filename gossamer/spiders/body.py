"""What the first bytes of a body say, and JSON as it is found in the wild."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec

from gossamer.model.errors import UsageError

_MAGIC = (
    b"%PDF-", b"PK\x03\x04", b"\x7fELF", b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"\x1f\x8b", b"MZ\x90", b"Rar!",
    b"7z\xbc\xaf", b"OggS", b"ID3", b"fLaC", b"wOFF", b"wOF2",
)  # fmt: skip
_TEXT_MARKS = (b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")  # UTF-16: text that is full of zero bytes
_SNIFFED = 512


def looks_binary(body: bytes) -> bool:
    """True for what is certainly no text, whatever the server calls it: it is not worth parsing."""
    if body.startswith(_MAGIC):
        return True
    head = body[:_SNIFFED]
    # A zero byte now and then occurs in broken pages; a text has no dozen of them in its first lines.
    return head.count(0) > 12 and not head.startswith(_TEXT_MARKS)


def read_json(body: bytes, text: Callable[[], str], type_: Any, where: str) -> Any:
    """Decode strictly first, which is fast; then as tolerantly as browsers, which also read other encodings."""
    try:
        return msgspec.json.decode(body) if type_ is None else msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        raise UsageError(f"The JSON does not fit {_name(type_)}: {error}", where=where) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # it may be in another encoding, begin with a byte order mark, hold NaN or half a character
    try:
        value = _whole(json.loads(text().lstrip("\ufeff")))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The body is not JSON: {str(error)[:200]}", where=where) from None
    try:
        return value if type_ is None else msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        raise UsageError(f"The JSON does not fit {_name(type_)}: {error}", where=where) from None


def _whole(value: Any) -> Any:
    """The value with lone halves of characters (an escaped \\ud83d without its partner) made U+FFFD: such text cannot be stored."""
    if isinstance(value, str):
        return (
            value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        )
    if isinstance(value, dict):
        return {_whole(name): _whole(inner) for name, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def _name(type_: Any) -> str:
    return getattr(type_, "__name__", str(type_))

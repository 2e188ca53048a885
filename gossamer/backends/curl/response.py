"""Reads the header lines that libcurl hands over, and judges them.

libcurl forgives much. What it forgives but two parsers could read differently (two lengths, a length and chunks,
blanks before the colon, bare-LF lines) is refused here, as are more fields, bytes or interim responses than the caps
allow. This runs for every page, so the usual head takes the short way: one regular expression shows that nothing is odd.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from gossamer.ports.transport import Caps, FetchError

_DELICATE = re.compile(rb"\n(?:content-length|content-encoding|transfer-encoding)[ \t]*:")
_USUAL = [b"\ncontent-length:"]
_CODINGS = re.compile(rb"\ncontent-encoding:([^\r\n]*)")
_LENGTHS = re.compile(rb"\ncontent-length:([^\r\n]*)")
_LAST_STATUS = 599


class Head(Struct, frozen=True, gc=False):
    """The final response's status line and fields."""

    status: int
    http_version: str
    headers: list[tuple[str, str]]
    codings: Sequence[str] = ()
    """The content codings in the order in which they were applied."""


def read_head(lines: Sequence[bytes], caps: Caps) -> Head:
    """The head of the final response among all lines received so far; raises `FetchError`."""
    raw = b"".join(lines)
    count_fields(lines, len(raw), caps)
    if lines.count(b"\r\n") != 1 or lines[-1] != b"\r\n":
        raw = _final(lines)
        if not raw:
            raise FetchError("incomplete", "the connection ended before the headers did")
    delicate = _DELICATE.findall(raw.lower())
    codings: Sequence[str] = ()
    if delicate and delicate != _USUAL:
        codings = _refuse_ambiguity(raw.lower(), caps)
    text_lines = raw.decode("latin-1").split("\r\n")
    if raw.count(b"\n") != len(text_lines) - 1:
        raise FetchError("protocol", "a header line does not end with CR LF")
    version, _, rest = text_lines[0].partition(" ")
    status = int(rest[:3]) if rest[:3].isdecimal() and rest[3:4] in {"", " "} else 0
    if not 100 <= status <= _LAST_STATUS:
        raise FetchError("protocol", "the status line has no status between 100 and 599")
    headers = []
    for line in text_lines[1:-2]:
        name, _, value = line.partition(":")
        headers.append((name, value.strip(" \t")))
    return Head(status, version[5:], headers, codings)


def most_lines(caps: Caps) -> int:
    """One line more than a response within the caps can have: whoever has this many is refused."""
    return caps.header_fields + 2 * (caps.interim + 1) + 2


def count_fields(lines: Sequence[bytes], size: int, caps: Caps) -> None:
    """Refuse what passes the caps. Interim responses and trailers count: they cost the same."""
    if size > caps.header_bytes:
        raise FetchError("header_limit", f"more than {caps.header_bytes} bytes of headers")
    if len(lines) <= caps.header_fields and len(lines) <= 2 * caps.interim:
        return
    fields = interim = 0
    after_blank = True
    for line in lines:
        if after_blank and line.startswith(b"HTTP/"):
            interim += line.partition(b" ")[2].startswith(b"1")
        elif line.strip():
            fields += 1
        after_blank = not line.strip()
    if interim > caps.interim:
        raise FetchError("header_limit", f"more than {caps.interim} interim responses")
    if fields > caps.header_fields or len(lines) >= most_lines(caps):
        raise FetchError("header_limit", f"more than {caps.header_fields} header fields")


def _final(lines: Sequence[bytes]) -> bytes:
    """Cut interim responses before, and trailers behind, the response that counts."""
    final: list[bytes] = []
    block: list[bytes] = []
    for line in lines:
        block.append(line)
        if not line.strip(b"\r\n"):
            if block[0].startswith(b"HTTP/"):
                final = block
            block = []
    return b"".join(final)


def _refuse_ambiguity(lower: bytes, caps: Caps) -> list[str]:
    """Judge a head, in lower case, that has something which may be read in more than one way; give its codings."""
    if any(name[-2:-1].isspace() for name in _DELICATE.findall(lower)):
        raise FetchError("protocol", "a blank stands before the colon of a header field")
    named = b",".join(_CODINGS.findall(lower)).decode("latin-1").split(",")
    codings = [coding for name in named if (coding := name.strip(" \t"))]
    if len(codings) > caps.codings:
        raise FetchError(
            "coding", f"{len(codings)} content codings on each other, {caps.codings} are allowed"
        )
    lengths = {length.strip() for value in _LENGTHS.findall(lower) for length in value.split(b",")}
    if len(lengths) > 1:
        raise FetchError("protocol", "several lengths are declared, and they differ")
    if lengths and b"\ntransfer-encoding:" in lower:
        raise FetchError("protocol", "both a length and a transfer coding are declared")
    return codings

"""What goes over the wire of the test web: a request as read, and an answer as a site wants it given.

A reply is bytes that are ready to be sent plus the manner of sending: late, cut short, with a reset, or never. Sites
only describe it; `connection.py` performs it.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

HTML = "text/html; charset=utf-8"


class Request:
    """One request head. `host` is the address and port that was dialled, whatever the Host header says."""

    __slots__ = ("head", "host", "method", "target")

    def __init__(self, host: str, head: bytes) -> None:
        """Raises ValueError if the first line is not a request line."""
        method, target, version = head.partition(b"\r\n")[0].split(b" ")
        if not version.startswith(b"HTTP/1."):
            raise ValueError(version)
        self.host = host
        self.head = head
        self.method = method.decode("latin-1")
        self.target = target.decode("latin-1")

    def header(self, name: str) -> str:
        """The value of a header, or an empty string. Looked up only when somebody asks."""
        return header_in(self.head, name)


def header_in(head: bytes, name: str) -> str:
    """The value of a header in a request head, or an empty string."""
    wanted = name.lower().encode("latin-1")
    for line in head.split(b"\r\n")[1:]:
        field, _, value = line.partition(b":")
        if field.lower() == wanted:
            return value.strip().decode("latin-1")
    return ""


class Ending(enum.Enum):
    """What happens to the connection after the bytes of a reply."""

    KEEP = "keep"
    CLOSE = "close"
    RESET = "reset"
    SILENCE = "silence"  # nothing is sent and nothing is closed: the client has to give up


@dataclass(slots=True)
class Reply:
    """A response head (with its blank line), the parts of its body, and how to send them."""

    status: int
    head: bytes
    body: Sequence[bytes] = ()
    delay: float = 0.0
    ending: Ending = Ending.KEEP
    retry_after: float | None = None


def head_of(status: int, length: int | None, content_type: str = HTML, headers: Sequence[str] = ()) -> bytes:
    """A response head; without a length the body ends with the connection."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {content_type}"]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines += headers
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def respond(
    status: int, body: bytes | str = b"", content_type: str = HTML, headers: Sequence[str] = ()
) -> Reply:
    content = body.encode() if isinstance(body, str) else body
    return Reply(status, head_of(status, len(content), content_type, headers), (content,))


def redirect(status: int, location: str) -> Reply:
    return respond(status, f"moved to {location}\n", "text/plain", [f"Location: {location}"])


def plain(status: int, text: str) -> Reply:
    return respond(status, text, "text/plain; charset=utf-8")


def reset() -> Reply:
    """No answer: the connection is reset."""
    return Reply(0, b"", ending=Ending.RESET)


def silence() -> Reply:
    """No answer, and no end."""
    return Reply(0, b"", ending=Ending.SILENCE)

"""Where a redirect leads, and what may travel there: the rules of the Fetch standard as pure functions.

A redirect becomes a link: the caller enqueues what `follow` returns, so dedup, scope, robots and the address guard hold
at every hop. Two hosts may be two owners: credentials never cross from one origin (scheme, host, port) to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote

from gossamer.model.errors import InvalidURL
from gossamer.model.url import UrlOptions, canonical, origin_of

MAX_HOPS = 10
_STATUSES = frozenset({301, 302, 303, 307, 308})
_SECRETS = frozenset({"authorization", "cookie", "cookie2"})
# Made anew for each request, or meant for the proxy of one connection only.
_OF_ONE_HOP = frozenset(
    {"host", "connection", "proxy-authorization", "proxy-connection", "proxy-authenticate"}
)
_OF_THE_BODY = frozenset(
    {
        "content-encoding",
        "content-language",
        "content-length",
        "content-location",
        "content-type",
        "transfer-encoding",
        "expect",
    }
)
_SPLITTERS = re.compile(r"[\x00\r\n]")

Headers = tuple[tuple[str, str], ...]


class Redirect(NamedTuple):
    """The next request of a redirected one."""

    url: str
    method: str
    drop_body: bool
    """The body stays behind: the method became GET."""
    headers: Headers
    """What may be sent on."""
    to_itself: bool
    """The very same request again: a loop, unless the answer set a cookie."""


def follow(
    status: int,
    method: str,
    headers: Iterable[tuple[str, str]],
    body: bytes | None,
    url: str,
    location: str | bytes | None,
    *,
    options: UrlOptions | None = None,
) -> Redirect | None:
    """The request that this answer asks for; None if it is no redirect or says nowhere to go.

    `url` is canonical; `location` is the header as received (text of raw bytes as Latin-1). Raises InvalidURL:
    "bad_location" if it cannot be read, or the reason why its URL is refused (scheme, userinfo, port, host …).
    """
    if status not in _STATUSES or not location:
        return None
    text = _location_text(location)
    if not text:
        return None
    try:
        target = canonical(text, url, options=options)
    except InvalidURL as error:
        reason = "bad_location" if error.reason == "syntax" else error.reason
        raise InvalidURL(reason, where=error.where) from None
    becomes_get = (status in {301, 302} and method == "POST") or (
        status == 303 and method not in {"GET", "HEAD"}
    )
    dropped = _OF_ONE_HOP
    if becomes_get:
        dropped |= _OF_THE_BODY
    if origin_of(target).prefix != origin_of(url).prefix:
        dropped |= _SECRETS
    kept = tuple((name, value) for name, value in headers if name.strip().lower() not in dropped)
    return Redirect(
        url=target,
        method="GET" if becomes_get else method,
        drop_body=becomes_get and bool(body),
        headers=kept,
        to_itself=target == url and not becomes_get,
    )


def _location_text(location: str | bytes) -> str:
    """The header's text: raw UTF-8 is read as such, other bytes are percent-encoded one by one, as browsers do."""
    text = location.decode("latin-1") if isinstance(location, bytes) else location
    text = text.strip(" \t")
    if _SPLITTERS.search(text):
        raise InvalidURL("bad_location")
    if text.isascii():
        return text
    try:
        raw = text.encode("latin-1")
    except UnicodeEncodeError:
        return text  # decoded by the caller already
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return "".join(chr(byte) if byte < 0x80 else quote(bytes([byte])) for byte in raw)

"""A request: what is asked of a URL, and what its answer is wanted for.

The frontier keeps a request as its URL plus the bytes that `encode` makes of everything the URL does not tell: b"" for
a plain GET, which nearly every link of a crawl is. Those bytes are JSON, so nothing in them can execute, and a request
written by one version is read by the next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self
from urllib.parse import urlencode

import msgspec

from gossamer.model.errors import UsageError
from gossamer.model.jsonable import why_not_json
from gossamer.model.url import shown

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
MAX_REQUEST = 1024 * 1024
"""Most bytes of a body, and of everything else that a request carries besides its URL."""
MAX_KEY = 1024
PROXY_SCHEMES = ("http://", "https://", "socks5://", "socks5h://")

# What belongs to the connection is the transport's: set by an author it would break framing or decoding.
_TRANSPORT_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
    }
)
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE_BREAK = re.compile(r"[\r\n\0]")
_COOKIE_BREAK = re.compile(r"[\r\n\0;]")


class _Address(msgspec.Struct, frozen=True):
    """Holds `url` apart, so that it alone may be given without its name."""

    url: str


class Request(_Address, frozen=True, kw_only=True):
    """One thing to fetch. Only `url` is needed; `changed` makes a variant."""

    method: str = "GET"
    headers: dict[str, str] = {}
    body: bytes | None = None
    cookies: dict[str, str] = {}
    priority: int = 0
    """Higher goes first within its host."""
    depth: int = 0
    """Links followed from a seed to here; set by the engine."""
    label: str | None = None
    """Names the handler, before any pattern is looked at."""
    meta: dict[str, Any] = {}
    """Whatever the handler of the answer should know: JSON values only."""
    dedupe: bool = True
    """False: fetched although the task may have met the same request before."""
    key: str | None = None
    """The author's own identity of this request, in place of method, URL and body."""
    any_status: bool = False
    """True: the handler gets the page also when the answer was not 2xx."""
    proxy: str | None = None
    without: tuple[str, ...] = ()
    """Names of middlewares that do not see this request."""

    def __post_init__(self) -> None:
        # A plain GET passes a few comparisons; a crawl makes millions of them.
        if type(self.url) is not str:
            raise UsageError(
                f"The URL of a request is a {type(self.url).__name__}", hint="check that the link was found"
            )
        if self.method != "GET" and self.method not in METHODS:
            raise _method_error(self.method)
        if self.headers or self.cookies or self.meta or self.body or self.proxy or self.without or self.key:
            _check(self)

    def __repr__(self) -> str:
        # Headers, cookies, bodies and proxies hold secrets: a request in a log must not show them.
        label = f" label={self.label!r}" if self.label else ""
        return f"<Request {self.method} {shown(self.url)}{label}>"

    def __rich_repr__(self) -> Any:
        yield self.method
        yield shown(self.url)

    @classmethod
    def form(cls, url: str, fields: Mapping[str, Any], *, method: str = "POST", **options: Any) -> Self:
        """A form as a browser sends it (application/x-www-form-urlencoded); a list value repeats its name."""
        return cls._with_body(
            url, urlencode(fields, doseq=True).encode(), "application/x-www-form-urlencoded", method, options
        )

    @classmethod
    def json(cls, url: str, value: Any, *, method: str = "POST", **options: Any) -> Self:
        """A JSON body."""
        if reason := why_not_json(value):
            raise UsageError("The body of the request is not JSON", where=f"{shown(url)}, {reason}")
        return cls._with_body(url, msgspec.json.encode(value), "application/json", method, options)

    @classmethod
    def _with_body(
        cls, url: str, body: bytes, content_type: str, method: str, options: dict[str, Any]
    ) -> Self:
        headers = {"Content-Type": content_type, **(options.pop("headers", None) or {})}
        return cls(url, method=method, body=body, headers=headers, **options)

    def changed(self, **changes: Any) -> Self:
        """The same request but for these fields."""
        return msgspec.structs.replace(self, **changes)


_TRAVELS = tuple(
    name for name in Request.__struct_fields__ if name not in {"url", "priority", "depth"}
)  # the record has those three in columns of its own
_PLAIN = Request("")
_PLAIN_VALUES = tuple((name, getattr(_PLAIN, name)) for name in _TRAVELS)
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(dict[str, Any])


def encode(request: Request) -> bytes:
    """What URL, priority and depth do not tell, as JSON (bodies in base64); b"" for a plain GET."""
    told = {name: value for name, plain in _PLAIN_VALUES if (value := getattr(request, name)) != plain}
    return _encoder.encode(told) if told else b""


def decode(url: str, data: bytes, *, depth: int = 0, priority: int = 0) -> Request:
    """The request of a record: its URL, what `encode` made, and the columns of the record."""
    if not data:
        return Request(url, depth=depth, priority=priority)
    told = _decoder.decode(data)
    told.update(url=url, depth=depth, priority=priority)
    return msgspec.convert(told, Request)


def _check(request: Request) -> None:
    """Refuse what could not be sent, or not be stored, when the request is made: there the author can see why."""
    where = shown(request.url)
    for name, value in request.headers.items():
        if problem := _header_problem(name, value):
            raise UsageError(f"The header {name[:100]!r} {problem}", where=where)
    for name, value in request.cookies.items():
        if not _TOKEN.fullmatch(name) or _COOKIE_BREAK.search(str(value)) or not _is_latin1(str(value)):
            raise UsageError(
                f"The cookie {name[:100]!r} cannot be sent",
                where=where,
                hint="percent-encode line breaks, semicolons and characters outside latin-1",
            )
    _check_body(request.body, where)
    if request.key and len(request.key) > MAX_KEY:
        raise UsageError(f"The key has {len(request.key)} characters; {MAX_KEY} are allowed", where=where)
    if request.proxy and not request.proxy.startswith(PROXY_SCHEMES):
        # The value is not repeated: it may hold a password.
        raise UsageError(
            "The proxy is no URL that can be used", hint=f"begin it with {' or '.join(PROXY_SCHEMES)}"
        )
    without: object = request.without
    if isinstance(without, str):
        raise UsageError("`without` is a text; it is a tuple of names", where=where, hint='write ("name",)')
    if request.meta:
        _check_meta(request.meta, where)


def _check_body(body: object, where: str) -> None:
    if body is None:
        return
    if not isinstance(body, bytes):
        raise UsageError(
            f"The body is a {type(body).__name__}, not bytes",
            where=where,
            hint="use Request.form or Request.json, or encode the text",
        )
    if len(body) > MAX_REQUEST:
        raise UsageError(f"The body has {len(body)} bytes; {MAX_REQUEST} are allowed", where=where)


def _header_problem(name: str, value: object) -> str | None:
    if not isinstance(value, str):
        return f"is a {type(value).__name__}, not text"
    if not _TOKEN.fullmatch(name):
        return "has a name that HTTP does not allow"
    if name.lower() in _TRANSPORT_HEADERS:
        return "is written by the transport and cannot be set"
    if _LINE_BREAK.search(value):
        return "holds a line break, which would start another header"
    return None if _is_latin1(value) else "holds characters outside latin-1; percent-encode them"


def _check_meta(meta: dict[str, Any], where: str) -> None:
    if reason := why_not_json(meta):
        raise UsageError(
            "Meta must be JSON: it is stored with the request",
            where=f"{where}, meta{reason}",
            hint="use text, numbers, lists and dicts, e.g. str(date)",
        )
    if len(_encoder.encode(meta)) > MAX_REQUEST:
        raise UsageError(
            f"Meta takes more than {MAX_REQUEST} bytes", where=where, hint="store a reference instead"
        )


def _is_latin1(text: str) -> bool:
    try:
        text.encode("latin-1")
    except UnicodeEncodeError:
        return False
    return True


def _method_error(method: str) -> UsageError:
    known = method.upper() in METHODS
    hint = f"write it as {method.upper()}" if known else f"use one of {', '.join(sorted(METHODS))}"
    return UsageError(f"{method[:50]!r} is no method that a crawl may use", hint=hint)

"""What crawling needs from whatever carries one HTTP exchange over the network.

A transport knows nothing of robots, retries, redirects or politeness: it sends one request, keeps the caps and the
deadlines it was given, and answers or raises. Every answer of a server is an `Answer`, also a 404 or a redirect;
`FetchError` means that there is no answer that could be believed.
"""

from __future__ import annotations

from typing import Literal, Protocol, Self, get_args

from msgspec import Struct

FetchCode = Literal[
    "dns",  # the name has no address
    "connect",  # nobody listens there, or no way leads there
    "timeout_connect",  # no connection (name, TCP and TLS together) in time
    "timeout_header",  # connected, but the headers did not end in time
    "timeout_total",  # the whole exchange took too long
    "too_slow",  # fewer bytes per second than the least rate
    "tls",  # the certificate or the handshake is not acceptable
    "protocol",  # what came back is not HTTP, or breaks its rules
    "incomplete",  # the server closed before the end it had declared
    "reset",  # the connection broke while it was in use
    "too_large",  # more bytes than a cap allows, on the wire or decoded
    "header_limit",  # too many header fields, header bytes or interim responses
    "coding",  # the body is not what its Content-Encoding says, or is encoded too often
    "blocked_address",  # the guard refused an address; which one is never told
    "scheme",  # neither http nor https
    "proxy",  # the proxy could not be reached or refused; its credentials are never told
    "url",  # an address that no request may be sent to: credentials in it, no host, not parseable
]
"""Why there is no answer. The strings are stored in records and metrics: never rename or reuse one."""

FETCH_CODES: frozenset[str] = frozenset(get_args(FetchCode))

HttpVersion = Literal["auto", "1.1", "2", "3"]


class FetchError(Exception):
    """An exchange that ended without a believable answer.

    `detail` is one sentence for people; it holds no secret, no proxy credential and no resolved address.
    """

    def __init__(self, code: FetchCode, detail: str = "") -> None:
        super().__init__(code, detail)
        self.code: FetchCode = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code


class Deadlines(Struct, frozen=True, gc=False):
    """How long each part of an exchange may take, in seconds. All run at once; the first to pass ends it."""

    connect: float = 10.0
    """From the call of `send` until the connection stands: name, TCP, TLS and proxy together."""
    header: float = 15.0
    """From the sending of the request to the end of *all* headers, so a byte now and then does not help."""
    total: float = 60.0
    """From the call of `send` to the last byte of the body."""
    min_rate: int = 64
    """The least body bytes per second, as a mean over `min_rate_window`; 0 asks for none."""
    min_rate_window: float = 20.0


class Caps(Struct, frozen=True, gc=False):
    """How much of everything an answer may hold. Whatever passes a cap is cut off while it streams."""

    wire: int = 10 * 1024 * 1024
    """Body bytes as they come over the wire."""
    decoded: int = 10 * 1024 * 1024
    """Body bytes after the content codings are undone: what an answer costs in memory."""
    header_fields: int = 100
    header_bytes: int = 64 * 1024
    """Bytes of all header lines, interim responses and trailers included."""
    interim: int = 8
    """Responses of the 1xx kind before the real one."""
    codings: int = 2
    """Content codings stacked on each other."""
    cut: bool = False
    """A body that passes its cap is cut there and answered as truncated, instead of refused."""


class Exchange(Struct, frozen=True, gc=False):
    """One request to be sent, and what it may cost. Never changed by a transport, so it may be sent again."""

    url: str
    """In canonical WHATWG form, as `gossamer.model` makes it; goes over the wire byte for byte."""
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    """Sent in this order; latin-1. Host, Content-Length, Accept-Encoding come from the transport."""
    body: bytes | None = None
    proxy: str | None = None
    """`http://`, `https://`, `socks5://` (resolved here) or `socks5h://` (resolved there), with credentials if any."""
    deadlines: Deadlines = Deadlines()
    caps: Caps = Caps()
    allow_private: bool = False
    """The host was named at the keyboard: it may be on a private or loopback address, metadata services excepted."""
    verify_tls: bool = True
    http_version: HttpVersion = "auto"
    gap: float = 0.0
    """Seconds to wait before it is sent again, should it have gone out on a connection that turned out to be dead."""


class Answer(Struct, frozen=True, gc=False):
    """What a server answered, decoded. The caller owns it."""

    status: int
    headers: list[tuple[str, str]]
    """The fields of the final response in their order, names as sent, values as latin-1."""
    body: bytes
    sent_at: float
    """`time.monotonic()` when the request went out: politeness counts from here."""
    latency: float
    """Seconds from the sending of the request to the first byte of the response."""
    seconds: float
    """Seconds from the call of `send` to the last byte."""
    wire_bytes: int
    """Body bytes as they came over the wire, headers not counted."""
    http_version: str
    """`1.0`, `1.1`, `2` or `3`."""
    address: str
    """The address dialled: the proxy's if one was used. For logs and politeness, never for error texts."""
    truncated: bool = False
    """The body is a beginning only: what came behind it could not be decoded, or passed a cap that cuts."""

    def header(self, name: str) -> str | None:
        """The first value of a field, whatever its case."""
        wanted = name.lower()
        return next((value for field, value in self.headers if field.lower() == wanted), None)


class TransportStatistics(Struct, frozen=True, gc=False):
    """Counts since the transport was opened, except `open`, which is now."""

    open: int = 0
    sent: int = 0
    answered: int = 0
    failed: int = 0
    cancelled: int = 0
    connections_opened: int = 0
    addresses_blocked: int = 0
    wire_bytes: int = 0


class Transport(Protocol):
    """Carries exchanges. Belongs to the event loop it was entered on, and is used from that loop alone.

    Redirects are answers, never followed. Cookies, credential files and environment proxies are not consulted.
    """

    async def send(self, exchange: Exchange) -> Answer:
        """Carry out one exchange: waits until its last byte or the first passed deadline; raises `FetchError`.

        May be called any number of times at once; exchanges end in no particular order. How many go to one host is
        the caller's affair. Cancelling aborts the exchange: its socket (over HTTP/2 and 3 its stream) is closed before
        the cancellation completes.
        """
        ...

    def statistics(self) -> TransportStatistics: ...

    async def aclose(self) -> None:
        """Abort what is open (those `send` calls raise `CancelledError`) and close every socket. Twice is fine."""
        ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_error: object) -> None: ...

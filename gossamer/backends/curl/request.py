"""Checks what is asked for and puts it into libcurl's words.

The URL was made by the one parser of this project; here it is only refused, never changed: libcurl reads it again,
and what the two could read differently (credentials, no host, control characters) does not go out.
"""

from __future__ import annotations

import re

import pycurl

from gossamer.backends.curl.decoding import ACCEPTED
from gossamer.model.addresses import AddressGuard
from gossamer.ports.transport import Exchange, FetchError

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE = re.compile(r"[\x00-\x20\x7f-\U0010ffff\\]")
_LOWER_ESCAPE = re.compile("%(?:[a-f]|.[a-f])")
_OWN_FIELDS = frozenset(("host", "content-length", "transfer-encoding", "connection", "expect"))
_PROXY_SCHEMES = ("http://", "https://", "socks5://", "socks5h://")
_VERSIONS = {
    "auto": pycurl.CURL_HTTP_VERSION_2TLS,
    "1.1": pycurl.CURL_HTTP_VERSION_1_1,
    "2": pycurl.CURL_HTTP_VERSION_2TLS,
    "3": pycurl.CURL_HTTP_VERSION_3,
}
_SUPPRESS_CONNECT_HEADERS = 265  # libcurl has it, pycurl gives it no name
_BUILT_IN: int = pycurl.version_info()[4]


def check_url(url: str) -> None:
    """Refuse a URL that no request may be sent to. Runs for every exchange."""
    if url.startswith("https://"):
        start = 8
    elif url.startswith("http://"):
        start = 7
    else:
        raise FetchError("scheme", "only http and https are fetched")
    end = url.find("/", start)
    authority = url[start:] if end < 0 else url[start:end]
    if "@" in authority:
        raise FetchError("url", "the URL holds credentials: give them as a header, for one origin only")
    if not authority or authority[0] == ":" or "?" in authority or "#" in authority:
        raise FetchError("url", "the URL has no host, or no path behind it: use its canonical form")
    if _UNSENDABLE.search(url) is not None:
        raise FetchError(
            "url",
            "the URL holds blanks, backslashes or characters that are not ASCII: use its canonical form",
        )


def check_literal(exchange: Exchange, guard: AddressGuard) -> None:
    """Judge the target of a proxied exchange as far as it can be judged here: when it is an address, not a name."""
    host = exchange.url.split("/", 3)[2]
    if host.startswith("["):
        literal = host[1 : host.find("]")]
    else:
        literal = host.partition(":")[0].rstrip(".")
        name = literal.lower()
        if name == "localhost" or name.endswith(".localhost"):
            literal = "127.0.0.1"
        elif not name.rpartition(".")[2][:1].isdigit():
            return
    # The last label starts with a digit, so this is an IPv4 address, perhaps in an odd notation: then it is refused.
    if not guard.permits(literal, allow_private=exchange.allow_private):
        raise FetchError("blocked_address", "the host's address may not be fetched from")


def check_exchange(exchange: Exchange) -> None:
    """Refuse what can not be set on a handle; runs when something else than the URL changed."""
    if _TOKEN.fullmatch(exchange.method) is None:
        raise ValueError(f"method {exchange.method!r} is not an HTTP token")
    if exchange.proxy is not None and not exchange.proxy.lower().startswith(_PROXY_SCHEMES):
        raise FetchError("proxy", f"a proxy's URL starts with one of {', '.join(_PROXY_SCHEMES)}")
    if exchange.http_version == "3" and not _BUILT_IN & pycurl.VERSION_HTTP3:
        raise FetchError("protocol", "HTTP/3 is not built into this libcurl")


def header_lines(exchange: Exchange) -> list[bytes]:
    """The fields for libcurl. Those that it would add by itself are taken out unless they were asked for."""
    lines: list[bytes] = []
    names = set()
    for name, value in exchange.headers:
        lower = name.lower()
        if lower in _OWN_FIELDS:
            raise ValueError(f"header {name!r} is set by the transport: leave it out")
        if _TOKEN.fullmatch(name) is None or "\r" in value or "\n" in value or "\0" in value:
            raise ValueError(f"header {name!r} has a name or a value that can not be sent")
        names.add(lower)
        line = f"{name}: {value}" if value else f"{name};"
        lines.append(line.encode("latin-1"))
    if "accept" not in names:
        lines.append(b"Accept:")
    if exchange.body is not None:
        lines.append(b"Expect:")
        if "content-type" not in names:
            lines.append(b"Content-Type:")
    return lines


def set_method(curl: pycurl.Curl, exchange: Exchange) -> None:
    curl.setopt(pycurl.HTTPGET, 1)  # takes back a body, HEAD and upload of the exchange before
    curl.unsetopt(pycurl.CUSTOMREQUEST)
    if exchange.body is not None:
        curl.setopt(pycurl.POSTFIELDS, exchange.body)
        if exchange.method != "POST":
            curl.setopt(pycurl.CUSTOMREQUEST, exchange.method)
    elif exchange.method == "HEAD":
        curl.setopt(pycurl.NOBODY, 1)
    elif exchange.method != "GET":
        curl.setopt(pycurl.CUSTOMREQUEST, exchange.method)


def set_target(curl: pycurl.Curl, exchange: Exchange, *, always: bool) -> bool:
    """Keep the case of percent escapes, which libcurl would change to upper: to a server they may be two pages.

    pycurl can not take a request target back, so a handle that has had one gets its own each time: tells whether.
    """
    url = exchange.url.partition("#")[0]
    if not always and _LOWER_ESCAPE.search(url) is None:
        return False
    if url.startswith("http://") and exchange.proxy is not None and exchange.proxy.lower().startswith("http"):
        curl.setopt(pycurl.REQUEST_TARGET, url)
    else:
        curl.setopt(pycurl.REQUEST_TARGET, url[url.index("/", 8) :])
    return True


def set_route(curl: pycurl.Curl, exchange: Exchange) -> None:
    """How the exchange travels: proxy, HTTP version, verification, size."""
    # An empty proxy is not the same as none: it keeps libcurl from looking into the environment.
    curl.setopt(pycurl.PROXY, exchange.proxy or "")
    curl.setopt(pycurl.HTTP_VERSION, _VERSIONS[exchange.http_version])
    curl.setopt(pycurl.SSL_VERIFYPEER, 1 if exchange.verify_tls else 0)
    curl.setopt(pycurl.SSL_VERIFYHOST, 2 if exchange.verify_tls else 0)
    curl.setopt(pycurl.MAXFILESIZE_LARGE, 0 if exchange.caps.cut else max(1, exchange.caps.wire))


def set_for_ever(curl: pycurl.Curl, ca_file: str) -> None:
    """What no exchange changes."""
    for option, value in (
        (pycurl.NOSIGNAL, 1),
        (pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS),
        (pycurl.NOPROXY, ""),
        (pycurl.NETRC, pycurl.NETRC_IGNORED),
        (pycurl.FOLLOWLOCATION, 0),
        (pycurl.HTTP09_ALLOWED, 0),
        (pycurl.PATH_AS_IS, 1),
        (pycurl.ACCEPT_ENCODING, ACCEPTED),
        (pycurl.HTTP_CONTENT_DECODING, 0),
        (pycurl.USERAGENT, ""),
        (pycurl.HEADEROPT, pycurl.HEADER_SEPARATE),  # our fields are not for the proxy
        (_SUPPRESS_CONNECT_HEADERS, 1),
        (pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2),
        (pycurl.CAINFO, ca_file),
        (pycurl.PROXY_CAINFO, ca_file),
        (pycurl.TCP_NODELAY, 1),
        (pycurl.DNS_CACHE_TIMEOUT, 60),
        (pycurl.CONNECTTIMEOUT_MS, 3_600_000),  # the deadlines are kept by the watch, also for the connection
        (pycurl.BUFFERSIZE, 131_072),
    ):
        curl.setopt(option, value)

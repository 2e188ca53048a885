"""Turns libcurl's results into the port's codes.

libcurl's texts name resolved addresses and proxies, so they stay inside: a code gets a sentence of our own. Only
what it says about a certificate is passed on, for nobody could repair one without it.
"""

from __future__ import annotations

import pycurl

from gossamer.ports.transport import FetchCode, FetchError

_TLS_CODES = frozenset((35, 51, 53, 54, 58, 59, 60, 64, 66, 77, 80, 82, 83, 90, 91, 98))
_WEIRD_REPLY = 8
_TOO_LARGE_HEADER = 100
_PROXY = 97

_CODES: dict[int, FetchCode] = {
    pycurl.E_UNSUPPORTED_PROTOCOL: "protocol",  # the URL was checked before, so this is HTTP/0.9
    pycurl.E_URL_MALFORMAT: "url",
    pycurl.E_COULDNT_RESOLVE_PROXY: "proxy",
    pycurl.E_COULDNT_RESOLVE_HOST: "dns",
    pycurl.E_COULDNT_CONNECT: "connect",
    _WEIRD_REPLY: "protocol",
    pycurl.E_PARTIAL_FILE: "incomplete",
    pycurl.E_OPERATION_TIMEDOUT: "timeout_total",
    pycurl.E_GOT_NOTHING: "incomplete",
    pycurl.E_SEND_ERROR: "reset",
    pycurl.E_RECV_ERROR: "reset",
    pycurl.E_BAD_CONTENT_ENCODING: "coding",
    pycurl.E_FILESIZE_EXCEEDED: "too_large",
    _TOO_LARGE_HEADER: "header_limit",
    _PROXY: "proxy",
}

_SENTENCES: dict[FetchCode, str] = {
    "dns": "the host's name could not be resolved",
    "connect": "no connection to the host could be made",
    "tls": "the TLS connection could not be made",
    "protocol": "the response breaks the rules of HTTP",
    "incomplete": "the connection ended before the response did",
    "reset": "the connection broke during the exchange",
    "too_large": "the body is larger than the cap",
    "header_limit": "the response has more headers than the caps allow",
    "coding": "the body is not encoded as its headers say",
    "proxy": "the proxy could not be reached or did not let the exchange through",
    "url": "no request can be made of this URL",
    "timeout_total": "the exchange took too long",
}


def failure(result: int, text: str, *, proxied: bool) -> FetchError:
    """The error for one of libcurl's results. `text` is looked at, never passed on as it is."""
    code = _code(result, text, proxied)
    sentence = _SENTENCES[code]
    if result == pycurl.E_PEER_FAILED_VERIFICATION and not proxied:
        return FetchError(code, text)
    if result not in _CODES and result not in _TLS_CODES:
        sentence = f"{sentence} (libcurl's result {result})"
    return FetchError(code, sentence)


def _code(result: int, text: str, proxied: bool) -> FetchCode:
    if result in _TLS_CODES:
        return "tls"
    lower = text.lower()
    if proxied and (result == pycurl.E_COULDNT_CONNECT or "connect tunnel" in lower or "proxy" in lower):
        return "proxy"
    if result in (pycurl.E_RECV_ERROR, _WEIRD_REPLY):
        # One result stands for a broken socket, broken framing and too large headers; the text tells them apart.
        if "header" in lower and "large" in lower:
            return "header_limit"
        if "chunk" in lower or "malformed" in lower or "invalid" in lower:
            return "protocol"
    return _CODES.get(result, "protocol")

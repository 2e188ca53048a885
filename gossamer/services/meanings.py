"""What the codes of records mean, in words: the place where `explain` and its readers meet the engine's vocabulary.

A code that is not here is shown as it is; nothing depends on this table being complete.
"""

from __future__ import annotations

from http import HTTPStatus

MEANINGS: dict[str, str] = {
    "ok": "the page was got and handled",
    "redirected": "the server sent the crawl elsewhere; the target is a page of its own",
    # No believable answer: the names of ports.transport.FetchCode
    "dns": "the name of the host has no address",
    "connect": "nobody listens at this host and port, or no way leads there",
    "timeout_connect": "no connection could be made in time",
    "timeout_header": "the host was reached, but its answer did not begin in time",
    "timeout_total": "the answer was not complete in time",
    "timeout": "the answer did not come in time",
    "too_slow": "the answer came more slowly than min_rate allows",
    "tls": "the certificate or the TLS handshake is not acceptable",
    "protocol": "what came back is not valid HTTP",
    "incomplete": "the server closed the connection before the end that it had declared",
    "reset": "the connection broke during the exchange",
    "too_large": "the body is larger than max_body",
    "header_limit": "the answer has too many or too large headers",
    "coding": "the body is not encoded as its headers say",
    "blocked_address": "the host's address is not public; --allow HOST or --allow-net CIDR would open it",
    "proxy": "the proxy could not be reached, or refused",
    "http_206": "the server answered 206 Partial Content, a part that nobody asked for",
    "url": "no request can be sent to such an address",
    # What was chosen not to be got
    "robots": "the host's robots.txt forbids it",
    "robots_unreachable": "the host's robots.txt could not be got within host_patience, so nothing was asked of it",
    "trap_segments": "its path has more than max_segments segments, which looks like a trap",
    "trap_repeat": "its path repeats a segment more than max_repeats times, which looks like a trap",
    "trap_parameters": "its query has more than max_params parameters, which looks like a trap",
    "trap_pattern": "its URL pattern has used up pages_per_pattern, which looks like a trap",
    "trap": "it looks like a trap: a site that makes URLs without end",
    "budget": "a budget of pages was used up",
    # Where redirects end
    "too_many_redirects": "it was redirected more than ten times",
    "redirect_limit": "it was redirected more than ten times",
    "redirect_loop": "it was redirected in a circle",
    "bad_location": "its redirect leads to something that is no URL",
    # What the handler did
    "poison": "three processes died while they handled it",
    "handler_error": "the spider's handler raised an error",
    "middleware_error": "a middleware of the spider raised an error",
    "handler_timeout": "the spider's handler took longer than handler_soft",
    "parse_error": "the page could not be parsed",
    "item": "the handler yielded something that is no valid item",
    "asked": "the handler asked for another attempt, and no attempt was left",
    # Why a link is not taken
    "scheme": "it is neither http nor https",
    "offsite": "its host is not in the scope of this task; --allow HOST would add it",
    "denied": "a rule of `deny` excludes it",
    "too_deep": "it lies deeper than depth allows",
}


def meaning(code: str) -> str:
    """A sentence without its end, or an empty one for a code that nobody described."""
    if code in MEANINGS:
        return MEANINGS[code]
    kind, _, number = code.partition("_")
    if kind == "http" and number.isdigit():
        try:
            return f"the server answered {number} {HTTPStatus(int(number)).phrase}"
        except ValueError:
            return f"the server answered {number}"
    return MEANINGS["trap"] if kind == "trap" else ""

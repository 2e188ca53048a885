"""What a URL is to the crawl: one canonical text, one host key, one fingerprint.

Everything that compares, checks or dials a URL uses the text that `canonical` returns. One parser (ada, the WHATWG
rules of browsers) reads it, so the host that was checked is the host that is dialled. Beyond WHATWG:

- only http and https; no user name or password; no fragment; at most 8 KiB of ASCII;
- a trailing dot of the host and an empty query (`/a?`) are dropped, they name the same page;
- host labels hold only letters, digits, `-` and `_`: nothing that a log, a shell or a store's key could trip over;
- port 0 and the ports of other services are refused unless allowed.

Percent-encoding is left as written: `%2F` is never merged with `/`, nor `%7E` with `~`. Order and repetition of
parameters are kept. Merging different pages loses data silently; fetching a page twice only costs a request.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import unquote_plus

import can_ada
import msgspec

from gossamer.model.charset import percent_encode
from gossamer.model.errors import InvalidURL

MAX_URL = 8192
"""Longest canonical URL, in characters (all ASCII)."""
_MAX_RAW = (
    4 * MAX_URL
)  # blanks, dots and `../` may vanish while parsing; what is longer than this is not looked at

# The bad ports of the Fetch standard: mail, telnet, DNS, X11 and so on.
_FETCH_BAD_PORTS = (
    "1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 "
    "137 139 143 161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 "
    "1719 1720 1723 2049 3659 4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080"
)
# Stores, brokers and container daemons that obey text lines: a crawler must not be made to speak to them.
_SERVICE_PORTS = "2181 2375 2376 3306 5432 5672 6379 9092 11211 26379 27017"
REFUSED_PORTS = frozenset(map(int, f"0 {_FETCH_BAD_PORTS} {_SERVICE_PORTS}".split()))

_ORIGIN = re.compile(r"(https?)://(\[[0-9a-f:.]+\]|[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)\.?(?::([0-9]+))?")

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_HOST = 253
_MAX_LABEL = 63
_MAX_PREFIX = _MAX_HOST + 20  # longer ones are not worth a place in the cache

# Links that name no page; they are not worth a call of the parser. What hides better is caught after parsing.
_INERT = ("#", "javascript:", "mailto:", "tel:", "data:", "blob:")


_SECOND_LEVELS = {
    "ac": "at be cn cy id il in ir jp ke kr nz th tz ug uk za",
    "co": "at cr hu id il im in je jp ke kr ls ma mz nz rs th tz ug uk uz ve za zm zw",
    "com": "ar au bd bo br cn co cy do ec eg gh gt hk jo kh kw lb mm mt mx my ng ni np om pa pe ph pk pl pr py qa sa sg "
    "sv tr tw ua uy ve vn",
    "edu": "ar au br cn co ec eg gr hk it mx my ng pe ph pk pl sa sg tr tw ua vn",
    "go": "id jp ke kr th tz ug",
    "gob": "ar cl es mx pe",
    "gov": "ar au br cn hk il in it my ng ph pk pl sa sg tr tw ua uk za",
    "ne": "jp kr ke",
    "net": "ar au br cn co hk in mx my nz ph pk pl sa sg tr tw ua uk vn za",
    "or": "at id jp ke kr th tz ug",
    "org": "ar au br cn co hk il in mx my nz ng ph pk pl sa sg tr tw ua uk vn za",
}
_MORE_SUFFIXES = (
    "gen.tr me.uk ltd.uk plc.uk sch.uk nhs.uk police.uk govt.nz school.nz geek.nz id.au asn.au ad.jp ed.jp gr.jp lg.jp "
    "re.kr pe.kr firm.in ind.in web.id my.id sch.id "
    "github.io gitlab.io pages.dev workers.dev vercel.app netlify.app herokuapp.com web.app firebaseapp.com "
    "blogspot.com appspot.com azurewebsites.net cloudfront.net fly.dev onrender.com s3.amazonaws.com"
)
PUBLIC_SUFFIXES = frozenset(
    [f"{second}.{country}" for second, countries in _SECOND_LEVELS.items() for country in countries.split()]
    + _MORE_SUFFIXES.split()
)
"""The suffixes of two or more labels that matter most; the full list (10,000 lines, changing weekly) is not shipped.
A suffix that is missing here makes two owners look like one site: a shared budget, and cookies that one may set for the
other. It never widens what is fetched."""


class UrlOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a task may change URLs beyond the canonical form. All off: only an author knows which pages are equal."""

    sort_query: bool = False
    """Put parameters in order of their names; repeated names keep their order."""
    drop_params: tuple[str, ...] = ()
    """Names of parameters to remove; `*` stands for anything, as in `utm_*`."""
    allow_ports: frozenset[int] = frozenset()
    """Ports to fetch from although they are refused by default (0 cannot be allowed)."""


class Origin(NamedTuple):
    """Scheme, host and port of a canonical URL, judged once and remembered."""

    prefix: str
    """`https://example.com`, as canonical URLs begin."""
    host: str
    """`example.com`, or `[::1]` for an IPv6 address."""
    port: int
    reason: str
    """Why URLs of this origin are refused; empty if they are not."""


def canonical(url: str, base: str | None = None, *, options: UrlOptions | None = None) -> str:
    """The one text of this URL, resolved against `base`; raises InvalidURL. Applying it twice changes nothing."""
    try:
        parsed_base = None if base is None else can_ada.parse(canonical(base, options=options))
        return _finish(_parse(parsed_base, url.partition("#")[0]), options)
    except InvalidURL as error:
        raise InvalidURL(error.reason, where=error.where or shown(url)) from None


def join_links(
    base: str, hrefs: Iterable[str], *, charset: str | None = None, options: UrlOptions | None = None
) -> tuple[list[str], Counter[str]]:
    """The canonical URLs of a page's links, each once and in order, and how many were left out for which reason.

    `base` is the page's URL or what `document_base` made of it; `charset` is the page's encoding by its WHATWG name,
    because browsers write the query of a link in it. A link to a fragment is the page itself: counted as "fragment".
    """
    base = canonical(base, options=options)
    hrefs = list(hrefs)
    # Most links stay on their host: its origin is judged above and need not be looked at again.
    home = base[: base.find("/", 8) + 1] if options is None else "never:"
    recalled: list[str | None] = [None] * len(hrefs)
    if options is None and charset is None:
        recalled = _read.recall(home[:-1], hrefs)
        if None not in recalled:
            return list(dict.fromkeys(recalled)), Counter()  # type: ignore[arg-type]  # mypy does not see that no None is left
    refused: Counter[str] = Counter()
    found: dict[str, None] = {}
    parsed_base = can_ada.parse(base)
    for href, known in zip(hrefs, recalled, strict=True):
        if known is not None:
            found[known] = None
        elif href.startswith(_INERT):
            refused["fragment" if href[0] == "#" else "scheme"] += 1
        else:
            try:
                url = _join(parsed_base, href, home, charset, options)
            except InvalidURL as error:
                refused[error.reason] += 1
            else:
                found[url] = None
                if options is None and charset is None:
                    _read.keep(home[:-1], href, url)
    return list(found), refused


def _join(base: can_ada.URL, href: str, home: str, charset: str | None, options: UrlOptions | None) -> str:
    """One link as the canonical URL it means; most need no second look because they stay at `home`."""
    if "#" in href:
        href = href.partition("#")[0]
    if charset is not None and not href.isascii():
        href = encode_query(href, charset)
    url = _parse(base, href)
    if not url.startswith(home) or url[-1] == "?" or len(url) > MAX_URL:
        url = _finish(url, options)
    return url


class _Memory:
    """Links that mean the same on every page of a host, and what they mean: the last hundred thousands of them."""

    __slots__ = ("_old", "_young")

    HALF = 100_000
    LONGEST = 300  # longer links are rare, and would let a hostile site fill the memory

    def __init__(self) -> None:
        self._young: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def recall(self, origin: str, hrefs: list[str]) -> list[str | None]:
        """What each link means where that is remembered; only links that are absolute, or absolute on their host, are."""
        get = self._young.get
        return [
            get(origin + href)
            if href[:1] == "/" and href[1:2] not in _UNLIKE_A_PATH
            else get(href)
            if href[:4] == "http"
            else None
            for href in hrefs
        ]

    def keep(self, origin: str, href: str, url: str) -> None:
        if href[:1] == "/" and href[1:2] not in _UNLIKE_A_PATH:
            href = origin + href
        elif not href.startswith(_ABSOLUTE):
            return
        if len(href) > self.LONGEST:
            return
        if len(self._young) >= self.HALF:
            self._old, self._young = self._young, {}
        self._young[href] = self._old.get(href, url)  # the same text object: its hash is known already


_read = _Memory()
_ABSOLUTE = ("https://", "http://")
_UNLIKE_A_PATH = frozenset({"/", "\\", "\t", "\n", "\r"})  # //host, and what browsers read as that


def document_base(url: str, bases: Iterable[str]) -> str:
    """What links are joined to: the first usable `<base href>` of the page, else the page's own URL."""
    for href in bases:
        try:
            return canonical(href, url)
        except InvalidURL:
            continue
    return url


def encode_query(href: str, charset: str) -> str:
    """The link with its query percent-encoded in the page's charset; path and host stay for the parser (UTF-8)."""
    rest, mark, fragment = href.partition("#")
    path, question, query = rest.partition("?")
    if query.isascii():
        return href
    return f"{path}{question}{percent_encode(query, charset)}{mark}{fragment}"


def origin_of(url: str) -> Origin:
    """Scheme, host and port of a canonical URL."""
    return _origin(url[: url.find("/", 8)])


def host_key(url: str) -> str:
    """The frontier's host of a canonical URL: `example.com:443`, the port always written."""
    return _host_key(url[: url.find("/", 8)])


def within(host: str, site: str) -> bool:
    """True if the host is this site or a subdomain of it. Addresses have no subdomains."""
    return host == site or (host.endswith(site) and host[-len(site) - 1] == "." and not is_address(site))


def is_address(host: str) -> bool:
    """True for an IPv4 or bracketed IPv6 literal as canonical URLs hold them."""
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


def site_of(host: str) -> str:
    """The registrable domain of a host (budgets count by it); an address is its own site."""
    if is_address(host):
        return host
    labels = host.split(".")
    suffix = next((n for n in (3, 2) if ".".join(labels[-n:]) in PUBLIC_SUFFIXES and n <= len(labels)), 1)
    return ".".join(labels[-suffix - 1 :])


def is_public_suffix(domain: str) -> bool:
    """True for a name under which anyone may register (`com`, `co.uk`), as far as the short list knows."""
    return "." not in domain or domain in PUBLIC_SUFFIXES


def glob_matches(glob: str, text: str) -> bool:
    """True if the whole text fits; `*` is any run of characters. Linear: no backtracking, whatever the pattern."""
    first, middle, last = _glob_parts(glob)
    if last is None:
        return text == first
    stop = len(text) - len(last)
    if stop < len(first) or not text.startswith(first) or not text.endswith(last):
        return False
    at = len(first)
    for part in middle:
        found = text.find(part, at, stop)
        if found < 0:
            return False
        at = found + len(part)
    return True


@lru_cache(maxsize=1024)
def _glob_parts(glob: str) -> tuple[str, tuple[str, ...], str | None]:
    """What must come first, then between the stars, then last; without a star there is no last."""
    first, *rest = glob.split("*")
    return (first, tuple(filter(None, rest[:-1])), rest[-1]) if rest else (first, (), None)


def fingerprint(method: str, url: str, body: bytes | None = None) -> bytes:
    """The 16 bytes by which two requests are the same: method, canonical URL and body."""
    if not body and method == "GET":
        return blake2b(url.encode(), digest_size=16).digest()
    # Lengths first: no method, URL and body can be cut differently and give the same bytes.
    head = f"{len(method)}:{method}{len(url)}:{url}".encode()
    return blake2b(head + (body or b""), digest_size=16, person=b"request").digest()


def fingerprint_of_key(own: str) -> bytes:
    """The fingerprint of an author's own key; it can never meet that of a URL."""
    return blake2b(own.encode("utf-8", "surrogatepass"), digest_size=16, person=b"own key").digest()


def shown(url: str) -> str:
    """The URL as an error may show it: without user name and password, on one line."""
    head, at, tail = url[:2000].rpartition("@")
    scheme = head.partition("//")[0] if "//" in head else ""
    safe = f"{scheme}//…@{tail}" if at else url[:2000]
    return safe.encode("unicode_escape").decode("ascii").replace("\\u2026", "…")


def _parse(base: can_ada.URL | None, raw: str) -> str:
    """What ada makes of `raw`, which has no fragment."""
    if len(raw) > _MAX_RAW:
        raise InvalidURL("url_too_long")
    try:
        url: str = can_ada.parse(raw).href if base is None else (base + raw).href
    except ValueError:
        raise InvalidURL("syntax") from None
    except TypeError:  # a lone surrogate: replaced as browsers do
        return _parse(base, _without_surrogates(raw))
    return url


def _finish(url: str, options: UrlOptions | None) -> str:
    """Judge what ada wrote and bring it into canonical form."""
    end = url.find("/", 8)
    prefix = url[:end]
    origin = _origin(prefix) if end < _MAX_PREFIX else _judge(prefix)
    if origin.reason and not _port_allowed(origin, options):
        raise InvalidURL(origin.reason)
    if origin.prefix != prefix:
        url = origin.prefix + url[end:]
    if options is not None and "?" in url:
        url = _with_query(url, options)
    if url[-1] == "?" and url.find("?") == len(url) - 1:
        url = url[:-1]
    if len(url) > MAX_URL:
        raise InvalidURL("url_too_long")
    return url


def _port_allowed(origin: Origin, options: UrlOptions | None) -> bool:
    return origin.reason == "port" and options is not None and 0 != origin.port in options.allow_ports


def _judge(prefix: str) -> Origin:
    """Read and judge `scheme://authority` as ada wrote it."""
    match = _ORIGIN.fullmatch(prefix)
    if match is None:
        return Origin(prefix, "", 0, _why_not(prefix))
    scheme, host, written = match.groups()
    port = int(written) if written else _DEFAULT_PORTS[scheme]
    if len(host) > _MAX_HOST or max(map(len, host.split("."))) > _MAX_LABEL:
        return Origin(prefix, host, port, "host")
    clean = f"{scheme}://{host}:{written}" if written else f"{scheme}://{host}"
    return Origin(clean, host, port, "port" if port in REFUSED_PORTS else "")


def _why_not(prefix: str) -> str:
    if not prefix.startswith(("http://", "https://")):
        return "scheme"
    return "userinfo" if "@" in prefix else "host"


_origin = lru_cache(maxsize=8192)(_judge)


@lru_cache(maxsize=8192)
def _host_key(prefix: str) -> str:
    origin = _judge(prefix)
    return f"{origin.host}:{origin.port}"


def _without_surrogates(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _with_query(url: str, options: UrlOptions) -> str:
    """Drop and sort parameters as the task asked, on the text as written: nothing is decoded and written anew."""
    path, _, query = url.partition("?")
    pieces = query.split("&")
    if options.drop_params:
        pieces = [piece for piece in pieces if not _dropped(_name(piece), options.drop_params)]
    if options.sort_query:
        pieces.sort(key=_name)
    return f"{path}?{'&'.join(pieces)}"


def _name(piece: str) -> str:
    return unquote_plus(piece.partition("=")[0])


def _dropped(name: str, globs: tuple[str, ...]) -> bool:
    return name in globs or any(glob_matches(glob, name) for glob in globs if "*" in glob)

"""The cookies of one task: what hosts set, and what is sent back to them (RFC 6265, with the stricter rules of 6265bis).

Bounded everywhere: 4 KiB per cookie, 50 per domain, 2,000 domains, 8 KiB in a request; the oldest go first. A cookie for
a domain must come from a host inside it, and the domain must not be a public suffix, as far as the short list in
`model.url` knows. Time is the caller's.
"""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Iterable

import msgspec

from gossamer.model.url import Origin, is_address, is_public_suffix, origin_of, within

MAX_COOKIE = 4096
MAX_PER_DOMAIN = 50
MAX_DOMAINS = 2000
MAX_HEADER = 8192
MAX_LINES = 200
"""Set-Cookie lines read of one answer; the rest count as refused."""
MAX_AGE = 400 * 86_400

_NAME = re.compile(r"[!-+\--:<>-~]+")  # visible ASCII without `,` `;` `=`
_VALUE = re.compile(r"[ !-:<-~\x80-\xff]*")  # no control characters, no `;`
_DIGITS = re.compile(r"-?[0-9]{1,15}")
_TIME = re.compile(r"(?<![0-9])([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DATE = re.compile(
    r"(?<![0-9:])([0-9]{1,2})[ -]([a-z]{3})[a-z]{0,9}[ -]([0-9]{2,4})(?![0-9:])", re.IGNORECASE
)
_ASCTIME = re.compile(r"([a-z]{3}) +([0-9]{1,2}) [0-9:]{5,8} ([0-9]{4})", re.IGNORECASE)
_MONTHS = {name: n for n, name in enumerate("jan feb mar apr may jun jul aug sep oct nov dec".split(), 1)}  # noqa: SIM905


class Cookie(msgspec.Struct, frozen=True):
    """One cookie as a host set it."""

    name: str
    value: str
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires: float | None
    """Seconds since the epoch; None lasts as long as the task."""


class CookieJar:
    """Keeps the cookies of a task by domain."""

    def __init__(self) -> None:
        self._domains: dict[str, dict[tuple[str, str], Cookie]] = {}

    def store(self, url: str, lines: Iterable[str], now: float) -> int:
        """Take the Set-Cookie headers of an answer from this canonical URL; returns how many were refused."""
        refused = 0
        for number, line in enumerate(lines):
            cookie = parse(line, url, now) if number < MAX_LINES else None
            if cookie is None or not self._put(cookie, origin_of(url), now):
                refused += 1
        return refused

    def header_for(self, url: str, now: float) -> str | None:
        """The Cookie header for a request to this canonical URL; None if there is nothing to send."""
        if not self._domains:
            return None
        origin = origin_of(url)
        path = url[len(origin.prefix) :].partition("?")[0]
        found = [
            cookie
            for domain in _and_parents(origin.host)
            for cookie in self._domains.get(domain, {}).values()
            if _applies(cookie, origin, path, now)
        ]
        found.sort(key=lambda cookie: -len(cookie.path))
        header = ""
        for cookie in found:
            longer = f"{header}; {cookie.name}={cookie.value}" if header else f"{cookie.name}={cookie.value}"
            if len(longer) <= MAX_HEADER:
                header = longer
        return header or None

    def _put(self, cookie: Cookie, origin: Origin, now: float) -> bool:
        kept = self._domains.setdefault(cookie.domain, {})
        key = (cookie.name, cookie.path)
        old = kept.get(key)
        if old is not None and old.secure and origin.prefix.startswith("http:"):
            return False  # a plain connection, which anyone may forge, cannot replace a protected cookie
        if cookie.expires is not None and cookie.expires <= now:
            kept.pop(key, None)
        else:
            kept[key] = cookie
        if len(kept) > MAX_PER_DOMAIN:
            _evict(kept, now)
        if not kept:
            del self._domains[cookie.domain]
        elif len(self._domains) > MAX_DOMAINS:
            del self._domains[next(iter(self._domains))]
        return True


def parse(line: str, url: str, now: float) -> Cookie | None:
    """One Set-Cookie header; None if it must be ignored."""
    if len(line) > 2 * MAX_COOKIE:
        return None
    pair, *rest = line.split(";")
    name, equals, value = pair.partition("=")
    name, value = name.strip(" \t"), value.strip(" \t")
    if (
        not equals
        or not _NAME.fullmatch(name)
        or not _VALUE.fullmatch(value)
        or len(name) + len(value) > MAX_COOKIE
    ):
        return None
    attributes = dict(_attribute(text) for text in rest)
    origin = origin_of(url)
    domain = _domain(attributes.get("domain", ""), origin.host)
    if domain is None:
        return None
    path = attributes.get("path", "")
    cookie = Cookie(
        name=name,
        value=value,
        domain=domain or origin.host,
        path=path if path.startswith("/") else _default_path(url[len(origin.prefix) :]),
        host_only=not domain,
        secure="secure" in attributes,
        expires=_expires(attributes, now),
    )
    return cookie if _trusted(cookie, origin) else None


def _attribute(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    value = value.strip(" \t")
    return name.strip(" \t").lower(), value if len(value) <= 1024 else ""


def _domain(written: str, host: str) -> str | None:
    """The domain of the cookie: "" for the host alone, None if the host may not speak for it."""
    domain = written.removeprefix(".").lower()
    if not domain or domain == host:
        return "" if is_address(host) or is_public_suffix(host) else domain
    if is_address(host) or is_public_suffix(domain) or not within(host, domain):
        return None
    return domain


def _trusted(cookie: Cookie, origin: Origin) -> bool:
    """Secure cookies come over TLS, and the name prefixes keep what they promise."""
    name = cookie.name.lower()
    if cookie.secure and not origin.prefix.startswith("https:"):
        return False
    if name.startswith("__host-"):
        return cookie.secure and cookie.host_only and cookie.path == "/"
    return cookie.secure or not name.startswith("__secure-")


def _expires(attributes: dict[str, str], now: float) -> float | None:
    age = attributes.get("max-age", "")
    if _DIGITS.fullmatch(age):
        return now + min(int(age), MAX_AGE) if int(age) > 0 else 0.0
    moment = _moment(attributes.get("expires", ""))
    return None if moment is None else min(moment, now + MAX_AGE)


def _moment(text: str) -> float | None:
    """A cookie date in any of the forms that servers write; None if it is none."""
    clock = _TIME.search(text)
    if clock is None:
        return None
    if match := _DATE.search(text):
        day, month, year = int(match[1]), match[2].lower(), int(match[3])
    elif match := _ASCTIME.search(text):
        day, month, year = int(match[2]), match[1].lower(), int(match[3])
    else:
        return None
    if year < 100:
        year += 1900 if year >= 70 else 2000
    hour, minute, second = map(int, clock.groups())
    if month not in _MONTHS or not 1 <= day <= 31 or year < 1601 or hour > 23 or minute > 59 or second > 59:
        return None
    return float(timegm((year, _MONTHS[month], day, hour, minute, second)))


def _default_path(path: str) -> str:
    return path.partition("?")[0].rpartition("/")[0] or "/"


def _and_parents(host: str) -> list[str]:
    """The host and the domains it is in, below the top level: where its cookies may be kept."""
    if is_address(host):
        return [host]
    labels = host.split(".")
    return [".".join(labels[n:]) for n in range(max(1, len(labels) - 1))]


def _applies(cookie: Cookie, origin: Origin, path: str, now: float) -> bool:
    if cookie.host_only and cookie.domain != origin.host:
        return False
    if cookie.secure and not origin.prefix.startswith("https:"):
        return False
    if cookie.expires is not None and cookie.expires <= now:
        return False
    rest = path.removeprefix(cookie.path)
    return path == cookie.path or (rest != path and (cookie.path.endswith("/") or rest.startswith("/")))


def _evict(kept: dict[tuple[str, str], Cookie], now: float) -> None:
    """Make room for one: an expired cookie if there is one, else the oldest."""
    gone = next((k for k, c in kept.items() if c.expires is not None and c.expires <= now), next(iter(kept)))
    del kept[gone]

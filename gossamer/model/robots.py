"""What a host's robots.txt permits (RFC 9309, matched as Google does, by Protego).

The answer of the server decides first: 2xx is read, 4xx means that there are no rules, and anything that only says "not
now" (429, 5xx, no answer) is `Unreachable`: the host waits, it is never taken as permission. Reading is bounded in
bytes, lines and work, because Protego copies each rule to every agent of its group: 15,000 agents above 15,000 rules
would be 225 million copies.

`RobotsRules.text` is what a frontier stores; `RobotsRules(text)` gives the same rules back.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from protego import Protego

MAX_BYTES = 500 * 1024
"""RFC 9309: at least this much must be read; no more is."""
MAX_RULES = 10_000
MAX_WILDCARD_RULES = 1_000  # each costs a scan of the URL at every check
MAX_WORK = 200_000  # rules times the agents of their group
MAX_SITEMAPS = 1_000
MAX_DELAY = 3600.0
"""A host that asks for longer pauses than this is parked; asking for an hour is the longest that is simply obeyed."""

_HOUR = 3600
DEFAULT_LIFETIME = 24 * _HOUR
MIN_LIFETIME = 300

_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([0-9]{1,12})", re.IGNORECASE)
_UNCACHED = re.compile(r"(?:^|[,\s])no-(?:cache|store)\b", re.IGNORECASE)
_FORBIDS = re.compile(r"dis{1,2}al|diasl", re.IGNORECASE)  # the spellings that Protego understands
_GROUP = re.compile(r"^[ \t]*user[ -]?agent", re.IGNORECASE | re.MULTILINE)
_SITEMAP = re.compile(r"^[ \t]*site-?map[^\n]*", re.IGNORECASE | re.MULTILINE)
_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
_DENY_ALL = "User-agent: *\nDisallow: /\n"


class Unreachable(NamedTuple):
    """The rules could not be learned now: the host waits and is asked again."""

    code: str
    """`http_503`, `http_429`, or `no_answer`."""


class CrawlDelay(NamedTuple):
    """The pause that a host asks for between requests."""

    seconds: float
    """The pause to keep, at most the maximum."""
    asked: float
    """What the host wrote."""

    @property
    def too_long(self) -> bool:
        """The host asks for more than the maximum: park it rather than crawl it faster than it allows."""
        return self.asked > self.seconds


class RobotsRules:
    """The rules of one host, for every agent; cheap to ask, compiled once."""

    __slots__ = ("_free", "_rules", "flag", "sitemaps", "text")

    def __init__(self, text: str, flag: str | None = None) -> None:
        self.text, cut = _bounded(text)
        self.flag = flag or ("truncated" if cut else None)
        """None, "not_robots" (a page or binary data: everything is allowed), "truncated", or "http_NNN" (no rules)."""
        self._rules = Protego.parse(self.text)
        self._free = _FORBIDS.search(self.text) is None
        self.sitemaps = tuple(self._rules.sitemaps)[:MAX_SITEMAPS]
        """As written; join them to the URL of robots.txt before use."""

    @classmethod
    def parse(
        cls, status: int, body: bytes = b"", *, unauthorized_denies: bool = False
    ) -> RobotsRules | Unreachable:
        """The rules that an answer to /robots.txt stands for; status 0 means that there was no answer.

        A redirect that is still one after five hops is no file, so no rules. RFC 9309 counts 401 and 403 as "no file"
        too; `unauthorized_denies` is for owners who want it stricter.
        """
        if 200 <= status < 300:
            return cls._read(body)
        if status == 429 or not 300 <= status < 500:
            return Unreachable(f"http_{status}" if status else "no_answer")
        denied = unauthorized_denies and status in {401, 403}
        return cls(_DENY_ALL if denied else "", f"http_{status}")

    @classmethod
    def _read(cls, body: bytes) -> RobotsRules:
        cut = len(body) > MAX_BYTES
        text = _decoded(body[:MAX_BYTES])
        if cut:  # half a line is no rule
            text = text.rpartition("\n")[0]
        if _GROUP.search(text):
            return cls(text, "truncated" if cut else None)
        sitemaps = "\n".join(_SITEMAP.findall(text))
        return cls(sitemaps, None if sitemaps or not text.strip() else "not_robots")

    def allowed(self, url: str, user_agent: str) -> bool:
        """May this agent fetch this canonical URL?"""
        return self._free or self._rules.can_fetch(url, user_agent)

    def crawl_delay(self, user_agent: str, maximum: float = MAX_DELAY) -> CrawlDelay | None:
        """The pause asked by Crawl-delay or Request-rate, whichever is longer; None if neither is given."""
        asked = self._rules.crawl_delay(user_agent) or 0.0
        if rate := self._rules.request_rate(user_agent):
            asked = max(asked, _ratio(rate.seconds, rate.requests))
        if not 0 < asked < math.inf:
            return None
        return CrawlDelay(min(asked, maximum), asked)


def lifetime(cache_control: str | None) -> int:
    """How many seconds the rules may be used: what the server says, between 5 minutes and 24 hours."""
    if not cache_control:
        return DEFAULT_LIFETIME
    if _UNCACHED.search(cache_control):
        return MIN_LIFETIME
    match = _MAX_AGE.search(cache_control)
    return min(max(int(match[1]), MIN_LIFETIME), DEFAULT_LIFETIME) if match else DEFAULT_LIFETIME


def _ratio(seconds: int, requests: int) -> float:
    try:
        return seconds / requests
    except OverflowError:
        return 0.0


def _decoded(body: bytes) -> str:
    """Text with plain line ends, whatever the editor of the site's owner wrote."""
    codec = next((codec for mark, codec in _BOMS if body.startswith(mark)), "utf-8")
    text = body.decode(codec, "replace").lstrip("\ufeff").replace("\x00", "")
    return "\n".join(text.splitlines())


def _bounded(text: str) -> tuple[str, bool]:
    """The text up to where reading it would cost too much, and whether it was cut.

    Counts like Protego groups, or higher: agents pile up until a line with a colon that names no agent.
    """
    agents = rules = wildcards = work = 0
    in_rules = False
    lines = text.splitlines()
    for number, line in enumerate(lines):
        line = line.partition("#")[0].strip().lower()
        if not line or line.startswith(("site", "host")):
            continue
        if line.startswith("user"):
            agents = 1 if in_rules else agents + 1
            in_rules = False
        else:
            rules += 1
            wildcards += "*" in line
            in_rules = in_rules or ":" in line
        work += agents
        if rules > MAX_RULES or wildcards > MAX_WILDCARD_RULES or work > MAX_WORK:
            return "\n".join(lines[:number]), True
    return text, False

"""Which URLs belong to a task.

An entry of `allow` or `deny` is one of

- a host: `example.com` (any port), `example.com:8080`, `*.example.com` (its subdomains), `*` (every host);
- a URL: `https://example.com/docs/`, or without scheme for both: `example.com/docs/`; or a path on any host: `/admin`.
  Without a star it is the beginning of a URL; with stars it is a glob that all of the URL (or path) must fit, where
  a star in the host stays in the host; a glob that begins with `*`, as `*?print=*`, is matched against the whole URL;
- `re:` and a regular expression that is searched in the URL.

A denied URL is refused even if it is allowed. Without `allow`, the hosts of the seeds are the task's world, with and
without `www.`; a scope without either refuses everything, for a crawl must not run away because a list was empty.

Globs are matched in linear time. A regular expression is Python's and can be made to take for ever, so it is for
authors, whose code runs anyway; it sees at most 2,000 characters. Doors open to strangers should refuse `re:`.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from gossamer.model.errors import InvalidURL, SettingsError
from gossamer.model.url import UrlOptions, canonical, glob_matches, is_address, origin_of

MAX_ENTRY = 500
_REGEX_SEES = 2000
_REMEMBERED = 10_000
_PORT = re.compile(r":([0-9]{1,5})$")


class Scope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a task may fetch, as its author wrote it; `Boundary` is its compiled form."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    depth: int | None = None
    """Links are followed so many steps from the seeds; None is without limit."""
    same_site: bool = False
    """Subdomains of an allowed host are allowed too."""
    hosts: tuple[str, ...] = ()
    """Hosts of the seeds (see `seed_hosts`); used if `allow` is empty."""


class Boundary:
    """A scope made ready to be asked for every link. Raises SettingsError for an entry that means nothing."""

    __slots__ = ("_allow", "_deny", "_depth")

    def __init__(self, scope: Scope) -> None:
        self._allow = _Entries(scope.allow or scope.hosts, "allow", subdomains=scope.same_site)
        self._deny = _Entries(scope.deny, "deny", subdomains=False) if scope.deny else None
        self._depth = scope.depth

    def refusal(self, url: str, host: str, depth: int) -> str | None:
        """Why this canonical URL of this host key is out of scope: "scheme", "offsite", "denied", "too_deep"; or None."""
        if not url.startswith(("https://", "http://")):
            return "scheme"
        if not self._allow.match(url, host):
            return "offsite"
        if self._deny is not None and self._deny.match(url, host):
            return "denied"
        if self._depth is not None and depth > self._depth:
            return "too_deep"
        return None


def seed_hosts(url: str) -> tuple[str, ...]:
    """The entries that a seed stands for: its host with and without `www.`, and its port if it is a special one."""
    origin = origin_of(url)
    port = f":{origin.port}" if origin.prefix.endswith(f":{origin.port}") else ""
    if is_address(origin.host) or "." not in origin.host:
        return (origin.host + port,)
    bare = origin.host.removeprefix("www.")
    return (bare + port, f"www.{bare}{port}")


class _Glob(NamedTuple):
    scheme: str
    host: str
    path: str

    def fits(self, scheme: str, host: str, path: str) -> bool:
        return (
            glob_matches(self.scheme, scheme)
            and glob_matches(self.host, host)
            and glob_matches(self.path, path)
        )


class _Entries:
    """One list of entries, sorted by kind; hosts are answered from a dictionary."""

    __slots__ = (
        "_beginnings",
        "_domains",
        "_globs",
        "_hosts",
        "_known",
        "_path_globs",
        "_paths",
        "_regexes",
        "_url_globs",
    )

    def __init__(self, entries: tuple[str, ...], setting: str, *, subdomains: bool) -> None:
        self._hosts: set[str] = set()
        self._domains: tuple[str, ...] = ()
        self._beginnings: tuple[str, ...] = ()
        self._globs: tuple[_Glob, ...] = ()
        self._url_globs: tuple[str, ...] = ()
        self._paths: tuple[str, ...] = ()
        self._path_globs: tuple[str, ...] = ()
        self._regexes: tuple[re.Pattern[str], ...] = ()
        self._known: dict[str, bool] = {}
        for entry in entries:
            try:
                self._add(entry.strip(), subdomains=subdomains)
            except (InvalidURL, re.error, ValueError) as error:
                why = error.what if isinstance(error, InvalidURL) else error
                raise SettingsError(
                    f"`{entry[:MAX_ENTRY]}` is no host, URL or pattern: {why}",
                    where=f"setting `{setting}`",
                    hint="write example.com, *.example.com, https://example.com/docs/* or re:…",
                ) from None

    def match(self, url: str, host: str) -> bool:
        known = self._known.get(host)
        if known is None:
            known = self._match_host(host)
            if len(self._known) >= _REMEMBERED:  # a web of a million hosts must not fill the memory
                self._known.clear()
            self._known[host] = known
        return known or self._match_url(url)

    def _match_host(self, host: str) -> bool:
        name = host.rpartition(":")[0]
        hosts = self._hosts
        return (
            name in hosts
            or host in hosts
            or "*" in hosts
            or name.endswith(self._domains)
            or host.endswith(self._domains)
        )

    def _match_url(self, url: str) -> bool:
        if url.startswith(self._beginnings) or any(glob_matches(glob, url) for glob in self._url_globs):
            return True
        if self._paths or self._path_globs or self._globs:
            end = url.find("/", 8)
            path = url[end:]
            if path.startswith(self._paths) or any(glob_matches(glob, path) for glob in self._path_globs):
                return True
            scheme, _, host = url[:end].partition("://")
            if any(glob.fits(scheme, host, path) for glob in self._globs):
                return True
        return any(regex.search(url, 0, _REGEX_SEES) for regex in self._regexes)

    def _add(self, entry: str, *, subdomains: bool) -> None:
        if not entry or len(entry) > MAX_ENTRY:
            raise ValueError(f"it is empty or longer than {MAX_ENTRY} characters")
        if entry.startswith("re:"):
            self._regexes += (re.compile(entry[3:]),)
        elif entry.startswith("/"):
            if "*" in entry:
                self._path_globs += (entry,)
            else:
                self._paths += (entry,)
        elif "/" in entry or "?" in entry:
            self._add_url(entry)
        elif entry == "*":
            self._hosts.add(entry)
        elif entry.startswith("*."):
            self._domains += ("." + _host(entry[2:]),)
        else:
            host = _host(entry)
            self._hosts.add(host)
            if subdomains and not is_address(host.partition(":")[0]):
                self._domains += ("." + host,)

    def _add_url(self, entry: str) -> None:
        scheme, separator, rest = entry.partition("://") if "://" in entry else ("*", "", entry)
        if "*" not in entry:
            schemes = (scheme,) if separator else ("https", "http")
            self._beginnings += tuple(canonical(f"{name}://{rest}") for name in schemes)
        elif entry.startswith("*") and not entry.startswith("*."):
            self._url_globs += (entry,)
        else:
            # Host and path are matched apart: `https://*.a.com/x*` must not let https://evil.org/.a.com/x in.
            host, slash, path = rest.partition("/")
            self._globs += (_Glob(scheme.lower(), host.lower(), slash + path if slash else "/*"),)


def _host(entry: str) -> str:
    """`host` or `host:port` in canonical spelling."""
    written = _PORT.search(entry)
    port = int(written[1]) if written else 0
    origin = origin_of(canonical(f"http://{entry}/", options=UrlOptions(allow_ports=frozenset({port}))))
    return f"{origin.host}:{port}" if written else origin.host

"""URLs that a site can make without end: recognised by their shape, or bounded by a budget for each pattern.

Two defences. `trap` refuses shapes that no honest page has: paths that repeat themselves (relative links on a page that
answers under every path), very deep paths, very many parameters. What looks honest and still never ends (calendars,
session ids, filters) is bounded by counting: `pattern_of` gives many URLs one name, and a host gets a budget per name.
"""

from __future__ import annotations

import re

import msgspec


class TrapLimits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """From where on a URL counts as a trap."""

    segments: int = 20
    """A path with more segments."""
    repeats: int = 2
    """A path that holds the same segment more often, next to each other or not: `/a/b/a/b/a/b`."""
    parameters: int = 20
    """A query with more parameters."""


DEFAULT_LIMITS = TrapLimits()
BEYOND_BUDGET = "trap_pattern"
"""The code of a page whose URL pattern has used up its budget."""
MAX_PATTERN = 200
"""Longer patterns are cut: they share a budget, which is what a budget is for."""


def trap(url: str, limits: TrapLimits = DEFAULT_LIMITS) -> str | None:
    """Why this canonical URL is a trap: "trap_segments", "trap_repeat", "trap_parameters"; or None."""
    path, _, query = url.partition("?")
    if query.count("&") >= limits.parameters:
        return "trap_parameters"
    slashes = path.count("/") - 2  # those behind the scheme do not count
    if slashes <= limits.repeats:  # too short to repeat anything so often
        return None if slashes <= limits.segments else "trap_segments"
    segments = path.split("/")[3:]
    if not segments[-1]:
        segments.pop()
    if len(segments) > limits.segments:
        return "trap_segments"
    different = set(segments)
    if len(segments) - len(different) >= limits.repeats and any(
        segments.count(segment) > limits.repeats for segment in different
    ):
        return "trap_repeat"
    return None


_DIGIT = re.compile(r"[0-9]")
_VARIABLE = re.compile(
    r"(?P<kept>%[0-9A-Fa-f]{2})"
    r"|(?P<id>(?<![A-Za-z0-9])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # UUID
    r"|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16,})(?![A-Za-z0-9]))"  # hash, token
    r"|(?P<date>(?<![0-9])(?:19|20)[0-9]{2}(?P<sep>[-/])[01]?[0-9](?:(?P=sep)[0-3]?[0-9])?(?![0-9]))"
    r"|(?P<n>[0-9]+)"
)


def pattern_of(url: str) -> str:
    """The name that this URL shares with its like on the host: `/list/{n}?page&sort`.

    Numbers, dates and long identifiers become {n}, {date} and {id}; parameters keep their names, in order of the
    alphabet, and lose their values.
    """
    path, question, query = url[url.find("/", 8) :].partition("?")
    if question:
        names = sorted({piece.partition("=")[0] for piece in query.split("&")})
        path = f"{path}?{'&'.join(names)}"
    if _DIGIT.search(path):
        path = _VARIABLE.sub(_placeholder, path)
    return path[:MAX_PATTERN]


def budget_name(url: str) -> str:
    """What a budget of patterns is counted under: the host and the URL's pattern there."""
    return url[: url.find("/", 8)] + pattern_of(url)


def _placeholder(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "kept":  # half of an encoded letter is no number
        return match[0]
    return f"{{{'date' if kind == 'sep' else kind}}}"

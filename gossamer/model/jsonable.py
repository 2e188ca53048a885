"""Whether a value is JSON as it stands, so that what one process writes is what another reads.

Encoders are more generous: they write NaN as null, a tuple as a list, a date as text. What comes back is then another
value than the author put in. Here the author is told, with the place in the value.
"""

from __future__ import annotations

from math import isfinite
from typing import Any

MAX_NESTING = 100


def why_not_json(value: Any, place: str = "", nesting: int = 0) -> str | None:
    """Where and why this is not JSON, as in `['when'] is a datetime`; None if it is."""
    kind = type(value)
    if kind is str:
        return None if _is_unicode(value) else f"{place} holds half a character (a lone surrogate)"
    if value is None or kind is bool or kind is int:
        return None
    if kind is float:
        return None if isfinite(value) else f"{place} is {value}"
    if nesting >= MAX_NESTING:
        return f"{place[:100]} is nested more than {MAX_NESTING} deep"
    if kind is dict:
        return _first(_why_not_entry(key, inner, place, nesting) for key, inner in value.items())
    if kind is list:
        return _first(why_not_json(inner, f"{place}[{n}]", nesting + 1) for n, inner in enumerate(value))
    return f"{place} is a {kind.__name__}"


def why_not_finite(value: Any, place: str = "", nesting: int = 0) -> str | None:
    """Where a number that JSON cannot write (NaN, infinity) hides in lists, tuples and dicts; None if nowhere."""
    if isinstance(value, float):
        return None if isfinite(value) else f"{place} is {value}"
    if nesting >= MAX_NESTING:
        return None
    if isinstance(value, dict):
        return _first(why_not_finite(inner, f"{place}[{key!r}]", nesting + 1) for key, inner in value.items())
    if isinstance(value, list | tuple):
        return _first(why_not_finite(inner, f"{place}[{n}]", nesting + 1) for n, inner in enumerate(value))
    return None


def _why_not_entry(key: Any, value: Any, place: str, nesting: int) -> str | None:
    if type(key) is not str:
        return f"{place} has the key {key!r}, which is a {type(key).__name__}"
    return why_not_json(key, f"{place} key", nesting) or why_not_json(value, f"{place}[{key!r}]", nesting + 1)


def _first(reasons: Any) -> str | None:
    return next((reason for reason in reasons if reason), None)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True

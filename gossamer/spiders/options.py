"""The settings that an author writes into the spider: checked where they are written, the weakest of all sources."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import msgspec

from gossamer.model.errors import SettingsError
from gossamer.model.settings import Settings

_TYPES = get_type_hints(Settings)
_META = {
    name: get_args(kind)[1]
    for name, kind in get_type_hints(Settings, include_extras=True).items()
    if get_origin(kind) is Annotated
}
_SEQUENCES = frozenset(name for name, kind in _TYPES.items() if get_origin(kind) is tuple)
_BOUNDS = (
    ("ge", operator.ge, "at least"),
    ("gt", operator.gt, "more than"),
    ("le", operator.le, "at most"),
    ("lt", operator.lt, "less than"),
)


def checked_settings(given: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The given settings, and only these, as `Settings` holds them; raises SettingsError."""
    return {name: _checked(name, value, where) for name, value in given.items()}


def _checked(name: str, value: Any, where: str) -> Any:
    if name not in _TYPES:
        near = get_close_matches(name, _TYPES, n=1)
        hint = f"did you mean {near[0]}?" if near else "`gossamer settings` lists them all"
        raise SettingsError(f"There is no setting {name!r}", where=where, hint=hint)
    try:
        read = msgspec.convert(_sequence(value) if name in _SEQUENCES else value, _TYPES[name])
    except msgspec.ValidationError as error:
        raise SettingsError(f"{name} cannot be used: {error}", where=where) from None
    for bound, holds, said in _BOUNDS:
        limit = getattr(_META.get(name), bound, None)
        if limit is not None and read is not None and not holds(read, limit):
            raise SettingsError(f"{name} is {read!r}; it must be {said} {limit}", where=where)
    return read


def _sequence(value: Any) -> Any:
    """One host may be given as it is: allow="books.example"."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)

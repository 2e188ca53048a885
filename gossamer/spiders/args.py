"""Arguments of a spider: declared with their defaults, given as text (`-a category=books`) or as values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from gossamer.model.errors import SpiderError, UsageError

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


class Args(Mapping[str, Any]):
    """The arguments of one task, read as attributes: `spider.args.category`. Only declared names exist."""

    def __init__(
        self, spider: str, declared: Mapping[str, Any], given: Mapping[str, Any] | None = None
    ) -> None:
        self._spider = spider
        self._declared = dict(declared)
        self._values = dict(declared)
        for name, value in (given or {}).items():
            self._known(name)
            self._values[name] = _convert(name, value, self._declared[name])

    def _known(self, name: str) -> None:
        if name in self._declared:
            return
        near = get_close_matches(name, self._declared, n=1)
        names = ", ".join(self._declared)
        if near:
            hint = f"did you mean {near[0]!r}?"
        elif names:
            hint = f"it has {names}"
        else:
            hint = f'declare it: Spider({self._spider!r}, args={{"{name}": …}})'
        raise UsageError(f"The spider {self._spider!r} has no argument {name[:100]!r}", hint=hint)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # copy and pickle look for such names before anything is set
        self._known(name)
        return self._values[name]

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<Args {', '.join(self._values)}>"  # no values: a token may be among them


_TAKEN = [name for name in dir(Args) if not name.startswith("_")]


def with_values(args: Args, values: Mapping[str, Any]) -> Args:
    """These values, converted to the types of the defaults, over the defaults. (No method: every name is an argument's.)"""
    return Args(args._spider, args._declared, values)  # noqa: SLF001  (of this module)


def check_declared(spider: str, declared: Mapping[str, Any]) -> None:
    """Refuse defaults that no text could be converted to."""
    for name, default in declared.items():
        if not name.isidentifier() or name.startswith("_") or hasattr(Args, name):
            raise SpiderError(
                f"{name!r} is no name for an argument of {spider!r}",
                hint=f"use letters, digits and _, and none of {', '.join(_TAKEN)}",
            )
        if not isinstance(default, str | bool | int | float | list | tuple | None):
            raise SpiderError(
                f"The default of the argument {name!r} is of type {type(default).__name__}",
                hint="use text, a number, a bool, a list of texts or None",
            )


def _convert(name: str, value: Any, default: Any) -> Any:
    """Text becomes what the default is; a value of that type stays."""
    kind = type(default)
    if default is None or kind is str:
        return value if default is None else str(value)
    if not isinstance(value, str):
        if kind is float and type(value) is int:
            return float(value)
        if type(value) is kind:
            return value
        raise _wrong(name, value, kind)
    if kind is bool:
        return _bool(name, value)
    if kind in {list, tuple}:
        return kind(piece.strip() for piece in value.split(",") if piece.strip())
    try:
        return kind(value)
    except ValueError:
        raise _wrong(name, value, kind) from None


def _bool(name: str, value: str) -> bool:
    word = value.strip().lower()
    if word not in _TRUE | _FALSE:
        raise _wrong(name, value, bool)
    return word in _TRUE


def _wrong(name: str, value: Any, kind: type) -> UsageError:
    hint = "use true or false" if kind is bool else f"give a value of type {kind.__name__}, as the default is"
    return UsageError(f"The argument {name!r} cannot be {value!r:.100}", hint=hint)

"""The value of a setting: how text becomes its type, and how a person is told what would have been right.

All is read from the `Settings` struct (its annotations, defaults and sentences), so that a new setting is written in
one place only. Text is what shells and environments have: lists with commas, yes and no, `5m`, `10MB`.
"""

from __future__ import annotations

import ipaddress
import math
import re
import tomllib
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from gossamer.model.settings import Settings

YES = frozenset({"true", "yes", "on", "1"})
NO = frozenset({"false", "no", "off", "0"})
NONE = frozenset({"", "none", "null"})
SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
UNITS: dict[str, Mapping[str, float]] = {"bytes": BYTES, "seconds": SECONDS, "minutes": SECONDS}
_MEASURE = re.compile(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)")
_GROUPED = re.compile(
    r"\d{1,3}(,\d{3})+|\d+(_\d+)+"
)  # 10,000 and 10_000, but never the 1,5 of a German keyboard


class Refused(ValueError):  # noqa: N818  (never leaves this room: it becomes a SettingsError)
    """The value cannot be this setting's; the text says why where the wanted form does not say it already."""


class Field:
    """One setting of the struct: its type, its bounds and its sentence."""

    def __init__(self, name: str, hint: Any, default: Any) -> None:
        self.name = name
        self.default = default
        metas: list[Meta] = []
        self.kind, self.optional = _bare(hint, metas)
        self.meaning = next((meta.description for meta in metas if meta.description), "")
        self.lowest = _first(metas, "ge")
        self.above = _first(metas, "gt")
        self.highest = _first(metas, "le")
        self.unit = _unit(name, self.meaning, self.kind)

    def read(self, value: Any) -> Any:
        """The value in this setting's type, within its bounds; raises Refused."""
        if isinstance(value, str):
            if self.optional and value.strip().lower() in NONE:
                return None
            value = self._from_text(value)
        elif value is None and self.optional:
            return None
        read = self._typed(value)
        _check_text(read)
        check = CHECKS.get(self.name)
        if check is not None and read:
            check(read)
        return read

    def _from_text(self, text: str) -> Any:
        bare = text.strip()
        if self.kind is bool:
            word = bare.lower()
            if word not in YES | NO:
                raise Refused
            return word in YES
        if self.kind in {int, float}:
            return self._number(bare)
        if self.is_list:
            return _list(bare)
        if self.choices:
            return bare.lower()
        return _table(bare) if self.is_table else text

    def _number(self, text: str) -> Any:
        match = _MEASURE.fullmatch(text)
        if match is None:
            return re.sub("[,_]", "", text) if _GROUPED.fullmatch(text) else text
        scale = UNITS.get(self.unit, {}).get(match[2].lower())
        if scale is None:
            raise Refused(f"{match[2]!r} is no unit it knows")
        number = float(match[1]) * scale
        if self.unit == "minutes":
            return number / 60
        return number if self.kind is float else round(number)

    def _typed(self, value: Any) -> Any:
        if self.is_list and isinstance(value, (set, frozenset)):
            value = sorted(value)
        if self.choices and type(value) in {int, float}:
            value = str(value)  # http_version = 2
        try:
            read = msgspec.convert(value, self.kind, strict=False)
        except (msgspec.ValidationError, TypeError):
            raise Refused from None
        if isinstance(read, float) and not math.isfinite(read):
            raise Refused
        if isinstance(read, (int, float)) and not isinstance(read, bool):
            low = self.lowest is None or read >= self.lowest
            if not (low and (self.above is None or read > self.above)):
                raise Refused("it is too small")
            if self.highest is not None and read > self.highest:
                raise Refused("it is too large")
        return read

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def is_table(self) -> bool:
        return get_origin(self.kind) is dict

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    @property
    def type_name(self) -> str:
        """The type as a person names it."""
        if self.choices:
            return "choice"
        named = {int: "whole number", float: "number", bool: "yes or no", str: "text"}
        kind = "list" if self.is_list else "table" if self.is_table else named[self.kind]
        return self.unit or kind

    @property
    def bounds(self) -> str:
        if self.choices:
            return " · ".join(self.choices)
        said = []
        if self.lowest is not None:
            said.append(f"≥ {_number_text(self.lowest)}")
        if self.above is not None:
            said.append(f"> {_number_text(self.above)}")
        if self.highest is not None:
            said.append(f"≤ {_number_text(self.highest)}")
        return ", ".join(said)

    @property
    def default_text(self) -> str:
        return as_text(self.default, self.unit)

    @property
    def wanted(self) -> str:
        """What would be right, as a hint."""
        if self.choices:
            form = "one of " + ", ".join(self.choices)
        elif self.kind is bool:
            form = "yes or no"
        elif self.is_list:
            form = 'values with commas between them, or a list such as ["a", "b"]'
        elif self.is_table:
            form = 'a table such as {"Accept-Language": "en"}'
        else:
            form = (
                _FORMS.get(self.unit) or {int: "a whole number", float: "a number", str: "a text"}[self.kind]
            )
        return form + self._range() + (", or none" if self.optional else "")

    def _range(self) -> str:
        if self.above is not None:
            return f", more than {_number_text(self.above)}"
        if self.lowest is None:
            return ""
        lowest = _number_text(self.lowest)
        return (
            f", at least {lowest}" if self.highest is None else f", {lowest} to {_number_text(self.highest)}"
        )


_FORMS = {
    "seconds": "a number of seconds, or a duration such as 250ms, 30s, 5m",
    "minutes": "a number of minutes, or a duration such as 30s, 90m, 2h",
    "bytes": "a number of bytes, or a size such as 500KB, 10MB, 16MiB",
}


def _bare(hint: Any, metas: list[Meta]) -> tuple[Any, bool]:
    """The type without its annotations, which go to `metas`, and whether it may be None."""
    if get_origin(hint) is Annotated:
        metas.extend(meta for meta in hint.__metadata__ if isinstance(meta, Meta))
        return _bare(hint.__origin__, metas)
    if get_origin(hint) in {Union, types.UnionType}:
        rest = [one for one in get_args(hint) if one is not types.NoneType]
        return _bare(rest[0], metas)[0], len(rest) < len(get_args(hint))
    return hint, False


def _first(metas: list[Meta], bound: str) -> Any:
    return next((getattr(meta, bound) for meta in metas if getattr(meta, bound) is not None), None)


def _unit(name: str, meaning: str, kind: Any) -> str:
    if kind is int and meaning.startswith("Bytes"):
        return "bytes"
    if kind is float and name.endswith("_minutes"):
        return "minutes"
    return "seconds" if kind is float and (meaning.startswith("Seconds") or "delay" in name) else ""


def _list(text: str) -> Any:
    if text.startswith("["):
        return _literal(text)
    return [piece for piece in (piece.strip() for piece in text.split(",")) if piece]


def _table(text: str) -> Any:
    """JSON, a TOML inline table, or `Name: value` lines as headers are written."""
    if text.startswith("{"):
        return _literal(text)
    table = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not colon or not name.strip():
            raise Refused
        table[name.strip()] = value.strip()
    return table


def _literal(text: str) -> Any:
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError:
        pass  # perhaps it is TOML, which people also write
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        raise Refused("it is neither JSON nor TOML") from None


def _check_text(value: Any) -> None:
    """No setting needs a control character, and in a header or a path one is an attack or an accident."""
    texts = value.items() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
    for text in texts:
        for piece in text if isinstance(text, tuple) else (text,):
            if isinstance(piece, str) and any(ord(sign) < 32 or ord(sign) == 127 for sign in piece):
                raise Refused("it holds a control character")


def _check_nets(nets: tuple[str, ...]) -> None:
    for net in nets:
        try:
            ipaddress.ip_network(net, strict=False)
        except ValueError:
            raise Refused(f"{net!r} is no network such as 10.0.0.0/8 or fd00::/8") from None


def _check_proxy(proxy: str) -> None:
    if not re.match(r"(https?|socks5h?)://[^/]", proxy):
        raise Refused("it must start with http://, https://, socks5:// or socks5h://")


def _check_patterns(patterns: tuple[str, ...]) -> None:
    for pattern in patterns:
        if pattern.startswith("re:"):
            try:
                re.compile(pattern[3:])
            except re.error as error:
                raise Refused(f"{pattern!r} is no regular expression: {error}") from None


CHECKS: dict[str, Callable[[Any], None]] = {
    "allow_net": _check_nets,
    "proxy": _check_proxy,
    "deny": _check_patterns,
}
"""What a type cannot say."""


def as_text(value: Any, unit: str = "") -> str:
    """The value as a person would write it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        whole = unit == "bytes" and value and value % 2**20 == 0
        return f"{value // 2**20} MiB" if whole else _number_text(value)
    if isinstance(value, Mapping):
        value = [f"{name}: {text}" for name, text in value.items()]
    return value if isinstance(value, str) else ", ".join(value) or "empty"


def _number_text(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:g}"


def _fields() -> dict[str, Field]:
    hints = get_type_hints(Settings, include_extras=True)
    defaults = {info.name: info for info in msgspec.structs.fields(Settings)}
    found = {}
    for name, hint in hints.items():
        if name in defaults:
            info = defaults[name]
            default = info.default if info.default is not msgspec.NODEFAULT else info.default_factory()
            found[name] = Field(name, hint, default)
    return found


FIELDS: dict[str, Field] = _fields()

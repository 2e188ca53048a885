"""An item: what a handler took from a page, as the one JSON object that is stored.

Whatever the author likes to write (a dict, a dataclass, a msgspec struct, a pydantic model) is encoded once, here, and
the bytes are what the log, the sinks and the files hold. An item that cannot be stored as it is meant is refused with a
reason, never bent into shape: NaN does not become null, an unknown field does not vanish.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, is_typeddict

import msgspec

from gossamer.model.errors import ItemError, UsageError
from gossamer.model.jsonable import why_not_finite

MAX_ITEM = 1024 * 1024
"""Most bytes of one item; larger values travel as blobs, by reference."""
MAX_ITEM_KEY = 512

REASONS: dict[str, str] = {
    "not_an_item": "What was yielded is no item",
    "not_json": "The item holds a value that JSON cannot express",
    "too_large": "The item is too large",
    "schema": "The item does not fit its schema",
    "key": "The item has no usable key",
}
"""Why an item is refused → what is said. The words on the left are stable: counters are named by them."""

Key = str | Callable[[Any], Any] | None


class InvalidItem(ItemError):  # noqa: N818  (a fact about an item, counted under this name)
    """An item that is not stored; `reason` is one of `REASONS`."""

    def __init__(self, reason: str, detail: str = "", *, hint: str | None = None) -> None:
        super().__init__(f"{REASONS[reason]}: {detail}" if detail else REASONS[reason], hint=hint)
        self.reason = reason


class Item(msgspec.Struct, frozen=True, gc=False):
    """One item as it is stored."""

    data: bytes
    """One JSON object, compact, UTF-8."""
    key: str | None = None
    """What the item is known by over the whole task, if its spider says so: a sink that can updates instead of adding."""


class ItemRules:
    """How the items of a spider (or of one route) become bytes: their schema, key and size. Made once, used per item."""

    def __init__(self, schema: Any = None, key: Key = None, max_bytes: int = MAX_ITEM) -> None:
        self._schema = None if schema is None else _Schema(schema)
        self._key = key
        self._max_bytes = max_bytes

    def item(self, value: Any) -> Item:
        """The item as it will be stored; raises InvalidItem."""
        if self._schema is not None:
            value = self._schema.check(value)
        data = _encode(value)
        if len(data) > self._max_bytes:
            raise InvalidItem(
                "too_large",
                f"{len(data)} bytes, {self._max_bytes} are allowed",
                hint="leave out what is large, or keep bodies with keep_bodies",
            )
        return Item(data) if self._key is None else Item(data, _key_of(value, self._key))


class _Schema:
    """A type that items must fit: checked by msgspec, or by pydantic where it is a pydantic model."""

    def __init__(self, schema: Any) -> None:
        self._schema = schema
        self._name = getattr(schema, "__name__", str(schema))
        self._pydantic = _is_pydantic(schema)
        if self._pydantic:
            return
        try:
            self._decoder = msgspec.json.Decoder(schema)
            fields = msgspec.inspect.type_info(schema).fields  # type: ignore[attr-defined]  # of what has fields
        except (TypeError, AttributeError):
            raise UsageError(
                f"{self._name} cannot be the schema of items",
                hint="give a dataclass, a TypedDict, a msgspec.Struct or a pydantic model",
            ) from None
        self._fields = frozenset(field.encode_name for field in fields)

    def check(self, value: Any) -> Any:
        """The value as the schema knows it, defaults filled in; raises InvalidItem."""
        try:
            return self._pydantic_check(value) if self._pydantic else self._msgspec_check(value)
        except (msgspec.ValidationError, ValueError) as error:
            raise InvalidItem("schema", _one_line(str(error))) from None

    def _pydantic_check(self, value: Any) -> Any:
        return value if isinstance(value, self._schema) else self._schema.model_validate(value)

    def _msgspec_check(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if is_typeddict(self._schema) or not isinstance(value, self._schema):
                raise InvalidItem("schema", f"it is of type {type(value).__name__}, not {self._name}")
            self._decoder.decode(_encode(value))  # Python checked no type when the object was made
            return value
        if unknown := value.keys() - self._fields:
            raise InvalidItem("schema", f"{self._name} has no field {min(map(str, unknown))!r}")
        return _filled(msgspec.convert(value, self._schema))


def _filled(value: Any) -> Any:
    """The converted value with the defaults of its dataclasses in place: the converter leaves them to the class, and what
    is not in the object itself would not be written."""
    if isinstance(value, list | tuple):
        for inner in value:
            _filled(inner)
    elif (fields := getattr(type(value), "__dataclass_fields__", None)) and hasattr(value, "__dict__"):
        for name in fields:
            _filled(value.__dict__.setdefault(name, getattr(value, name)))
    return value


def _encode(value: Any) -> bytes:
    try:
        data = _encoder.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidItem(
            "not_json", _culprit(value, error), hint="yield text, numbers, lists and dicts"
        ) from None
    if not data.startswith(b"{"):
        raise InvalidItem(
            "not_an_item",
            f"it is of type {type(value).__name__}",
            hint="yield a dict, a dataclass, a msgspec.Struct or a pydantic model, or page.follow(...) for links",
        )
    # The encoder writes NaN as null. Only where there is a null at all it is worth looking which of the two it was.
    if b"null" in data and (reason := _not_finite(value)):
        raise InvalidItem("not_json", reason.strip(), hint="yield None where there is no number")
    return data


def _not_finite(value: Any) -> str | None:
    if type(value) is dict and all(type(inner) in _NEVER_NAN for inner in value.values()):
        return None
    return why_not_finite(msgspec.to_builtins(value, enc_hook=_to_dict))


def _culprit(value: Any, error: Exception) -> str:
    """Names the field that cannot be encoded."""
    if isinstance(error, RecursionError):
        return "it is nested too deep or contains itself"
    if isinstance(value, dict):
        for name, inner in value.items():
            try:
                _encoder.encode(inner)
            except (TypeError, ValueError, RecursionError):
                return f"{name!r} is of type {type(inner).__name__} ({_one_line(str(error))})"
    return _one_line(str(error))


def _key_of(value: Any, key: str | Callable[[Any], Any]) -> str:
    if callable(key):
        found = key(value)
    else:
        found = value.get(key) if isinstance(value, dict) else getattr(value, key, None)
    if not isinstance(found, str | int) or isinstance(found, bool) or found == "":
        shown = "it is missing" if found is None else f"{found!r:.100} is neither text nor a whole number"
        raise InvalidItem("key", shown, hint="give every item the field that `key` names")
    text = str(found)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidItem("key", "it holds half a character, which cannot be stored") from None
    if len(text) > MAX_ITEM_KEY:
        raise InvalidItem("key", f"{len(text)} characters, {MAX_ITEM_KEY} are allowed")
    return text


def _to_dict(value: Any) -> Any:
    """What the encoder does not know itself: pydantic models. Raises TypeError for everything else."""
    if _is_pydantic(type(value)):
        return value.model_dump(mode="json")
    raise TypeError("no JSON value")


def _is_pydantic(kind: Any) -> bool:
    """True for a pydantic model class. One can only exist where pydantic was imported, so it is never imported here."""
    pydantic = sys.modules.get("pydantic")
    model = getattr(pydantic, "BaseModel", None)  # absent for a moment while pydantic is being imported
    return model is not None and isinstance(kind, type) and issubclass(kind, model)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:300]


_NEVER_NAN = frozenset({str, int, bool, type(None)})
_encoder = msgspec.json.Encoder(enc_hook=_to_dict)

"""The header fields of an answer: any case, several values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping


class Headers(Mapping[str, str]):
    """Read like a dict that does not mind upper and lower case; of several values the first, `all` gives each."""

    __slots__ = ("_fields", "_index")

    def __init__(self, fields: Iterable[tuple[str, str]] | Mapping[str, str] = ()) -> None:
        self._fields = list(fields.items() if isinstance(fields, Mapping) else fields)
        self._index: dict[str, list[str]] | None = None  # built when first asked: most handlers never ask

    def _values(self) -> dict[str, list[str]]:
        if self._index is None:
            self._index = {}
            for name, value in self._fields:
                self._index.setdefault(name.lower(), []).append(value)
        return self._index

    def __getitem__(self, name: str) -> str:
        return self._values()[name.lower()][0]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values())

    def __len__(self) -> int:
        return len(self._values())

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values()

    def all(self, name: str) -> list[str]:
        """Every value of a field in the order sent, as for Set-Cookie; empty if it was not sent."""
        return list(self._values().get(name.lower(), ()))

    def fields(self) -> list[tuple[str, str]]:
        """All fields as they were sent."""
        return list(self._fields)

    def __repr__(self) -> str:
        return f"<Headers {', '.join(self)}>"  # names only: cookies and tokens are in the values

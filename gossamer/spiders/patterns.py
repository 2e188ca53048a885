"""URL patterns: `/catalogue/{slug}/index.html`, `/list?page={n:int}`, `https://shop.example/{rest:path}`.

A pattern is compared with the canonical URL. A placeholder stands for one segment or a part of it (`{name}`), for digits
(`{name:int}`) or for any number of segments (`{name:path}`). A pattern without a host fits every host; one with a query
asks for these parameters in any order and does not mind others; one without a query does not look at it.

URLs come from strangers, so a pattern must not be made slow by one: what a placeholder may take is bounded, and a segment
holds at most two placeholders that stand for text.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, unquote

from gossamer.model.errors import InvalidURL, SpiderError
from gossamer.model.url import canonical

_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)(?::(\w+))?\}")
_KINDS = {"str": r"[^/]{1,500}", "int": r"[0-9]{1,18}", "path": r".*"}
_RANKS = {"int": 1, "str": 2, "path": 3}
_NO_SEGMENT = (9, 0)
# What the URL parser leaves as it is in a path; everything else in a pattern is encoded as it encodes it.
_SAFE = "!$%&'()*+,-./:;=@[]^_|~\\"

Specificity = tuple[Any, ...]


class Pattern:
    """A pattern, read once and compared with many URLs."""

    def __init__(self, written: str) -> None:
        self.written = written
        self._kinds: dict[str, str] = {}
        origin, path, query = self._split(written)
        self._origin = origin
        self._path = re.compile(self._expression(path), re.DOTALL)
        self._query = self._parameters(query)
        segments = path.strip("/").split("/")
        self.specificity: Specificity = (
            origin is None,
            -len(self._query),
            [_rank(segment) for segment in segments] + [_NO_SEGMENT],
        )
        """Sorts before that of a less specific pattern: with a host, with a query, then segment by segment."""

    @property
    def names(self) -> set[str]:
        """The placeholders."""
        return set(self._kinds)

    def match(self, url: str) -> dict[str, Any] | None:
        """What the placeholders stand for in this URL; None if the pattern does not fit."""
        slash = url.find("/", 8)
        if self._origin is not None and not self._origin.fullmatch(url, 0, slash):
            return None
        path, _, query = url[slash:].partition("?")
        found = self._path.fullmatch(path)
        if found is None:
            return None
        values = found.groupdict()
        if self._query and not self._match_query(query, values):
            return None
        return {
            name: int(text) if self._kinds[name] == "int" else unquote(text) for name, text in values.items()
        }

    def _match_query(self, query: str, values: dict[str, str]) -> bool:
        given: dict[str, str] = {}
        for piece in query.split("&"):
            name, _, value = piece.partition("=")
            given.setdefault(name, value.replace("+", " "))
        for name, expression in self._query:
            found = expression.fullmatch(given[name]) if name in given else None
            if found is None:
                return False
            values.update(found.groupdict())
        return True

    def _split(self, written: str) -> tuple[re.Pattern[str] | None, str, str]:
        head, _, query = written.partition("?")
        if head.startswith("/") and not head.startswith("//"):
            return None, head, query
        scheme, mark, rest = head.partition("://")
        if not mark or scheme not in {"http", "https"} or not rest:
            raise SpiderError(
                f"The pattern {written!r} is neither a path nor a URL",
                hint="begin it with / or with https://",
            )
        host, slash, path = rest.partition("/")
        return self._origin_expression(scheme, host), slash + path if slash else "/", query

    def _origin_expression(self, scheme: str, host: str) -> re.Pattern[str]:
        if "{" in host:
            raise SpiderError(
                f"The pattern {self.written!r} has a placeholder in its host",
                hint="write a pattern without a host and look at page.url in the handler",
            )
        try:
            url = canonical(f"{scheme}://{host}/")
        except InvalidURL as error:
            raise SpiderError(f"The pattern {self.written!r} has no usable host", hint=str(error)) from None
        return re.compile(re.escape(url[:-1]))

    def _parameters(self, query: str) -> list[tuple[str, re.Pattern[str]]]:
        pieces = (piece.partition("=") for piece in query.split("&") if piece)
        # In a value a slash is a character like any other.
        return [
            (name, re.compile(self._expression(value).replace("[^/]", "."), re.DOTALL))
            for name, _, value in pieces
        ]

    def _expression(self, text: str) -> str:
        for segment in text.split("/"):
            self._check_segment(segment)
        parts: list[str] = []
        at = 0
        for found in _PLACEHOLDER.finditer(text):
            parts += [_literal(text[at : found.start()]), self._group(*found.groups())]
            at = found.end()
        if "{" in (rest := "".join(_PLACEHOLDER.split(text)[::3])) or "}" in rest:
            raise SpiderError(
                f"The pattern {self.written!r} has a brace that is no placeholder",
                hint="write {name}, {name:int} or {name:path}",
            )
        return "".join([*parts, _literal(text[at:])])

    def _check_segment(self, segment: str) -> None:
        if "}{" in segment:
            raise SpiderError(
                f"The pattern {self.written!r} has two placeholders with nothing between them",
                hint="put the character between them that tells where one ends",
            )
        if sum(kind != "int" for _, kind in _PLACEHOLDER.findall(segment)) > 2:
            raise SpiderError(
                f"The pattern {self.written!r} has more than two placeholders for text in one segment",
                hint="take the segment whole and cut it in the handler",
            )

    def _group(self, name: str, kind: str | None) -> str:
        kind = kind or "str"
        if kind not in _KINDS:
            raise SpiderError(
                f"{{{name}:{kind}}} is no placeholder", hint=f"the kinds are {', '.join(_KINDS)}"
            )
        if name in self._kinds:
            raise SpiderError(f"The pattern {self.written!r} uses {{{name}}} twice")
        if kind == "path" and "path" in self._kinds.values():
            raise SpiderError(f"The pattern {self.written!r} has more than one placeholder for a path")
        self._kinds[name] = kind
        return f"(?P<{name}>{_KINDS[kind]})"

    def __repr__(self) -> str:
        return f"<Pattern {self.written}>"


def _literal(text: str) -> str:
    return re.escape(quote(text, safe=_SAFE))


def _rank(segment: str) -> tuple[int, int]:
    """Literal before int before text before path; of equals the one with more literal text."""
    kinds = [kind or "str" for _, kind in _PLACEHOLDER.findall(segment)]
    literal = len(_PLACEHOLDER.sub("", segment))
    return (max(_RANKS[kind] for kind in kinds) if kinds else 0, -literal)

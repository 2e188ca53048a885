"""Which handler takes a page: by label, by pattern, or the fallback.

1. A page with a label goes to the routes of that label; a route may ask for a pattern besides.
2. Otherwise the patterns are tried, the most specific first, equals in the order they were written.
3. What is left goes to the route without label and pattern.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import Any

from gossamer.model.errors import SpiderError
from gossamer.model.item import ItemRules
from gossamer.spiders.calling import is_async, name_of
from gossamer.spiders.page import Page
from gossamer.spiders.patterns import Pattern

Handler = Callable[..., Any]


class Route:
    """A handler and what it takes."""

    def __init__(
        self,
        handler: Handler,
        pattern: str | None,
        label: str | None,
        *,
        any_status: bool = False,
        rules: ItemRules | None = None,
    ) -> None:
        self.handler = handler
        self.pattern = None if pattern is None else Pattern(pattern)
        self.label = label
        self.any_status = any_status
        self.rules = rules
        self.is_async = is_async(handler)
        self._passed = _passed_parameters(handler, self.pattern)

    @property
    def name(self) -> str:
        return name_of(self.handler)

    def match(self, url: str) -> dict[str, Any] | None:
        """What the pattern's placeholders stand for; None if the URL does not fit."""
        return {} if self.pattern is None else self.pattern.match(url)

    def call(self, page: Page, params: dict[str, Any]) -> Any:
        """Call the handler with the page and those placeholders that it has parameters for."""
        page.params = params
        if not self._passed:
            return self.handler(page)
        return self.handler(page, **{name: value for name, value in params.items() if name in self._passed})

    def __repr__(self) -> str:
        takes = [f"label={self.label!r}"] if self.label is not None else []
        takes += [self.pattern.written] if self.pattern is not None else []
        return f"<Route {' '.join(takes) or 'fallback'} → {self.name}>"


class Routes:
    """All routes of a spider, in the order in which they are tried."""

    def __init__(self) -> None:
        self._all: list[Route] = []
        self._by_label: dict[str | None, list[Route]] = {}

    def add(self, route: Route) -> None:
        if route.pattern is None and any(r.pattern is None and r.label == route.label for r in self._all):
            taken = "no pattern" if route.label is None else f"the label {route.label!r}"
            raise SpiderError(
                f"{route.name} and another handler both take the pages with {taken}",
                hint="give one of them a pattern",
            )
        self._all.append(route)
        same = self._by_label.setdefault(route.label, [])
        same.append(route)
        # The sort is stable: equals stay in the order they were written. Routes without a pattern come last.
        same.sort(key=lambda r: (r.pattern is None, r.pattern.specificity if r.pattern is not None else ()))

    def find(self, url: str, label: str | None = None) -> tuple[Route, dict[str, Any]] | None:
        """The route that takes this page and what its placeholders stand for; None if no route does."""
        for wanted in (None,) if label is None else (label, None):
            for route in self._by_label.get(wanted, ()):
                params = route.match(url)
                if params is not None:
                    return route, params
        return None

    def check_label(self, label: str | None) -> None:
        """Refuse a label that no handler takes, in a spider that has labels: nearly always it is a misspelt one."""
        if label is None or label in self._by_label or self._by_label.keys() <= {None}:
            return
        known = [known for known in self._by_label if known is not None]
        near = get_close_matches(label, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the labels are {', '.join(map(repr, known[:10]))}"
        raise SpiderError(f"No handler takes the label {label!r}", hint=hint)

    def __iter__(self) -> Iterator[Route]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)


def _passed_parameters(handler: Handler, pattern: Pattern | None) -> frozenset[str]:
    """Which placeholders the handler wants by name. Raises where a call could not succeed."""
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return frozenset()  # a builtin that does not tell
    names = pattern.names if pattern is not None else set()
    positional = [
        p for p in parameters if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL}
    ]
    if not positional:
        raise SpiderError(
            f"The handler {name_of(handler)} takes no page", hint=f"write def {name_of(handler)}(page)"
        )
    others = [p for p in parameters if p is not positional[0] and p.kind is not p.VAR_POSITIONAL]
    for p in others:
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD and p.name not in names:
            raise SpiderError(
                f"The handler {name_of(handler)} has a parameter {p.name!r} that its pattern does not fill",
                hint=f"put {{{p.name}}} into the pattern, or give it a default",
            )
    if any(p.kind is p.VAR_KEYWORD for p in others):
        return frozenset(names)
    return frozenset(p.name for p in others) & names

"""The moments of a crawl at which an author's functions are called besides handling pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from gossamer.model.request import Request

Function = Callable[..., Any]
Moment = Literal["started", "idle", "ended", "failed", "dropped"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A URL that ended FAILED, as `@spider.failed` is told of it."""

    url: str
    code: str
    """Why, by the word that counters and records use: dns, timeout_total, http_503, handler …"""
    detail: str = ""
    """One sentence for people."""
    request: Request
    attempts: int = 1

    @property
    def label(self) -> str | None:
        return self.request.label

    @property
    def meta(self) -> dict[str, Any]:
        return self.request.meta


class Hooks:
    """The functions for each moment, in the order they were written."""

    def __init__(self) -> None:
        self.started: list[Function] = []
        self.idle: list[Function] = []
        self.ended: list[Function] = []
        self.failed: list[Function] = []
        self.dropped: list[Function] = []

    def at(self, moment: Moment) -> list[Function]:
        functions: list[Function] = getattr(self, moment)
        return functions

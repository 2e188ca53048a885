"""Gossamer collects the web: the same spider on a laptop and on a cluster, with every URL accounted for exactly once.

The names here are the author's side. They are loaded when they are first used, so that `gossamer --help` and programs
that need one of them do not wait for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gossamer.model.errors import (
        GossamerError,
        InvalidURL,
        ItemError,
        SettingsError,
        SpiderError,
        UsageError,
    )
    from gossamer.model.request import Request
    from gossamer.model.settings import Settings
    from gossamer.ports.transport import FetchError
    from gossamer.spiders.effects import Effects
    from gossamer.spiders.failing import HandlerFailed
    from gossamer.spiders.follow import Follow
    from gossamer.spiders.hooks import Failure
    from gossamer.spiders.nodes import Node, Nodes
    from gossamer.spiders.page import Page
    from gossamer.spiders.recording import Drop
    from gossamer.spiders.spider import Spider

__version__ = "0.1.0"

__all__ = [
    "Drop",
    "Effects",
    "Failure",
    "FetchError",
    "Follow",
    "GossamerError",
    "HandlerFailed",
    "InvalidURL",
    "ItemError",
    "Node",
    "Nodes",
    "Page",
    "Request",
    "Settings",
    "SettingsError",
    "Spider",
    "SpiderError",
    "UsageError",
    "__version__",
]

_HOMES = {
    "Drop": "spiders.recording",
    "Effects": "spiders.effects",
    "Failure": "spiders.hooks",
    "FetchError": "ports.transport",
    "Follow": "spiders.follow",
    "GossamerError": "model.errors",
    "HandlerFailed": "spiders.failing",
    "InvalidURL": "model.errors",
    "ItemError": "model.errors",
    "Node": "spiders.nodes",
    "Nodes": "spiders.nodes",
    "Page": "spiders.page",
    "Request": "model.request",
    "Settings": "model.settings",
    "SettingsError": "model.errors",
    "Spider": "spiders.spider",
    "SpiderError": "model.errors",
    "UsageError": "model.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'gossamer' has no attribute {name!r}")
    value = getattr(import_module(f"gossamer.{_HOMES[name]}"), name)
    globals()[name] = value  # found at once the next time
    return value


def __dir__() -> list[str]:
    return sorted(__all__)

"""Which rule of a task would refuse a URL: the same rules that the crawl asks, asked once more for `gossamer explain`.

The crawl counts what it leaves out instead of storing it, so the answer is worked out from the task's own settings.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from gossamer.model.errors import SettingsError
from gossamer.model.robots import RobotsRules
from gossamer.model.scope import Boundary, Scope
from gossamer.model.settings import Settings
from gossamer.model.task import TaskSpec
from gossamer.model.traps import TrapLimits, trap
from gossamer.model.url import UrlOptions


class Rules(NamedTuple):
    """What a task allows, as far as its stored spec tells."""

    settings: Settings
    hosts: tuple[str, ...]
    """Hosts of the seeds, as scope entries; empty where the spec does not hold them."""


def rules_of(spec: TaskSpec) -> Rules:
    """From the stored spec: `{"settings": {…}, "hosts": […]}`, or the settings alone.

    Written by another version it may hold more or less; what cannot be read is taken as not said.
    """
    try:
        document = msgspec.json.decode(spec.settings or b"{}")
    except msgspec.DecodeError:
        document = {}
    document = document if isinstance(document, dict) else {}
    inner = document.get("settings")
    hosts = document.get("hosts")
    return Rules(
        _settings(inner if isinstance(inner, dict) else document),
        tuple(host for host in hosts if isinstance(host, str)) if isinstance(hosts, list) else (),
    )


def url_options(settings: Settings) -> UrlOptions | None:
    """How the crawl reads URLs; None where the task changes nothing about them, which is the quicker way."""
    options = UrlOptions(
        sort_query=settings.sort_query,
        drop_params=settings.drop_params,
        allow_ports=frozenset(settings.allow_ports),
    )
    return None if options == UrlOptions() else options


def refusal(rules: Rules, url: str, host: str, robots: bytes | None) -> str | None:
    """The code by which the crawl would leave this canonical URL out, or None.

    The depth is not asked: where a URL that was never found lies, nobody knows.
    """
    settings = rules.settings
    scope = Scope(
        allow=settings.allow, deny=settings.deny, same_site=settings.same_site, hosts=rules.hosts or ("*",)
    )
    try:
        code = Boundary(scope).refusal(url, host, 0)
    except SettingsError:
        code = None  # a scope that no crawl could have been started with says nothing
    if code is not None:
        return code
    limits = TrapLimits(
        segments=settings.max_segments, repeats=settings.max_repeats, parameters=settings.max_params
    )
    code = trap(url, limits)
    if code is not None:
        return code
    return "robots" if settings.robots and not robots_allow(robots, url, settings.user_agent) else None


def robots_allow(robots: bytes | None, url: str, user_agent: str) -> bool:
    """What the stored rules say; unknown rules forbid nothing yet."""
    if not robots:
        return True
    return RobotsRules(robots.decode("utf-8", "replace")).allowed(url, user_agent)


def _settings(values: dict[str, Any]) -> Settings:
    from gossamer.services.settings import convert
    from gossamer.services.values import FIELDS

    read = {}
    for name, value in values.items():
        if name in FIELDS:
            try:
                read[name] = convert(name, value, "the stored task")
            except SettingsError:
                continue
    return Settings(**read)

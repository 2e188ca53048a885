"""One task as one worker holds it: its spider and settings, made ready once and asked for every page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gossamer.crawling.knowing import Known
from gossamer.crawling.middlewares import Chain, plan
from gossamer.crawling.outlinks import Outlinks
from gossamer.model.pace import Pace
from gossamer.model.scope import Boundary, Scope
from gossamer.model.settings import Settings
from gossamer.model.task import TaskSpec
from gossamer.ports.cache import AnswerCache
from gossamer.ports.transport import Caps, Deadlines
from gossamer.spiders.effects import Effects
from gossamer.spiders.spider import Spider

_HOST = re.compile(r"[a-z0-9.-]+(:[0-9]+)?")


def named(allow: Sequence[str]) -> tuple[str, ...]:
    """The origins of hosts that a scope names in full: where no seed tells, the crawl is at home there."""
    hosts = [entry for entry in allow if _HOST.fullmatch(entry)]
    return tuple(f"{scheme}://{host}" for host in hosts for scheme in ("https", "http"))


class Runtime:
    """What visits of one task share."""

    def __init__(
        self,
        spec: TaskSpec,
        spider: Spider,
        settings: Settings,
        *,
        incarnation: str = "",
        hosts: tuple[str, ...] = (),
        home: tuple[str, ...] = (),
        cache: AnswerCache | None = None,
    ) -> None:
        self.spec = spec
        self.name = spec.name
        self.spider = spider
        self.settings = settings
        self.pace = Pace(settings, spec.wish)
        scope = Scope(
            allow=settings.allow,
            deny=settings.deny,
            depth=settings.depth,
            same_site=settings.same_site,
            hosts=hosts,
        )
        self.outlinks = Outlinks(settings, Boundary(scope), Known(incarnation))
        self.chain: Chain = plan(settings, spider, cache, home or named(settings.allow))
        self.drops: dict[
            int, Effects
        ] = {}  # lease number → what the author's hook is told when it is settled
        self.private = frozenset(settings.private_hosts)
        self.deadlines = Deadlines(
            connect=settings.connect_timeout,
            header=settings.header_timeout,
            total=settings.timeout,
            min_rate=settings.min_rate,
        )
        self.caps = Caps(wire=settings.max_body, decoded=settings.max_body)

    def is_private(self, host: str) -> bool:
        """True for a host that was named at the keyboard: it may be dialled where it is not public."""
        return bool(self.private) and host.rpartition(":")[0] in self.private

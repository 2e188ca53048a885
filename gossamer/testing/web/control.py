"""The back door of a running origin, on a port of its own that no crawled page links to.

GET /__origin__/log        the log as JSON lines, open visits included
GET /__origin__/log/clear  forget the log (a log file keeps its lines)
GET /__origin__/reset      forget how often pages were asked: flaky pages fail again
GET /__origin__/hits       how many requests arrived, by URL, as JSON
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from gossamer.testing.web.origin import Origin
from gossamer.testing.web.reply import Reply, Request, plain, respond

ROOT = "/__origin__"


class Control:
    """Serves what an origin knows about itself."""

    addresses = ("127.0.0.1",)
    counted = False

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.hosts: list[str] = []
        self.seeds: list[str] = []

    def bind(self, hosts: Sequence[str], scheme: str = "http") -> None:
        self.hosts = list(hosts)
        self.seeds = [f"{scheme}://{host}{ROOT}" for host in hosts]

    def answer(self, request: Request, attempt: int) -> Reply:  # noqa: ARG002 - asked for by the protocol
        log = self._origin.log
        match request.target.removeprefix(ROOT):
            case "/log":
                return respond(200, "".join(f"{line}\n" for line in log.lines()), "application/x-ndjson")
            case "/log/clear":
                log.clear()
            case "/reset":
                self._origin.reset()
            case "/hits":
                return respond(200, json.dumps(log.hits_by_url()), "application/json")
            case _:
                return plain(404, __doc__ or "")
        return plain(200, "done\n")

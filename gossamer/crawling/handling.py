"""Running the author's code on a page, and turning what it asked for into an outcome.

A handler that raises, or waits longer than its soft limit, leaves nothing behind: the page ends FAILED with the reason, and
the author's failure handler is told. A suspect's handler runs in a child process (`isolation`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.crawling.isolation import ChildDied, ChildFault, Fetch, in_child
from gossamer.crawling.outlinks import Refusals
from gossamer.crawling.pulse import Pulse
from gossamer.model import retry
from gossamer.model.host import HostView
from gossamer.model.record import Grant, Link, Outcome, Verdict
from gossamer.model.request import Request
from gossamer.ports.transport import Answer
from gossamer.spiders.effects import Effects
from gossamer.spiders.failing import HandlerFailed
from gossamer.spiders.follow import Follow
from gossamer.spiders.handling import handle_now
from gossamer.spiders.hooks import Failure
from gossamer.spiders.page import Page

if TYPE_CHECKING:
    from gossamer.crawling.runtime import Runtime
    from gossamer.crawling.visit import Visits

log = logging.getLogger("gossamer")

SAMPLE = 300  # characters of an example that is kept


class Handling:
    """The author's side of a visit, for all tasks of a worker."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._one_child = (
            asyncio.Lock()
        )  # suspects are handled one at a time: the death is then certainly that one's

    async def handle(
        self, visits: Visits, grant: Grant, view: HostView, request: Request, answer: Answer, outcome: Outcome
    ) -> Outcome:
        """The outcome with the handler's effects, or FAILED when the handler failed."""
        if not 200 <= answer.status < 300 and not self._wanted(visits, request, answer):
            return outcome
        if grant.suspect:
            return await self._handle_suspect(visits, grant, view, request, answer, outcome)
        return await self.handle_here(visits, grant, view, request, answer, outcome, None)

    async def failed(
        self, visits: Visits, grant: Grant, request: Request, outcome: Outcome, detail: str
    ) -> None:
        """Tell the author's failure handler; what it asks for settles with the failure."""
        spider = visits.runtime.spider
        if outcome.verdict is not Verdict.FAILED:
            return
        outcome.samples = [*outcome.samples, (f"failed:{outcome.code}", request.url[:SAMPLE])]
        if not spider.hooks.failed:
            return
        failure = Failure(
            url=request.url, code=outcome.code, detail=detail, request=request, attempts=grant.retries + 1
        )
        try:
            async with asyncio.timeout(visits.runtime.settings.handler_soft):
                effects = await spider.call("failed", failure, base=request.url)
        except (HandlerFailed, TimeoutError) as error:
            log.warning("the failure handler failed on %s: %s", request.url, error)
            outcome.counts = {**outcome.counts, "failure_handler_errors": 1}
            return
        conclude(visits.runtime, grant, effects, outcome)

    async def handle_here(
        self,
        visits: Visits,
        grant: Grant,
        view: HostView,
        request: Request,
        answer: Answer,
        outcome: Outcome,
        ask: Fetch | None,
    ) -> Outcome:
        runtime = visits.runtime
        page = self._page(visits, grant, view, request, answer, ask)
        try:
            self._pulse.enter(request.url)
            try:
                effects = handle_now(runtime.spider, page)
            finally:
                self._pulse.leave()
            if not isinstance(effects, Effects):
                async with asyncio.timeout(runtime.settings.handler_soft):
                    effects = await effects
            self._pulse.enter(request.url)
            try:
                return conclude(runtime, grant, effects, outcome)
            finally:
                self._pulse.leave()
        except HandlerFailed as error:
            return await self._give_up(visits, grant, request, outcome, "handler_error", str(error))
        except TimeoutError:
            limit = f"the handler took longer than handler_soft ({runtime.settings.handler_soft:g} s)"
            return await self._give_up(visits, grant, request, outcome, "handler_timeout", limit)

    async def _give_up(
        self, visits: Visits, grant: Grant, request: Request, outcome: Outcome, code: str, detail: str
    ) -> Outcome:
        log.error("%s %s: %s", code, request.url, detail)
        failed = Outcome(grant.number, Verdict.FAILED, code, host=outcome.host)
        await self.failed(visits, grant, request, failed, detail)
        return failed

    async def _handle_suspect(
        self, visits: Visits, grant: Grant, view: HostView, request: Request, answer: Answer, outcome: Outcome
    ) -> Outcome:
        async def work(ask: Fetch) -> Outcome:
            return await self.handle_here(visits, grant, view, request, answer, outcome, ask)

        async def fetch(data: bytes) -> Answer:
            return await visits.beside(msgspec.json.decode(data, type=Request), grant, view)

        async with self._one_child:
            try:
                return await in_child(work, fetch, visits.runtime.settings.handler_hard)
            except ChildFault as error:
                return await self._give_up(visits, grant, request, outcome, "handler_error", str(error))
            except ChildDied as error:
                decision = retry.crashed(grant.crashes)
                log.error(
                    "a child process died over %s (%d of %d): %s",
                    request.url,
                    grant.crashes + 1,
                    retry.MAX_CRASHES,
                    error,
                )
                if decision.verdict is Verdict.FAILED:
                    return await self._give_up(
                        visits, grant, request, outcome, decision.code, "it ends its process every time"
                    )
                return Outcome(
                    grant.number, Verdict.RETRY, decision.code, priority=grant.priority + decision.step, burned=False,
                    crashed=True, host=outcome.host,
                )  # fmt: skip

    def _wanted(self, visits: Visits, request: Request, answer: Answer) -> bool:
        """Whether a handler asked for answers other than 2xx; known without a page where none does."""
        spider = visits.runtime.spider
        if request.any_status:
            return True
        return any(route.any_status for route in spider.routes) and spider.wants(
            self._read(visits, request, answer, None)
        )

    def _page(
        self,
        visits: Visits,
        grant: Grant,
        view: HostView,
        request: Request,
        answer: Answer,
        ask: Fetch | None,
    ) -> Page:
        async def fetch(wanted: Request) -> Page:
            if ask is not None:
                got = await ask(msgspec.json.encode(wanted))
            else:
                got = await visits.beside(wanted, grant, view)
            return self._read(visits, wanted, got, None)

        return self._read(visits, request, answer, fetch)

    def _read(self, visits: Visits, request: Request, answer: Answer, fetch: Any) -> Page:
        return Page(
            request,
            status=answer.status,
            headers=answer.headers,
            body=answer.body,
            fetch=fetch,
            url_options=visits.runtime.outlinks.options,
            max_links=visits.runtime.settings.max_links,
        )


def conclude(runtime: Runtime, grant: Grant, effects: Effects, outcome: Outcome) -> Outcome:
    """Put what was asked for into the outcome."""
    refusals = Refusals()
    depth = grant.depth + 1
    links: list[Link] = []
    for wanted in effects.follows:
        if isinstance(wanted, Follow):
            links += runtime.outlinks.of_follow(wanted, depth, refusals)
        else:
            links += runtime.outlinks.of_request(wanted, depth, refusals)
    outcome.links = [*outcome.links, *links]
    outcome.items = [item.data for item in effects.items]
    if effects.dropped and runtime.spider.hooks.dropped:
        runtime.drops[grant.number] = effects
    for cause, n in effects.refused.items():
        refusals.counts[f"refused:{cause}"] += n
    if effects.counts or refusals.counts:
        outcome.counts = {**outcome.counts, **effects.counts, **refusals.counts}
        outcome.samples = [*outcome.samples, *effects.samples, *refusals.samples]
    return outcome

"""Running the author's code on a page, and turning what it asked for into an outcome.

A handler that raises, or waits longer than its soft limit, leaves nothing behind: the page ends FAILED with the reason, and
the author's failure handler is told. A suspect's handler runs in a child process (`isolation`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import msgspec

from gossamer.crawling.isolation import ChildDied, ChildFault, Fetch, in_child
from gossamer.crawling.outlinks import Refusals
from gossamer.crawling.pulse import Pulse
from gossamer.model import retry
from gossamer.model.host import HostView
from gossamer.model.record import Grant, Link, Outcome, Verdict
from gossamer.model.request import Request
from gossamer.ports.transport import Answer, FetchError
from gossamer.spiders.effects import Effects
from gossamer.spiders.failing import HandlerFailed
from gossamer.spiders.follow import Follow
from gossamer.spiders.handling import handle_now
from gossamer.spiders.hooks import Failure
from gossamer.spiders.page import Page
from gossamer.spiders.parsing import PageTooDeep

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
        is_page = 200 <= answer.status < 300 and outcome.verdict is Verdict.DONE
        if not is_page and not self._wanted(visits, request, answer):
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
        told = " ".join(f"{request.url} {detail}".split())
        outcome.samples = [*outcome.samples, (f"failed:{outcome.code}", told[:SAMPLE])]
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
        limit = SoftLimit(runtime.settings.handler_soft)
        page = self._page(visits, grant, view, request, answer, ask, limit)
        try:
            self._pulse.enter(request.url)
            try:
                effects = handle_now(runtime.spider, page)
            finally:
                self._pulse.leave()
            if not isinstance(effects, Effects):
                async with limit:
                    effects = await effects
            self._pulse.enter(request.url)
            try:
                return conclude(runtime, grant, effects, outcome)
            finally:
                self._pulse.leave()
        except HandlerFailed as error:
            unanswered = fetch_error_in(error.__cause__)
            if unanswered is not None:  # as if the page itself had failed so: it may be tried again
                visited = await visits.failed(grant, view, request, unanswered.code, unanswered.detail)
                return visited.outcome
            code = "parse_error" if isinstance(error.__cause__, PageTooDeep) else "handler_error"
            return await self._give_up(visits, grant, request, outcome, code, str(error))
        except asyncio.CancelledError:
            if asyncio.current_task().cancelling():  # type: ignore[union-attr]  # we are a task
                raise
            told = "the handler waited for a task that was cancelled"
            return await self._give_up(visits, grant, request, outcome, "handler_error", told)
        except TimeoutError:
            told = f"the handler took longer than handler_soft ({runtime.settings.handler_soft:g} s)"
            return await self._give_up(visits, grant, request, outcome, "handler_timeout", told)

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
        limit: SoftLimit,
    ) -> Page:
        async def fetch(wanted: Request) -> Page:
            with limit.suspended():
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
            truncated=answer.truncated,
            fetch=fetch,
            url_options=visits.runtime.outlinks.options,
            max_links=visits.runtime.settings.max_links,
        )


class SoftLimit:
    """The time that a handler may take for itself: what it waits for in `page.fetch` does not count, that has its own limits."""

    def __init__(self, seconds: float) -> None:
        self._timeout = asyncio.timeout(seconds)
        self._seconds = seconds
        self._left = seconds
        self._waiting = 0

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, trace)

    @contextlib.contextmanager
    def suspended(self) -> Iterator[None]:
        """The clock stands still; any number of waits may overlap."""
        now = asyncio.get_running_loop().time
        if self._waiting == 0:
            due = self._timeout.when()
            self._left = self._seconds if due is None else due - now()
            self._move(None)
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if self._waiting == 0:
                self._move(now() + self._left)

    def _move(self, when: float | None) -> None:
        with contextlib.suppress(
            RuntimeError
        ):  # a wait that its handler left behind, when the time is over already
            self._timeout.reschedule(when)


def fetch_error_in(error: BaseException | None) -> FetchError | None:
    """The failed exchange that a handler let pass, also out of a group of tasks."""
    if isinstance(error, BaseExceptionGroup):
        return next((found for inner in error.exceptions if (found := fetch_error_in(inner))), None)
    return error if isinstance(error, FetchError) else None


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
    outcome.items = [*outcome.items, *effects.items]
    if effects.dropped and runtime.spider.hooks.dropped:
        before = runtime.drops.setdefault(grant.number, effects)
        if before is not effects:
            before.dropped.extend(effects.dropped)
    for cause, n in effects.refused.items():
        refusals.counts[f"refused:{cause}"] += n
    if effects.counts or refusals.counts:
        outcome.counts = dict(Counter(outcome.counts) + Counter(effects.counts) + refusals.counts)
        outcome.samples = [*outcome.samples, *effects.samples, *refusals.samples]
    return outcome

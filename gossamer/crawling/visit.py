"""One lease, from the grant to the outcome: fetch, redirect or handle, and the verdict with all its consequences.

Nothing is written here. A visit ends with an `Outcome`, whatever happened: an answer, a fault of the host, a mistake in the
handler. Only what ends the whole worker (the store is gone) is an exception.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import NamedTuple

import msgspec

from gossamer.crawling.beside import Beside, fetch_beside
from gossamer.crawling.handling import Handling
from gossamer.crawling.outlinks import Refusals
from gossamer.crawling.rules import Rules, learn
from gossamer.crawling.runtime import Runtime
from gossamer.model import retry
from gossamer.model.errors import InvalidURL
from gossamer.model.host import HostOrder, HostView
from gossamer.model.order import own_of
from gossamer.model.parking import parse_retry_after
from gossamer.model.record import REDIRECTED, Grant, Outcome, Verdict
from gossamer.model.redirects import MAX_HOPS, Redirect, follow
from gossamer.model.request import Request, decode
from gossamer.model.robots import MAX_BYTES
from gossamer.ports.transport import Answer, Caps, Exchange, FetchError, Transport

REDIRECTS = frozenset({301, 302, 303, 307, 308})
RETRY_AFTER_STATUSES = frozenset({429, 503})
# One byte more than is read, so that a file of just this size is known from the beginning of a longer one.
ROBOTS_CAPS = Caps(wire=MAX_BYTES + 1, decoded=MAX_BYTES + 1, cut=True)


class Visited(NamedTuple):
    """What is to be settled, when its request went out, and the body to keep."""

    outcome: Outcome
    sent_at: float | None = None
    body: bytes | None = None


class Visits:
    """Makes visits of one task for one worker."""

    def __init__(self, runtime: Runtime, transport: Transport, rules: Rules, handling: Handling) -> None:
        self.runtime = runtime
        self.transport = transport
        self.rules = rules
        self.handling = handling
        self.besides: dict[int, Beside] = {}  # lease number → what its handler fetches by `page.fetch`
        self._random = random.Random()  # noqa: S311  (jitter, no secret)

    async def robots(self, grant: Grant, view: HostView) -> Visited:
        """Learn a host's rules for all tasks."""
        runtime = self.runtime
        exchange = Exchange(
            grant.url,
            headers=runtime.chain.headers_of_robots,
            proxy=runtime.settings.proxy,
            deadlines=runtime.deadlines,
            caps=ROBOTS_CAPS,
            allow_private=runtime.is_private(grant.host),
            verify_tls=runtime.settings.verify_tls,
            http_version=runtime.settings.http_version,
            gap=runtime.pace.gap(view),
        )
        order, sent_at = await learn(
            exchange,
            view,
            runtime.pace,
            self.transport,
            self._random.random(),
            time.time(),
            runtime.is_private,
        )
        if sent_at is None:
            sent_at = time.monotonic()
        return Visited(Outcome(grant.number, Verdict.DONE, host=order), sent_at)

    async def page(self, grant: Grant, view: HostView) -> Visited:
        """Fetch a page and have it handled."""
        runtime = self.runtime
        if runtime.outlinks.is_trap(grant.url):
            return Visited(Outcome(grant.number, Verdict.SKIPPED, "trap"))
        if runtime.settings.robots and grant.host:
            rules = self.rules.known(view) or await self.rules.of(view)
            if not rules.allowed(grant.url, runtime.settings.user_agent):
                return Visited(Outcome(grant.number, Verdict.SKIPPED, "robots"))
        own = own_of(runtime.settings.order, grant.depth, grant.priority)
        request = decode(grant.url, grant.request, depth=grant.depth, priority=own)
        try:
            answer = await self.fetch(request, grant.host, self.runtime.pace.gap(view))
            if answer.status in REDIRECTS:
                answer = await self._with_its_cookie(request, grant.host, view, answer)
        except FetchError as error:
            return await self.failed(grant, view, request, error.code, error.detail)
        try:
            visited = await self.answered(grant, view, request, answer)
        finally:
            beside = self.besides.pop(grant.number, None)
        outcome = visited.outcome
        outcome.counts = {**outcome.counts, "bytes": answer.wire_bytes}
        if answer.truncated:
            outcome.counts["truncated"] = 1
            outcome.samples = [*outcome.samples, ("truncated", request.url[:500])]
        return visited if beside is None else beside.settled_with(visited)

    async def _with_its_cookie(self, request: Request, host: str, view: HostView, answer: Answer) -> Answer:
        """A redirect to itself that set a cookie is repeated in place, once, after the host's delay: the cookie is what it was
        about."""
        if (
            not self.runtime.settings.cookies
            or "cookies" in request.without
            or answer.header("set-cookie") is None
        ):
            return answer
        try:
            hop = self._hop(request, answer)
        except InvalidURL:
            return answer
        if hop is None or not hop.to_itself:
            return answer
        gap = self.runtime.pace.gap(view)
        await asyncio.sleep(gap)
        return await self.fetch(request, host, gap)

    def _hop(self, request: Request, answer: Answer) -> Redirect | None:
        headers = tuple(request.headers.items())
        location = answer.header("location")
        return follow(
            answer.status,
            request.method,
            headers,
            request.body,
            request.url,
            location,
            options=self.runtime.outlinks.options,
        )

    async def fetch(self, request: Request, host: str, gap: float) -> Answer:
        """One exchange through the middlewares, with a host that wants such a gap between two requests."""
        chain = self.runtime.chain
        if chain.quick:
            answer = await self.transport.send(self.exchange(request, chain.headers_for(request), host, gap))
            chain.notice(request, answer)
            return answer

        async def send(changed: Request) -> Answer:
            return await self.transport.send(
                self.exchange(changed, tuple(changed.headers.items()), host, gap)
            )

        return await chain.send(request, send)

    def exchange(
        self, request: Request, headers: tuple[tuple[str, str], ...], host: str, gap: float
    ) -> Exchange:
        runtime, settings = self.runtime, self.runtime.settings
        return Exchange(
            request.url,
            request.method,
            headers,
            request.body,
            request.proxy or settings.proxy,
            runtime.deadlines,
            runtime.caps,
            runtime.is_private(host),
            settings.verify_tls,
            settings.http_version,
            gap,
        )

    async def answered(self, grant: Grant, view: HostView, request: Request, answer: Answer) -> Visited:
        if answer.status in REDIRECTS:
            moved = self.redirected(grant, view, request, answer)
            if moved is not None:
                if moved.outcome.verdict is Verdict.FAILED:
                    await self.handling.failed(self, grant, request, moved.outcome, f"HTTP {answer.status}")
                return moved
        code = retry.code_of(answer.status)
        after = asked_to_wait(answer)
        order = self.order_after(view, code, answer.latency, answer, retries=grant.retries)
        decision = retry.decide(
            code, grant.retries, self.runtime.settings, self._random.random(), retry_after=after, order=order
        )
        if decision.verdict is Verdict.RETRY:
            return Visited(again(grant, decision, order), answer.sent_at)
        outcome = Outcome(grant.number, decision.verdict, decision.code, host=order)
        body = answer.body if self.runtime.settings.keep_bodies and not code else None
        # An author may want what is no page, too: a 404 is one answer, a 500 is one after its last attempt.
        outcome = await self.handling.handle(self, grant, view, request, answer, outcome)
        told = any(name == f"failed:{outcome.code}" for name, _ in outcome.samples)
        if decision.verdict is Verdict.FAILED and outcome.code == decision.code and not told:
            await self.handling.failed(self, grant, request, outcome, f"HTTP {answer.status}")
        return Visited(outcome, answer.sent_at, body if outcome.verdict is Verdict.DONE else None)

    def order_after(
        self, view: HostView, code: str, latency: float, answer: Answer | None, *, retries: int = 0
    ) -> HostOrder | None:
        """What the end of one exchange means for its host."""
        after = None if answer is None else asked_to_wait(answer)
        rand = self._random.random()
        return self.runtime.pace.after(view, code, latency, rand, retries=retries, retry_after=after)

    def redirected(self, grant: Grant, view: HostView, request: Request, answer: Answer) -> Visited | None:
        """A redirect is a link: the target is pushed, and this record is done. None if it leads nowhere."""
        pace = self.runtime.pace
        order = pace.after(view, "", answer.latency, self._random.random(), retries=grant.retries)
        try:
            hop = self._hop(request, answer)
        except InvalidURL as error:
            return Visited(Outcome(grant.number, Verdict.FAILED, error.reason, host=order), answer.sent_at)
        if hop is None:
            return None
        if hop.to_itself:
            return Visited(Outcome(grant.number, Verdict.FAILED, "redirect_loop", host=order), answer.sent_at)
        if grant.hops >= MAX_HOPS:
            return Visited(
                Outcome(grant.number, Verdict.FAILED, "redirect_limit", host=order), answer.sent_at
            )
        target = request.changed(
            url=hop.url, method=hop.method, headers=dict(hop.headers), key=None,
            body=None if hop.drop_body else request.body,
            cookies=request.cookies if same_origin(hop.url, request.url) else {},
        )  # fmt: skip
        refusals = Refusals()
        links = self.runtime.outlinks.of_request(target, grant.depth, refusals, hops=grant.hops + 1)
        # The grant's priority holds the depth already; read as the author's own, it would grow a thousandfold a hop.
        links = [msgspec.structs.replace(link, priority=grant.priority) for link in links]
        outcome = Outcome(
            grant.number, Verdict.DONE, REDIRECTED, links=links, counts=dict(refusals.counts), samples=refusals.samples,
            host=order,
        )  # fmt: skip
        return Visited(outcome, answer.sent_at)

    async def failed(self, grant: Grant, view: HostView, request: Request, code: str, detail: str) -> Visited:
        """There was no answer: the host's pace, the page's budget, and at the end the author's failure handler."""
        now = time.monotonic()
        order = self.order_after(view, code, 0.0, None, retries=grant.retries)
        decision = retry.decide(
            code, grant.retries, self.runtime.settings, self._random.random(), order=order
        )
        if decision.verdict is Verdict.RETRY:
            return Visited(again(grant, decision, order), now)
        outcome = Outcome(grant.number, decision.verdict, decision.code, host=order)
        await self.handling.failed(self, grant, request, outcome, detail)
        return Visited(outcome, now)

    async def beside(self, request: Request, grant: Grant, view: HostView) -> Answer:
        """`page.fetch`: another exchange in the slot that this page holds, after the host's delay, within robots."""
        return await fetch_beside(self, request, grant, view)


def again(grant: Grant, decision: retry.Decision, order: object) -> Outcome:
    return Outcome(
        grant.number,
        Verdict.RETRY,
        decision.code,
        delay=decision.delay,
        priority=grant.priority + decision.step,
        burned=decision.burned,
        crashed=decision.crashed,
        host=order,  # type: ignore[arg-type]
    )


def asked_to_wait(answer: Answer) -> float | None:
    """Seconds of a Retry-After, where the status gives it a meaning."""
    if answer.status not in RETRY_AFTER_STATUSES:
        return None
    return parse_retry_after(answer.header("retry-after"), time.time())


def same_origin(one: str, other: str) -> bool:
    from gossamer.model.url import origin_of

    return origin_of(one).prefix == origin_of(other).prefix

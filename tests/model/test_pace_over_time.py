"""Whole crawls of one host, played on its row with a clock that jumps: who waits, who ends, and when."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable

from gossamer.model import hostrow
from gossamer.model.host import HostOrder
from gossamer.model.hostrow import HostRow
from gossamer.model.pace import Pace, wish_of
from gossamer.model.record import Verdict
from gossamer.model.retry import decide
from gossamer.model.settings import Settings

Server = Callable[[int, float], tuple[str, float | None]]
"""(page, time) → (cause, Retry-After)"""
LATENCY = 0.05


class Play:
    """One task on one host: leases as the store would, settles as the worker would."""

    def __init__(self, pages: int, server: Server, **settings: object) -> None:
        self.settings = Settings(**settings)  # type: ignore[arg-type]
        self.wish = wish_of(self.settings)
        self.pace = Pace(self.settings, self.wish)
        self.server = server
        self.row = HostRow(name="h.example")
        self.rand = random.Random(5)
        self.now = 0.0
        self.queue = [(0, page, 0) for page in range(pages)]  # (-priority, page, burned attempts)
        self.later: list[tuple[float, int, int, int]] = []  # due again at
        self.open: list[tuple[float, int, int, int, object]] = []  # answers at
        self.ended: dict[int, tuple[str, float]] = {}
        self.sent: list[tuple[float, int]] = []

    def run(self, until: float = 20_000.0) -> Play:
        while self.now < until and (self.queue or self.later or self.open):
            self._lease()
            moments = [self.open[0][0]] if self.open else []
            moments += [self.later[0][0]] if self.later else []
            if self.queue and self._free():
                moments.append(max(hostrow.ready_from(self.row, self.now), self.now))
            self.now = min(moments)
            while self.later and self.later[0][0] <= self.now:
                _, sunk, page, retries = heapq.heappop(self.later)
                heapq.heappush(self.queue, (sunk, page, retries))
            while self.open and self.open[0][0] <= self.now:
                self._settle(*heapq.heappop(self.open)[1:])
        return self

    def _asking(self) -> list[tuple[object, float]]:
        return [(self.wish, self.wish.first_delay)]

    def _free(self) -> int:
        return hostrow.free_slots(self.row, self._asking())  # type: ignore[arg-type]

    def _lease(self) -> None:
        free = self._free() if hostrow.ready_from(self.row, self.now) <= self.now else 0
        for _ in range(min(free, len(self.queue))):
            sunk, page, retries = heapq.heappop(self.queue)
            self.row.open += 1
            self.sent.append((self.now, page))
            lease = (self.now + LATENCY, sunk, page, retries, hostrow.view(self.row, self.now))
            heapq.heappush(self.open, lease)

    def _settle(self, sunk: int, page: int, retries: int, view: object) -> None:
        code, after = self.server(page, self.now)
        rand = self.rand.random()
        order: HostOrder | None = self.pace.after(
            view, code, LATENCY, rand, retries=retries, retry_after=after
        )  # type: ignore[arg-type]
        decision = decide(code, retries, self.settings, rand, after, order)
        self.row.open -= 1
        hostrow.obey(self.row, order, LATENCY, self.now)
        if decision.verdict is Verdict.RETRY:
            entry = (sunk - decision.step, page, retries + decision.burned)
            if decision.delay > 0:
                heapq.heappush(self.later, (self.now + decision.delay, *entry))
            else:
                heapq.heappush(self.queue, entry)
        else:
            self.ended[page] = (decision.code, self.now)
        if order is not None and order.give_up:
            for entry in [*self.queue, *(late[1:] for late in self.later)]:
                self.ended[entry[1]] = (order.give_up, self.now)
            self.queue, self.later = [], []

    def codes(self) -> set[str]:
        return {code for code, _ in self.ended.values()}

    def asked(self, page: int) -> list[float]:
        return [moment for moment, asked in self.sent if asked == page]


def well(page: int, now: float) -> tuple[str, float | None]:
    return "", None


def test_one_page_that_answers_503_for_ever_holds_up_nobody():
    """It is asked retries + 1 times and ends FAILED(http_503); the host is never parked and no later for it."""
    healthy = Play(300, well).run()
    broken = Play(300, lambda page, _: ("http_503" if page == 3 else "", None)).run()
    assert broken.ended[3][0] == "http_503"
    assert len(broken.asked(3)) == 5
    assert broken.row.parked_until == 0
    assert len(broken.ended) == 300
    others = max(moment for page, (_, moment) in broken.ended.items() if page != 3)
    assert others <= max(moment for _, moment in healthy.ended.values()) * 1.1 + 0.5


def test_a_broken_page_alone_on_its_host_ends_within_its_budget():
    """Nothing else answers in between, and still its five attempts take seconds, not the host's patience."""
    play = Play(1, lambda *_: ("http_503", None)).run()
    assert play.ended[0][0] == "http_503"
    assert len(play.sent) == 5
    assert play.now < 30


def test_ten_broken_pages_among_good_ones_end_soon():
    """When their retries are all that is left of a healthy host, it is not taken for a host in trouble."""
    play = Play(200, lambda page, _: ("http_503" if page % 20 == 7 else "", None)).run()
    assert sorted(page for page, (code, _) in play.ended.items() if code) == list(range(7, 200, 20))
    assert play.row.parked_until == 0
    assert play.now < 40
    assert all(len(play.asked(page)) == 5 for page in range(7, 200, 20))


def test_an_outage_in_mid_crawl_loses_nothing():
    """Two minutes of 503 for everything: the host is parked, few attempts are made, every page is got in the end."""
    play = Play(2000, lambda _, now: ("http_503" if 3 < now < 123 else "", None)).run()
    assert play.codes() == {""}
    assert len(play.ended) == 2000
    assert len([1 for moment, _ in play.sent if 3.2 < moment < 123]) < 40


def test_a_host_that_dies_is_given_up_after_its_patience():
    """Everything fails from now on: half an hour later, after some dozen attempts, all its records end at once."""
    play = Play(5000, lambda _, now: ("connect" if now > 10 else "", None)).run()
    assert play.codes() == {"", "connect"}
    assert len(play.ended) == 5000
    assert 1810 <= play.now <= 1900
    assert len([1 for moment, _ in play.sent if moment > 11]) < 60


def test_429_for_ever_is_ended_by_patience_alone():
    """No attempt is burned, parkings grow, and the host is given up as http_429."""
    play = Play(50, lambda *_: ("http_429", None)).run()
    assert play.codes() == {"http_429"}
    assert 1800 <= play.now <= 1900
    assert len(play.sent) < 40


def test_a_host_that_limits_its_rate_is_crawled_to_the_end():
    """At most 20 requests in ten seconds, else 429 with Retry-After: 10: all pages are got, most without a refusal."""
    seen: list[float] = []

    def limited(page: int, now: float) -> tuple[str, float | None]:
        seen.append(now)
        return ("http_429", 10.0) if sum(moment > now - 10 for moment in seen) > 20 else ("", None)

    play = Play(300, limited).run()
    assert play.codes() == {""}
    assert len(play.ended) == 300
    refused = len(play.sent) - 300
    assert refused < 60
    assert play.now < 600


def test_one_page_that_answers_429_for_ever_ends_too():
    """The good pages are got first, then patience ends the one that never will be."""
    play = Play(200, lambda page, _: ("http_429" if page == 3 else "", None)).run()
    assert {page for page, (code, _) in play.ended.items() if code} == {3}
    assert play.ended[3][0] == "http_429"
    assert max(moment for code, moment in play.ended.values() if not code) < 120
    assert play.now < 2000


def test_a_spell_does_not_slow_the_host_for_hours():
    """After an outage the pace comes back within a minute or two."""
    play = Play(3000, lambda _, now: ("timeout_header" if 3 < now < 63 else "", None)).run()
    assert play.codes() == {""}
    assert play.row.delay == 0.0
    assert play.now < 63 + 60 + 90


def test_a_second_visit_does_not_inherit_old_trouble():
    """A host whose last page broke is met two hours later by another task: one more 503 does not give it up."""
    play = Play(1, lambda *_: ("http_503", None)).run()
    play.now += 7200
    play.queue = [(0, page, 0) for page in range(100, 140)]
    play.server = lambda page, _: ("http_503" if page == 100 else "", None)
    play.run()
    assert {page for page, (code, _) in play.ended.items() if code} == {0, 100}

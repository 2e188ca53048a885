"""The referee: what must hold after every step, judged by the questions and answers alone.

It keeps its own small books (who holds what, what has ended, when a host may be asked again) and compares them with
what the store says of itself. It does not know in which order hosts come or how a store is built; that is what the
comparison with the twin is for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from gossamer.model.host import HostView
from gossamer.model.hostrow import MAX_PARKED
from gossamer.model.item import Item
from gossamer.model.record import (
    REDIRECTED,
    TERMINAL,
    Grant,
    Kind,
    Leases,
    Link,
    LoggedItem,
    Outcome,
    Pushed,
    State,
    Verdict,
)
from gossamer.model.task import ENDED, TaskState, TaskView, limit_reached
from gossamer.model.traps import BEYOND_BUDGET
from gossamer.ports.frontier import KEPT_SAMPLES, Explained

ENDS = ("done", "failed", "skipped")
LIMITS = ("max_pages", "max_items", "max_errors")
GIVEN_UP = ("failed:dns", "failed:robots_unreachable")  # no verdict of the world has one of these codes


class Violation(AssertionError):  # noqa: N818  (a fact about the store under test)
    """The store broke its contract."""


class Referee:
    """The books of one run."""

    def __init__(self) -> None:
        self.now = 0.0
        self.last_number = 0
        self.held: dict[int, tuple[str, Grant]] = {}  # lease number → (session, grant)
        self.out: set[tuple[str, str]] = set()  # (task, url) of the records that are leased
        self.met: set[tuple[str, str]] = set()  # (task, url) of the records that were ever leased
        self.keys: dict[str, dict[bytes, Link]] = {}  # task → what was ever pushed
        self.terminal: dict[tuple[str, str], tuple[State, str]] = {}  # (task, url) → its end
        self.bodies: dict[tuple[str, str], str] = {}  # (task, url) → the body it ended with
        self.items: list[tuple[str, Item, int]] = []  # (task, item, which settle) in commit order
        self.pages: Counter[str] = Counter()  # by task, as the next two
        self.errors: Counter[str] = Counter()  # since it was opened or last retried
        self.failed: Counter[str] = Counter()  # as it read after the last step
        self.over: set[str] = set()  # tasks whose end was looked at
        self.settles = 0
        self.numbers: dict[int, int] = {}  # place in `items` → the number it was read with
        self.turn: dict[str, float] = {}  # host → when it may be asked again
        self.robots_until: dict[str, float] = {}
        self.state: dict[str, TaskView] = {}
        self.reviving: set[str] = set()  # tasks whose failed records come back with the next lease

    # What the calls did

    def pushed(self, task: str, links: Sequence[Link], answer: Pushed) -> None:
        new = self._learn(task, links)
        if answer.new != new:
            raise Violation(f"{new} of the links pushed were new, not {answer.new}")
        if answer.known != len(links) - new:
            raise Violation("new and known do not add up to what was pushed")

    def _learn(self, task: str, links: Iterable[Link]) -> int:
        known = self.keys.setdefault(task, {})
        before = len(known)
        for link in links:
            known.setdefault(link.key, link)
        return len(known) - before

    def settled(self, session: str, outcomes: Sequence[Outcome], answer: Leases) -> None:
        """Settle the books by the tokens that must be good, and compare which ones were refused."""
        stale = []
        self.settles += 1
        over = {name for name, view in self.state.items() if view.state in ENDED}
        failing: Counter[str] = Counter()
        for outcome in outcomes:
            held = self.held.get(outcome.number)
            if held is None or held[0] != session:
                stale.append(outcome.number)
                continue
            self.lost([outcome.number])
            task = held[1].task
            if task in over:
                stale.append(outcome.number)
                continue
            self._apply(held[1], outcome)
            failing[task] += outcome.verdict is Verdict.FAILED
            if self._limit_reached(task, failing[task]):
                over.add(task)
        if answer.stale != stale:
            raise Violation(f"the tokens {stale} are stale, not {answer.stale}")

    def _limit_reached(self, task: str, failing: int = 0) -> bool:
        """Whether the task must have ended by one of its limits; a paused one is left alone."""
        return self.state[task].state is TaskState.RUNNING and self._end_by_limits(task, failing) is not None

    def _end_by_limits(self, task: str, failing: int = 0) -> tuple[TaskState, str] | None:
        spec, items = self.state[task].spec, sum(name == task for name, *_ in self.items)
        errors = self.errors[task] + failing
        return limit_reached(spec, pages=self.pages[task], items=items, errors=errors)

    def _apply(self, grant: Grant, outcome: Outcome) -> None:
        order, host = outcome.host, grant.host
        if outcome.sent_ago is not None:
            self._hold(host, self.now - outcome.sent_ago + (order.turn if order else 0.0))
        if order and order.park:
            self._hold(host, self.now + min(order.park, MAX_PARKED))
        if order and order.robots:
            self.robots_until[host] = self.now + order.robots.ttl
        if grant.kind is Kind.ROBOTS:
            return
        if outcome.verdict in TERMINAL:
            self.terminal[grant.task, grant.url] = (State(outcome.verdict), outcome.code)
            if outcome.body is not None:
                self.bodies[grant.task, grant.url] = outcome.body
            answered = outcome.verdict is Verdict.DONE and outcome.code != REDIRECTED
            self.pages[grant.task] += answered and grant.kind is Kind.PAGE
        self._learn(grant.task, outcome.links)
        self.items += [(grant.task, item, self.settles) for item in outcome.items]

    def _hold(self, host: str, until: float) -> None:
        self.turn[host] = max(self.turn.get(host, 0.0), until)

    def lost(self, numbers: Iterable[int]) -> None:
        """These leases are over, whatever became of their records."""
        for number in numbers:
            _, grant = self.held.pop(number)
            if grant.kind is not Kind.ROBOTS:
                self.out.discard((grant.task, grant.url))

    def held_by(self, session: str) -> list[Grant]:
        return [grant for holder, grant in self.held.values() if holder == session]

    def forgive_failed(self, task: str) -> None:
        """Retry-failed: these may live again, and what fails is counted anew."""
        self.reviving.add(task)
        self.errors[task] = 0
        self.over.discard(task)
        for (name, url), (state, _) in list(self.terminal.items()):
            if name == task and state is State.FAILED:
                del self.terminal[name, url]

    # What was granted

    def granted(self, session: str, answer: Leases) -> None:
        for task in self.reviving:
            self.failed[task] = 0
        self.reviving.clear()
        for grant in answer.grants:
            if grant.number <= self.last_number:
                raise Violation(f"lease number {grant.number} does not rise")
            self.last_number = grant.number
            self._check_polite(grant)
            if grant.kind is Kind.ROBOTS:
                if self._robots_out(grant.host):
                    raise Violation(f"a second robots lease at {grant.host}")
            else:
                place = (grant.task, grant.url)
                if place in self.out:
                    raise Violation(f"{grant.url} is granted twice at once")
                if place in self.terminal:
                    raise Violation(f"{grant.url} has ended and is granted again")
                self.out.add(place)
                self.met.add(place)
            self.held[grant.number] = (session, grant)
        self._check_priorities(answer.grants)

    def _robots_out(self, host: str) -> bool:
        return any(grant.kind is Kind.ROBOTS and grant.host == host for _, grant in self.held.values())

    def _check_polite(self, grant: Grant) -> None:
        turn = self.turn.get(grant.host, 0.0)
        if grant.host and self.now < turn:
            raise Violation(f"{grant.host} is granted {turn - self.now} s too early")
        wish = self.state[grant.task].spec.wish
        if self.state[grant.task].state is not TaskState.RUNNING:
            raise Violation(f"a grant of {grant.task}, which is not running")
        unknown = self.robots_until.get(grant.host, 0.0) <= self.now
        if grant.kind is Kind.PAGE and wish.robots and unknown:
            raise Violation(f"{grant.url} is granted without known robots")

    def _check_priorities(self, grants: Sequence[Grant]) -> None:
        last: dict[tuple[str, str], int] = {}
        for grant in grants:
            if grant.kind is not Kind.ROBOTS:
                place = (grant.task, grant.host)
                above = last.get(place, grant.priority)
                if grant.priority > above:
                    raise Violation(f"{grant.url} comes after one of lower priority")
                last[place] = grant.priority

    def check_full(self, answer: Leases, trimmed: Mapping[str, int]) -> None:
        """A task whose log is full is granted nothing."""
        for name in {grant.task for grant in answer.grants}:
            limit = self.state[name].spec.log_limit
            if limit is not None and self.waiting(name, trimmed.get(name, 0)) >= limit:
                raise Violation(f"{name} is granted although its log is full")

    def waiting(self, task: str, trimmed: int) -> int:
        """Items of the task that not all sinks hold; a number that nobody has read yet is above what was trimmed."""
        return sum(
            name == task and self.numbers.get(at, trimmed + 1) > trimmed
            for at, (name, *_) in enumerate(self.items)
        )

    # What the store says of itself

    def check_hosts(self, hosts: dict[str, HostView], fresh: Sequence[Grant]) -> None:
        """Slots: counted right everywhere, and within the strictest limit where something was just granted."""
        open_at: dict[str, list[str]] = {}
        for _, grant in self.held.values():
            open_at.setdefault(grant.host, []).append(grant.task)
        for name, host in hosts.items():
            holders = open_at.get(name, [])
            if host.open != len(holders):
                raise Violation(f"{name} has {len(holders)} open leases and counts {host.open}")
        for name in {grant.host for grant in fresh if grant.host}:
            limit = self._limit(hosts[name], open_at[name])
            if hosts[name].open > limit:
                raise Violation(f"{name} may have {limit} open and has {hosts[name].open}")

    def _limit(self, host: HostView, holders: Sequence[str]) -> int:
        """The limit by those tasks alone that hold something here; others can only make it stricter."""
        limit = 1 << 30
        for name in holders:
            task = self.state[name]
            if task.state is TaskState.RUNNING:
                wish = task.spec.wish
                paced = wish.delay > 0 or (host.delay or 0.0) > 0 or host.crawl_delay > 0
                limit = min(limit, 1 if paced else wish.per_host)
        return limit

    def check_ended(self, task: str) -> None:
        """Whoever leaves nothing to do ends the task with it; nobody may have to ask again."""
        view = self.state[task]
        waits = view.seeding or view.spec.keep_open or task in self.reviving
        if view.state is TaskState.RUNNING and view.terminal == view.discovered and not waits:
            raise Violation(f"{task} has nothing left to do and has not ended")

    def check_counters(self, task: str, counters: dict[str, int]) -> None:
        """Everything that was discovered is somewhere, exactly once."""
        view = self.state[task]
        ended = sum(counters[end] for end in ENDS)
        parts = counters["pending"] + counters["leased"] + counters["cancelled"] + ended
        if counters["discovered"] != parts:
            raise Violation(f"{task}: discovered is not the sum of all states: {counters}")
        if counters["discovered"] != len(self.keys.get(task, ())):
            raise Violation(f"{task}: not all that was new was discovered")
        if min(counters.values()) < 0:
            raise Violation(f"{task}: a counter is negative: {counters}")
        causes = dict.fromkeys(ENDS, 0)
        for name, n in counters.items():
            end, colon, _ = name.partition(":")
            if colon and end in causes:
                causes[end] += n
        if any(causes[end] != counters[end] for end in ENDS):
            raise Violation(f"{task}: an end is not the sum of its causes: {counters}")
        if view.state not in ENDED:
            leased = len([True for name, _ in self.out if name == task])
            if counters["leased"] != leased:
                raise Violation(f"{task}: {leased} records are leased, not {counters['leased']}")
        items = len([True for name, *_ in self.items if name == task])
        if counters["items"] != items:
            raise Violation(f"{task}: {items} items were settled, not {counters['items']}")
        if counters["pages"] != self.pages[task]:
            raise Violation(f"{task}: {self.pages[task]} pages were settled, not {counters['pages']}")

    def check_limits(self, task: str, counters: dict[str, int]) -> None:
        """A task that has reached a limit does not run; what a given-up host ended counts as failed, too."""
        self.errors[task] += counters["failed"] - self.failed[task]
        self.failed[task] = counters["failed"]
        if self._limit_reached(task):
            raise Violation(f"{task} has reached a limit and runs on: {self.state[task].spec} {counters}")
        view = self.state[task]
        if view.state in ENDED and task not in self.over:
            self.over.add(task)
            # Pages that ended with their host count when the call is through: another limit may have come before.
            ends = self._end_by_limits(task), self._end_by_limits(task, -self.errors[task])
            if view.reason in LIMITS and (view.state, view.reason) not in ends:
                raise Violation(f"{task} is {view.state}({view.reason}) too early: {view.spec} {counters}")

    def check_end(self, task: str, url: str, state: State, code: str) -> None:
        """A terminal record is what its settle made it."""
        expected = self.terminal.get((task, url), (state, code))
        if (state, code) != expected:
            raise Violation(f"{url} ended as {expected} and is now {(state, code)}")
        if code == BEYOND_BUDGET and (task, url) in self.met:
            raise Violation(f"{url} was granted, so its pattern had room, and now it is {(state, code)}")

    def check_body(self, task: str, life: Explained) -> None:
        """A record names the body that it ended with."""
        if life.body != self.bodies.get((task, life.url)):
            raise Violation(f"{life.url} was kept as {self.bodies.get((task, life.url))}, not {life.body}")

    def check_samples(
        self, task: str, counters: Mapping[str, int], samples: Mapping[str, Sequence[str]]
    ) -> None:
        """What was given up with its host has left examples."""
        for name in GIVEN_UP:
            kept = len(samples.get(name, ()))
            if not min(counters.get(name, 0), KEPT_SAMPLES) <= kept <= KEPT_SAMPLES:
                raise Violation(f"{task}: {kept} samples of {name}, which counts {counters.get(name, 0)}")

    def check_items(self, task: str, log: Sequence[LoggedItem], after: int) -> None:
        """What was read from the log up to its end: the last items settled, each with the number it always had."""
        numbers = [item.number for item in log]
        if any(later <= earlier for earlier, later in pairwise([after, *numbers])):
            raise Violation(f"{task}: item numbers do not rise from {after} on: {numbers}")
        places = [at for at, (name, *_) in enumerate(self.items) if name == task]
        places = places[len(places) - len(log) :]
        if [Item(item.data, item.key) for item in log] != [self.items[at][1] for at in places]:
            raise Violation(f"{task}: the item log is not what was settled: {log}")
        for at, item in zip(places, log, strict=True):
            if self.numbers.setdefault(at, item.number) != item.number:
                raise Violation(f"{task}: the number of {item} was {self.numbers[at]}")

    def check_log(self, task: str, log: Sequence[LoggedItem], trimmed: int) -> None:
        """The whole log, from behind what every sink holds."""
        self.check_items(task, log, trimmed)
        kept = self.waiting(task, trimmed)
        if kept != len(log):
            raise Violation(f"{task}: {kept} items are to be in the log, not {len(log)}")

    def check_numbers(self) -> None:
        """Item numbers are given once, and over all tasks they follow the order of the settles."""
        by_number = sorted((number, self.items[at][2]) for at, number in self.numbers.items())
        for (earlier, settle), (later, next_settle) in pairwise(by_number):
            if earlier == later or settle > next_settle:
                raise Violation(
                    f"item numbers do not rise with the settles: (number, settle) are {by_number}"
                )

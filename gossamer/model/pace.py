"""How fast a host is asked: the adaptive delay, parking, patience and robots, decided after every exchange.

`Pace` holds what one task's settings say. Its methods are pure: the host's row as it was at the lease, and what
happened, make a `HostOrder`, or None where nothing is to be changed (a quick host in health, the hot path).

**The delay.** It starts at 0.25 s. Each good answer eases it by a tenth, down to 0 for a host that answers in less than
a second, so that it is then asked `per_host` requests at once; a slower host is eased towards its own latency and is
asked one by one. It doubles on a 429 and on trouble that is not of one page. It is never less than what the
task wishes or robots.txt asks, jitter only lengthens it, and without `throttle` it is left alone.

**Evidence against a host.** Only the *first* attempt of a page counts (and whatever the host asks of us). A page that
was tried before and fails again tells about itself: a host with ten broken pages is healthy, and while their retries
are all that is left, nobody is parked for them. Five first attempts in a row that fail are the host's fault: it is
parked, attempts are not burned, and every further failure counts until there is a good answer.

**Parking** lasts longer each time (`model.parking`), and when the patience is over the host's records of this task are
given up with the cause as their code.
"""

from __future__ import annotations

from collections.abc import Iterable

from gossamer.model import parking
from gossamer.model.host import HostOrder, HostView, RobotsOrder, Wish
from gossamer.model.parking import parse_retry_after
from gossamer.model.retry import cause_of
from gossamer.model.robots import RobotsRules, lifetime
from gossamer.model.settings import Settings

__all__ = ["FIRST_DELAY", "SEVERAL", "Pace", "parse_retry_after", "wish_of"]

FIRST_DELAY = 0.25
LEAST_RAISED = 0.2  # a delay that is raised from nothing starts here
LEAST_KEPT = 0.02  # below this a delay is none
EASE = 0.1
SLOW = 1.0  # seconds of latency above which a host is asked one by one
SEVERAL = 5  # first attempts that fail in a row before it is the host's fault
_SMOOTHING = 0.2
_NOTABLE = 0.1  # a latency that differs by less than this, or by half, is not worth a write
_HOPELESS = frozenset({"blocked_address", "scheme", "url"})  # no waiting changes these
_SAID = _HOPELESS | parking.STRANGE | {"http_429", "proxy"}  # robots causes that people are told as they are
_UNLIKE_LOAD = frozenset({"dns", "connect"})  # nobody answered, so asking slower is no help


def wish_of(settings: Settings, eager: Iterable[str] = ()) -> Wish:
    """What a task with these settings asks of every host; `eager` hosts need no slow start."""
    adaptive = settings.throttle and settings.delay is None
    return Wish(
        per_host=settings.per_host,
        delay=settings.delay or 0.0,
        first_delay=FIRST_DELAY if adaptive else 0.0,
        eager=tuple(eager),
        robots=settings.robots,
        pages_per_host=settings.pages_per_host,
    )


class Pace:
    """The politeness of one task. Holds settings only, so one object serves all hosts and all exchanges."""

    __slots__ = ("_eager", "_jitter", "_measures", "_settings", "_throttle", "_wish")

    def __init__(self, settings: Settings, wish: Wish) -> None:
        self._settings = settings
        self._wish = wish
        self._eager = frozenset(wish.eager)
        self._throttle = settings.throttle
        self._measures = settings.throttle and settings.delay is None
        self._jitter = settings.jitter

    def after(
        self,
        view: HostView,
        code: str,
        latency: float,
        rand: float,
        *,
        retries: int = 0,
        retry_after: float | None = None,
    ) -> HostOrder | None:
        """What the end of a page's exchange means for its host: `code` as in `model.retry`, "" for a page."""
        if not code or not (cause := cause_of(code)).failed:
            return self.answered(view, latency, rand)
        if cause.bad:
            return self.failed(view, code, rand, retries=retries, retry_after=retry_after)
        return self._only_turn(view, rand)

    def answered(self, view: HostView, latency: float, rand: float) -> HostOrder | None:
        """The host gave an answer that is nobody's trouble, be it a page or a 404."""
        known = view.latency
        unremarkable = abs(latency - known) < _NOTABLE + known / 2
        well = not (view.trouble or view.level or view.bad_for)
        if view.delay == 0.0 and unremarkable and well and not view.crawl_delay and not self._wish.delay:
            return None  # the hot path
        latency = _smoothed(known, latency)
        delay = self._eased(view, latency)
        turn = self._turn(view, self._current(view) if delay is None else delay, rand)
        if delay == view.delay and turn == 0.0 and well and unremarkable and known:
            return None
        return HostOrder(turn=turn, delay=delay, latency=latency, good=not well)

    def failed(
        self,
        view: HostView,
        code: str,
        rand: float,
        *,
        retries: int = 0,
        retry_after: float | None = None,
    ) -> HostOrder | None:
        """A cause that speaks against the host (`Cause.bad`), after so many burned attempts of that page."""
        first = retries == 0
        asked = not cause_of(code).burns or (code == "http_503" and bool(retry_after))
        in_a_row = view.trouble >= SEVERAL or (first and view.trouble + 1 >= SEVERAL)
        if not (first or asked or in_a_row):
            return self._only_turn(view, rand)
        delay = self._raised(view) if _of_load(view, code, asked=asked, first=first) else None
        turn = self._turn(view, self._current(view) if delay is None else delay, rand)
        if not (asked or in_a_row):
            return HostOrder(turn=turn, delay=delay, bad=True)
        return self._parked(view, code, parking.schedule(view.level), turn, delay, rand, retry_after)

    def robots_known(
        self,
        view: HostView,
        rules: RobotsRules,
        latency: float,
        rand: float,
        *,
        cache_control: str | None = None,
    ) -> HostOrder:
        """robots.txt was read, or is known not to exist."""
        asked = rules.crawl_delay(self._settings.user_agent)
        kept = RobotsOrder(
            body=rules.text.encode("utf-8", "replace"),
            ttl=float(lifetime(cache_control)),
            crawl_delay=asked.seconds if asked else 0.0,
        )
        pause = max(self._wish.delay, self._current(view), kept.crawl_delay)
        return HostOrder(
            turn=pause * (1.0 + self._jitter * rand),
            latency=None if view.latency else max(latency, 0.001),  # it has answered: no stranger any more
            good=True,
            robots=kept,
        )

    def robots_unknown(
        self,
        view: HostView,
        code: str,
        rand: float,
        *,
        retry_after: float | None = None,
        elsewhere: bool = False,
    ) -> HostOrder:
        """robots.txt could not be learned: the host waits. `elsewhere`: it was a redirect's target that failed."""
        said = code if code in _SAID and not elsewhere else "robots_unreachable"
        if said in _HOPELESS:
            return HostOrder(give_up=said)
        turn = self._turn(view, self._current(view), rand)
        park = parking.schedule(view.level) * parking.ROBOTS_SHARE
        return self._parked(view, said, park, turn, None, rand, retry_after)

    def gap(self, view: HostView) -> float:
        """Seconds that must lie between two requests to this host, before chance."""
        return max(self._wish.delay, self._current(view), view.crawl_delay)

    def _parked(
        self,
        view: HostView,
        code: str,
        park: float,
        turn: float,
        delay: float | None,
        rand: float,
        retry_after: float | None,
    ) -> HostOrder:
        limit = parking.patience(view, code, self._settings.host_patience)
        park *= 1.0 + self._jitter * rand
        if retry_after:
            park = max(retry_after, park * parking.ASKED_SHARE)
        elif view.bad_for < limit:
            park = min(park, limit - view.bad_for)  # the last attempt is made when the patience ends
        return HostOrder(
            turn=turn,
            delay=delay,
            bad=True,
            park=min(park, parking.LONGEST_WAIT),
            level=parking.level_reached(view.level, park),
            give_up=code if parking.exhausted(view, limit) else "",
        )

    def _only_turn(self, view: HostView, rand: float) -> HostOrder | None:
        turn = self._turn(view, self._current(view), rand)
        return HostOrder(turn=turn) if turn else None

    def _turn(self, view: HostView, delay: float, rand: float) -> float:
        """The gap to the next request: the strictest of all, and lengthened by chance."""
        return max(self._wish.delay, delay, view.crawl_delay) * (1.0 + self._jitter * rand)

    def _current(self, view: HostView) -> float:
        if view.delay is not None:
            return view.delay
        return 0.0 if view.host in self._eager else self._wish.first_delay

    def _eased(self, view: HostView, latency: float) -> float | None:
        """The delay after a good answer; None where this task does not measure and nothing was raised before."""
        if not self._measures and not (self._throttle and view.delay):
            return None
        delay = self._current(view)
        goal = latency if self._measures and latency > SLOW else 0.0
        delay += (goal - delay) * (0.5 if goal > delay else EASE)
        return min(delay, self._settings.max_delay) if delay >= LEAST_KEPT else 0.0

    def _raised(self, view: HostView) -> float | None:
        if not self._throttle:
            return None
        return min(max(2.0 * self._current(view), LEAST_RAISED), self._settings.max_delay)


def _of_load(view: HostView, code: str, *, asked: bool, first: bool) -> bool:
    """Whether asking slower may help. A few times per spell at most: what is doubled for ever takes hours to ease."""
    if asked:
        return view.trouble == 0
    return first and 0 < view.trouble < SEVERAL - 1 and code not in _UNLIKE_LOAD


def _smoothed(known: float, latency: float) -> float:
    """A moving mean in which one very slow page weighs no more than a slow one."""
    if not known:
        return max(min(latency, SLOW), 0.001)
    return known + (min(latency, 4 * known + SLOW) - known) * _SMOOTHING

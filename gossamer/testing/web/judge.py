"""Was the crawl polite? Read from the origin's log alone, never from what a crawler says about itself."""

from __future__ import annotations

import math
import urllib.robotparser
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from gossamer.testing.web.log import OriginLog, Visit

ROBOTS = "/robots.txt"


@dataclass(frozen=True, slots=True)
class Violation:
    """One breach of politeness. Kinds: overlap, gap, denied, before_robots, retry_after, foreign, overflow."""

    kind: str
    host: str
    at: float
    detail: str


def judge(
    log: OriginLog,
    per_host_limit: int,
    min_delay: float | Mapping[str, float] = 0.0,
    robots: Mapping[str, str | None] | None = None,
    *,
    foreign: Collection[str] = (),
    tolerance: float = 0.010,
    retry_grace: float = 1.0,
) -> list[Violation]:
    """Everything that a polite crawl would not have done, in the order of the hosts.

    `min_delay` is one for all hosts or by host. `robots` holds the text of robots.txt by host (None: there is none);
    without it, as for a crawl that was told to ignore robots, neither denied paths nor the order of requests are
    judged. `tolerance` forgives the jitter of two clocks and of closing sockets; after a 429 what was already on its
    way may arrive for `retry_grace` seconds. Requests for robots.txt count for the overlap, not for the gaps.
    """
    found = [Violation("foreign", e.host, e.start, e.url) for e in log.visits if e.host in foreign]
    if log.overflowed:
        found.append(
            Violation(
                "overflow", "", 0.0, f"{log.overflowed} records were not kept: this judgement is partial"
            )
        )
    by_host: dict[str, list[Visit]] = defaultdict(list)
    for visit in sorted(log.visits, key=lambda visit: visit.start):
        if visit.host not in foreign:
            by_host[visit.host].append(visit)
    for host, visits in sorted(by_host.items()):
        delay = min_delay.get(host, 0.0) if isinstance(min_delay, Mapping) else min_delay
        pages = [visit for visit in visits if visit.path != ROBOTS]
        found += _overlaps(visits, per_host_limit, tolerance)
        found += _gaps(pages, delay, tolerance)
        found += _impatience(visits, retry_grace, tolerance)
        if robots is not None:
            found += _denied(pages, robots.get(host))
            found += _before_robots(visits)
    return found


def most_open(log: OriginLog, host: str) -> int:
    """The largest number of requests that were open on one host at once."""
    return max((number for number, _ in _opened([e for e in log.visits if e.host == host], 0.0)), default=0)


def _opened(visits: list[Visit], tolerance: float) -> Iterator[tuple[int, Visit]]:
    """For every start: how many are open then, itself included."""
    changes: list[tuple[float, int, Visit]] = []
    for visit in visits:
        end = math.inf if visit.end is None else visit.end
        if visit.aborted:  # the client hung up, and we learn that a little later than it does
            end = max(visit.start, end - tolerance)
        changes.append((visit.start, 1, visit))
        changes.append((end, 0, visit))
    number = 0
    for _, starts, visit in sorted(changes, key=lambda change: change[:2]):
        number += 1 if starts else -1
        if starts:
            yield number, visit


def _overlaps(visits: list[Visit], limit: int, tolerance: float) -> Iterator[Violation]:
    for number, visit in _opened(visits, tolerance):
        if number > limit:
            yield _violation("overlap", visit, f"{number} open requests, {limit} allowed")


def _gaps(pages: list[Visit], delay: float, tolerance: float) -> Iterator[Violation]:
    for earlier, later in pairwise(pages):
        gap = later.start - earlier.start
        if gap < delay - tolerance:
            yield _violation("gap", later, f"{gap:.3f} s after {earlier.path}, {delay} s asked for")


def _impatience(visits: list[Visit], grace: float, tolerance: float) -> Iterator[Violation]:
    for told in visits:
        if told.retry_after is None or told.end is None:
            continue
        for visit in visits:
            if told.end + grace < visit.start < told.end + told.retry_after - tolerance:
                yield _violation("retry_after", visit, f"{told.path} asked for {told.retry_after} s of rest")


def _denied(pages: list[Visit], text: str | None) -> Iterator[Violation]:
    if text is None:
        return
    rules = urllib.robotparser.RobotFileParser()
    rules.parse(text.splitlines())
    for visit in pages:
        if not rules.can_fetch("*", visit.path):
            yield _violation("denied", visit, "robots.txt denies this path")


def _before_robots(visits: list[Visit]) -> Iterator[Violation]:
    """A 5xx or a 429 for robots.txt is no answer: until there is one nothing may be read."""
    answered = min(
        (e.end for e in visits if e.path == ROBOTS and e.end and 200 <= e.status < 500 and e.status != 429),
        default=math.inf,
    )
    for visit in visits:
        if visit.path != ROBOTS and visit.start < answered:
            yield _violation("before_robots", visit, "robots.txt had not been answered yet")


def _violation(kind: str, visit: Visit, detail: str) -> Violation:
    return Violation(kind, visit.host, visit.start, f"{visit.path}: {detail}")

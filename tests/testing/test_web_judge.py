"""The judge on logs written by hand: each breach of politeness is found, and nothing else is."""

from __future__ import annotations

from gossamer.testing.web import OriginLog, Violation, Visit, judge, most_open

HOST = "127.0.0.2:8000"
ROBOTS = {HOST: "User-agent: *\nDisallow: /private/\n"}


def visit(path: str, start: float, end: float | None, host: str = HOST, **more: object) -> Visit:
    return Visit(1, host, "GET", path, 1, start, end, **{"status": 200, **more})  # type: ignore[arg-type]


def log_of(*visits: Visit) -> OriginLog:
    return OriginLog(visits=list(visits))


def kinds(found: list[Violation]) -> list[str]:
    return [violation.kind for violation in found]


POLITE = (
    visit("/robots.txt", 0.0, 0.1),
    visit("/a", 1.0, 1.5),
    visit("/b", 2.0, 2.5),
    visit("/c", 3.0, 3.1),
)


def test_a_polite_log_has_no_violations() -> None:
    """One request at a time, a second apart, robots first: nothing to say."""
    assert judge(log_of(*POLITE), 1, 1.0, ROBOTS) == []


def test_more_open_requests_than_allowed_are_found() -> None:
    """The third request that is open at once is a violation of a limit of two, not of three."""
    log = log_of(visit("/a", 0, 9), visit("/b", 1, 9), visit("/c", 2, 3), visit("/d", 2.5, None))
    assert kinds(judge(log, 4)) == []
    assert [(v.kind, v.at) for v in judge(log, 2)] == [("overlap", 2), ("overlap", 2.5)]
    assert most_open(log, HOST) == 4


def test_requests_of_different_hosts_do_not_overlap() -> None:
    """The limit is one host's."""
    assert judge(log_of(visit("/a", 0, 9), visit("/a", 1, 9, host="127.0.0.3:8000")), 1) == []


def test_a_request_that_starts_when_another_ends_does_not_overlap() -> None:
    """Answered first, asked next: also at the very same moment."""
    assert judge(log_of(visit("/a", 0, 1), visit("/b", 1, 2)), 1) == []


def test_a_request_that_never_ended_stays_open() -> None:
    """Without an end it counts to the end of the log."""
    assert kinds(judge(log_of(visit("/a", 0, None), visit("/b", 100, 101)), 1)) == ["overlap"]


def test_hanging_up_is_forgiven_the_time_it_takes_to_be_noticed() -> None:
    """A client that gave up and asks anew within the tolerance is polite; later it is not."""
    gave_up = visit("/a", 0, 1.005, aborted=True, status=0)
    assert judge(log_of(gave_up, visit("/b", 1.0, 2)), 1) == []
    assert kinds(judge(log_of(gave_up, visit("/b", 0.9, 2)), 1)) == ["overlap"]


def test_a_gap_that_is_too_short_is_found() -> None:
    """Starts closer than the delay less the tolerance are violations; per host if the delay is."""
    log = log_of(visit("/a", 0, 0.1), visit("/b", 0.985, 1.1), visit("/c", 1.98, 2.0))
    assert [(v.kind, v.at) for v in judge(log, 1, 1.0)] == [("gap", 0.985)]
    assert kinds(judge(log, 1, {HOST: 2.0})) == ["gap", "gap"]
    assert judge(log, 1, {"127.0.0.9:8000": 2.0}) == []


def test_a_request_for_a_denied_path_is_found() -> None:
    """robots.txt is read again by the judge; where there is none, nothing is denied."""
    log = log_of(*POLITE, visit("/private/diary", 9, 9.1))
    assert kinds(judge(log, 1, 0, ROBOTS)) == ["denied"]
    assert judge(log, 1, 0, {HOST: None}) == []
    assert judge(log, 1, 0, None) == []


def test_a_page_asked_before_robots_is_found() -> None:
    """Before robots.txt was answered, or while it only failed, no page may be asked."""
    early = log_of(visit("/a", 0, 0.1), visit("/robots.txt", 0.2, 0.3), visit("/b", 0.4, 0.5))
    assert kinds(judge(early, 1, 0, ROBOTS)) == ["before_robots"]
    meanwhile = log_of(visit("/robots.txt", 0, 1), visit("/a", 0.5, 2))
    assert kinds(judge(meanwhile, 2, 0, ROBOTS)) == ["before_robots"]
    failing = log_of(visit("/robots.txt", 0, 0.1, status=503), visit("/a", 1, 1.1))
    assert kinds(judge(failing, 1, 0, ROBOTS)) == ["before_robots"]
    absent = log_of(visit("/robots.txt", 0, 0.1, status=404), visit("/a", 1, 1.1))
    assert judge(absent, 1, 0, {HOST: None}) == []
    assert kinds(judge(log_of(visit("/a", 1, 1.1)), 1, 0, ROBOTS)) == ["before_robots"]


def test_a_host_that_asked_for_rest_must_get_it() -> None:
    """After a 429 only what was on its way may still arrive until Retry-After is over."""
    told = visit("/a", 0, 0.1, status=429, retry_after=10.0)
    assert kinds(judge(log_of(told, visit("/b", 5, 5.1)), 1)) == ["retry_after"]
    assert judge(log_of(told, visit("/b", 0.5, 0.6), visit("/c", 10.1, 10.2)), 1) == []


def test_a_request_out_of_scope_is_found() -> None:
    """Any request to a foreign host is one too many."""
    assert kinds(judge(log_of(visit("/", 0, 1)), 1, foreign=[HOST])) == ["foreign"]


def test_a_log_that_lost_records_cannot_acquit() -> None:
    """When the log overflowed the judge says so, and the loss survives writing and reading."""
    log = OriginLog(limit=1)
    for path in ("/a", "/b", "/c"):
        log.ended(log.started(1, HOST, "GET", path, 1))
    assert len(log.visits) == 1
    assert kinds(judge(OriginLog.parse(log.lines()), 1)) == ["overflow"]


def test_a_log_is_read_back_as_it_was_written() -> None:
    """JSON lines keep every field, and put visits in the order of their start."""
    log = log_of(visit("/b", 2.0, None, aborted=True), visit("/a", 1.0, 1.5, retry_after=2.0))
    log.closed(log.opened(1, HOST))
    read = OriginLog.parse(log.lines())
    assert read.visits == sorted(log.visits, key=lambda one: one.start)
    assert read.connections == log.connections
    assert (read.hits(f"http://{HOST}/a"), read.hits(f"http://{HOST}/c")) == (1, 0)
    assert read.hosts() == [HOST]

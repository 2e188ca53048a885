"""The judge on logs written by hand: each breach of politeness is found, and nothing else is."""

from __future__ import annotations

from gossamer.testing.web import Exchange, OriginLog, Violation, judge, most_open

HOST = "127.0.0.2:8000"
ROBOTS = {HOST: "User-agent: *\nDisallow: /private/\n"}


def exchange(path: str, start: float, end: float | None, host: str = HOST, **more: object) -> Exchange:
    return Exchange(1, host, "GET", path, 1, start, end, **{"status": 200, **more})  # type: ignore[arg-type]


def log_of(*exchanges: Exchange) -> OriginLog:
    return OriginLog(exchanges=list(exchanges))


def kinds(found: list[Violation]) -> list[str]:
    return [violation.kind for violation in found]


POLITE = (
    exchange("/robots.txt", 0.0, 0.1),
    exchange("/a", 1.0, 1.5),
    exchange("/b", 2.0, 2.5),
    exchange("/c", 3.0, 3.1),
)


def test_a_polite_log_has_no_violations() -> None:
    """One request at a time, a second apart, robots first: nothing to say."""
    assert judge(log_of(*POLITE), 1, 1.0, ROBOTS) == []


def test_more_open_requests_than_allowed_are_found() -> None:
    """The third request that is open at once is a violation of a limit of two, not of three."""
    log = log_of(exchange("/a", 0, 9), exchange("/b", 1, 9), exchange("/c", 2, 3), exchange("/d", 2.5, None))
    assert kinds(judge(log, 4)) == []
    assert [(v.kind, v.at) for v in judge(log, 2)] == [("overlap", 2), ("overlap", 2.5)]
    assert most_open(log, HOST) == 4


def test_requests_of_different_hosts_do_not_overlap() -> None:
    """The limit is one host's."""
    assert judge(log_of(exchange("/a", 0, 9), exchange("/a", 1, 9, host="127.0.0.3:8000")), 1) == []


def test_a_request_that_starts_when_another_ends_does_not_overlap() -> None:
    """Answered first, asked next: also at the very same moment."""
    assert judge(log_of(exchange("/a", 0, 1), exchange("/b", 1, 2)), 1) == []


def test_a_request_that_never_ended_stays_open() -> None:
    """Without an end it counts to the end of the log."""
    assert kinds(judge(log_of(exchange("/a", 0, None), exchange("/b", 100, 101)), 1)) == ["overlap"]


def test_hanging_up_is_forgiven_the_time_it_takes_to_be_noticed() -> None:
    """A client that gave up and asks anew within the tolerance is polite; later it is not."""
    gave_up = exchange("/a", 0, 1.005, aborted=True, status=0)
    assert judge(log_of(gave_up, exchange("/b", 1.0, 2)), 1) == []
    assert kinds(judge(log_of(gave_up, exchange("/b", 0.9, 2)), 1)) == ["overlap"]


def test_a_gap_that_is_too_short_is_found() -> None:
    """Starts closer than the delay less the tolerance are violations; per host if the delay is."""
    log = log_of(exchange("/a", 0, 0.1), exchange("/b", 0.985, 1.1), exchange("/c", 1.98, 2.0))
    assert [(v.kind, v.at) for v in judge(log, 1, 1.0)] == [("gap", 0.985)]
    assert kinds(judge(log, 1, {HOST: 2.0})) == ["gap", "gap"]
    assert judge(log, 1, {"127.0.0.9:8000": 2.0}) == []


def test_a_request_for_a_denied_path_is_found() -> None:
    """robots.txt is read again by the judge; where there is none, nothing is denied."""
    log = log_of(*POLITE, exchange("/private/diary", 9, 9.1))
    assert kinds(judge(log, 1, 0, ROBOTS)) == ["denied"]
    assert judge(log, 1, 0, {HOST: None}) == []
    assert judge(log, 1, 0, None) == []


def test_a_page_asked_before_robots_is_found() -> None:
    """Before robots.txt was answered, or while it only failed, no page may be asked."""
    early = log_of(exchange("/a", 0, 0.1), exchange("/robots.txt", 0.2, 0.3), exchange("/b", 0.4, 0.5))
    assert kinds(judge(early, 1, 0, ROBOTS)) == ["before_robots"]
    meanwhile = log_of(exchange("/robots.txt", 0, 1), exchange("/a", 0.5, 2))
    assert kinds(judge(meanwhile, 2, 0, ROBOTS)) == ["before_robots"]
    failing = log_of(exchange("/robots.txt", 0, 0.1, status=503), exchange("/a", 1, 1.1))
    assert kinds(judge(failing, 1, 0, ROBOTS)) == ["before_robots"]
    absent = log_of(exchange("/robots.txt", 0, 0.1, status=404), exchange("/a", 1, 1.1))
    assert judge(absent, 1, 0, {HOST: None}) == []
    assert kinds(judge(log_of(exchange("/a", 1, 1.1)), 1, 0, ROBOTS)) == ["before_robots"]


def test_a_host_that_asked_for_rest_must_get_it() -> None:
    """After a 429 only what was on its way may still arrive until Retry-After is over."""
    told = exchange("/a", 0, 0.1, status=429, retry_after=10.0)
    assert kinds(judge(log_of(told, exchange("/b", 5, 5.1)), 1)) == ["retry_after"]
    assert judge(log_of(told, exchange("/b", 0.5, 0.6), exchange("/c", 10.1, 10.2)), 1) == []


def test_a_request_out_of_scope_is_found() -> None:
    """Any request to a foreign host is one too many."""
    assert kinds(judge(log_of(exchange("/", 0, 1)), 1, foreign=[HOST])) == ["foreign"]


def test_a_log_that_lost_records_cannot_acquit() -> None:
    """When the log overflowed the judge says so, and the loss survives writing and reading."""
    log = OriginLog(limit=1)
    for path in ("/a", "/b", "/c"):
        log.ended(log.started(1, HOST, "GET", path, 1))
    assert len(log.exchanges) == 1
    assert kinds(judge(OriginLog.parse(log.lines()), 1)) == ["overflow"]


def test_a_log_is_read_back_as_it_was_written() -> None:
    """JSON lines keep every field, and put exchanges in the order of their start."""
    log = log_of(exchange("/b", 2.0, None, aborted=True), exchange("/a", 1.0, 1.5, retry_after=2.0))
    log.closed(log.opened(1, HOST))
    read = OriginLog.parse(log.lines())
    assert read.exchanges == sorted(log.exchanges, key=lambda one: one.start)
    assert read.connections == log.connections
    assert (read.hits(f"http://{HOST}/a"), read.hits(f"http://{HOST}/c")) == (1, 0)
    assert read.hosts() == [HOST]

"""What each scenario has to show, and whether its record shows it."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from benchmarks.programs import CRAWLEE, GOSSAMER, SCRAPY

Record = dict[str, Any]


class Figure(NamedTuple):
    """One promise and what was measured."""

    what: str
    wanted: str
    measured: str
    met: bool | None
    """None: it is reported only, or was not measured."""


class Summary(NamedTuple):
    """The run of a program with the median rate; its worst memory."""

    pages: int
    rate: float
    seconds: float
    cpu_per_page: float
    """Microseconds."""
    peak_rss_mib: float
    program_busy: float
    """CPU seconds of the program in a second of wall time."""
    server_busy: float
    rates: tuple[float, ...]


def summary(program: Record) -> Summary | None:
    """None if a run of the program is void: two good runs of three are no result."""
    runs, pages = program["runs"], program["pages"]
    if not runs or any(run["problem"] for run in runs):
        return None
    middle = sorted(runs, key=lambda run: run["seconds"])[len(runs) // 2]
    seconds = middle["seconds"]
    return Summary(
        pages=pages,
        rate=pages / seconds,
        seconds=seconds,
        cpu_per_page=statistics.median(run["cpu_seconds"] for run in runs) / pages * 1e6,
        peak_rss_mib=max(run["peak_rss_mib"] for run in runs),
        program_busy=middle["cpu_seconds"] / seconds,
        server_busy=middle["server_cpu_seconds"] / seconds,
        rates=tuple(round(pages / run["seconds"]) for run in runs),
    )


def figures(record: Record) -> list[Figure]:
    """The promises of a record's scenario. A scenario that broke down has all of them unmeasured."""
    try:
        return list(_JUDGES[record["scenario"]](record))
    except (LookupError, TypeError, ValueError):
        return [Figure(f"`{record['scenario']}`", "all its figures", "not measured", None)]


def _rate(record: Record, name: str) -> float | None:
    program = record.get("programs", {}).get(name)
    found = summary(program) if program else None
    return found.rate if found else None


def _ratio(
    record: Record, what: str, over: str, least: float | None, wanted: str, of: str = GOSSAMER
) -> Figure:
    ours, theirs = _rate(record, of), _rate(record, over)
    if ours is None or theirs is None:
        return Figure(what, wanted, "not measured", None)
    ratio = ours / theirs
    said = f"{ratio:.1f}× ({ours:,.0f} : {theirs:,.0f} pages/s)"
    return Figure(what, wanted, said, None if least is None else ratio >= least)


def _small(record: Record) -> Iterator[Figure]:
    yield _ratio(record, "12.8 KB pages, to Scrapy", SCRAPY, 15, "≥ 15× (stretch 20×)")
    yield _ratio(record, "12.8 KB pages, to Crawlee in memory", CRAWLEE, 8, "≥ 8×")


def _large(record: Record) -> Iterator[Figure]:
    yield _ratio(record, "240 KB pages, TLS, gzip, to Scrapy", SCRAPY, 6, "≥ 6×")
    yield _ratio(record, "240 KB pages, TLS, gzip, to Crawlee", CRAWLEE, None, "reported")


def _workers(record: Record) -> Iterator[Figure]:
    what = "two workers on two cores, to one"
    yield _ratio(record, what, "1 worker", 1.5, "≥ 1.5×", of="2 workers")
    one, two = (summary(record["programs"][name]) for name in ("1 worker", "2 workers"))
    if one is None or two is None:
        return
    busy = [run.program_busy + run.server_busy for run in (one, two)]
    dearer = two.cpu_per_page / one.cpu_per_page
    said = f"{2 / busy[0] / dearer:.2f}×: one keeps {busy[0]:.2f} cores busy with its writer and its server; two, {busy[1]:.2f}"
    yield Figure(f"{what}: the most that the cores allow", "reported", said, None)


def _long(record: Record) -> Iterator[Figure]:
    found = record["programs"][GOSSAMER]
    pages, rates, rss = found["pages"], found["rates"], found["rss_mib"]
    share = rates[-1] / rates[0]
    said = f"{share:.0%} ({rates[-1]:,} : {rates[0]:,} pages/s)"
    yield Figure(f"{pages:,} pages: rate in the last tenth", "≥ 80 % of the first", said, share >= 0.8)
    said = f"{rss[-1]:,} MiB at the end, {rss[5]:,} at half, {rss[1]:,} after a tenth"
    wanted = "flat: the end ≤ 110 % of half way"
    yield Figure(f"{pages:,} pages: resident memory", wanted, said, rss[-1] <= 1.1 * rss[5])


def _frontier(record: Record) -> Iterator[Figure]:
    found = record["figures"]
    size = f"frontier, {found['urls']:,} URLs, {found['hosts']:,} hosts"
    mean, first, last = found["new_urls_per_second"], found["first_tenth"], found["last_tenth"]
    yield Figure(f"{size}: new URLs/s", "≥ 40,000 mean (stretch 60,000)", f"{mean:,}", mean >= 40_000)
    said = f"{last / first:.0%} ({last:,} : {first:,})"
    yield Figure(f"{size}: last tenth", "≥ half of the first", said, last >= first / 2)
    yield Figure(f"{size}: bytes written", "reported", f"{found['bytes_written_per_url']:,} per URL", None)
    lease, fsync = found["lease"], float(record["machine"]["fdatasync_p50_ms"])
    beside = f"beside {lease['settles_per_second']:,.0f} settles/s"
    said = f"{lease['p99_ms']:.1f} ms (p50 {lease['p50_ms']:.1f}) {beside}"
    # A store that cannot keep up with the settles asked for has not kept its promise beside them.
    met = lease["p99_ms"] <= 20 + fsync and lease["settles_per_second"] >= 1_900
    wanted = f"≤ 20 ms + one fdatasync ({fsync:.1f} ms) beside 2,000 settles/s"
    yield Figure(f"{size}: lease p99", wanted, said, met)
    rss = found["rss_mib"]
    yield Figure(f"{size}: peak memory", "≤ 512 MiB", f"{rss:,} MiB", rss <= 512)


def _known(record: Record) -> Iterator[Figure]:
    found = record["figures"]
    for how, name, least in (("zipf", "Zipf's law", 300_000), ("uniform", "evenly", None)):
        drawn = found[how]
        rate, known = drawn["checks_per_second"], drawn["known_to_the_worker"]
        said = f"{rate:,}/s, {known:.0%} of them known to the worker itself"
        wanted = f"≥ {least:,}/s" if least else "reported"
        met = rate >= least if least else None
        yield Figure(f"known URLs of {found['urls']:,}, drawn by {name}" if least else
                     f"known URLs of {found['urls']:,}, drawn {name}", wanted, said, met)  # fmt: skip


def _shared(record: Record) -> Iterator[Figure]:
    what = "one worker with its frontier in Redis, to the embedded engine"
    ours, theirs = _rate(record, "redis"), _rate(record, "embedded")
    if ours is None or theirs is None:
        yield Figure(what, "≥ 70 %", "not measured", None)
        return
    yield Figure(
        what, "≥ 70 %", f"{ours / theirs:.0%} ({ours:,.0f} : {theirs:,.0f} pages/s)", ours >= 0.7 * theirs
    )
    spent = record["redis_us_per_page"]
    yield Figure(
        "CPU of Redis a page", "≤ 30 µs", f"{spent:.0f} µs, its append-only file included", spent <= 30
    )


def _redis_store(record: Record) -> Iterator[Figure]:
    found = record["figures"]
    size = f"Redis, {found['urls']:,} URLs of {found['url_bytes']} bytes, {found['hosts']:,} hosts"
    pending, terminal = found["bytes_pending"], found["bytes_terminal"]
    yield Figure(f"{size}: memory of a pending one", "≤ 350 bytes", f"{pending:.0f} bytes", pending <= 350)
    yield Figure(f"{size}: memory of a done one", "≤ 120 bytes", f"{terminal:.0f} bytes", terminal <= 120)
    said = f"{found['new_urls_per_second']:,} new/s ({found['redis_us_per_new_url']} µs of Redis), "
    said += (
        f"{found['settles_per_second']:,} settles with leases/s ({found['redis_us_per_settle_and_lease']} µs)"
    )
    yield Figure(f"{size}: one client", "reported", said, None)


def _startup(record: Record) -> Iterator[Figure]:
    median, worst = record["figures"]["median_s"], record["figures"]["worst_s"]
    said = f"{median:.3f} s (worst of ten {worst:.3f})"
    yield Figure("`gossamer --help`", "≤ 0.3 s", said, median <= 0.3)


_JUDGES: dict[str, Callable[[Record], Iterator[Figure]]] = {
    "small": _small,
    "large": _large,
    "workers": _workers,
    "long": _long,
    "shared": _shared,
    "redis_store": _redis_store,
    "frontier": _frontier,
    "known": _known,
    "startup": _startup,
}

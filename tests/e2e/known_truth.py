"""The truth about a known web against what a crawl of it left: the one judge of all tests in this folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from crawl_command import QUICK, Command

from gossamer.model.record import State
from gossamer.ports.blobs import BODY, key_of
from gossamer.testing.web import KnownWeb, Limits, OriginLog, judge
from gossamer.testing.web.reply import Request

PRODUCT = Limits()
OK = "ok"
NOTHING: Mapping[str, tuple[State, str]] = MappingProxyType({})


def crawl_of(web: KnownWeb, folder: Path, *more: str, per_host: int = 4) -> Command:
    """The plain crawl of this web, with all of its hosts in scope."""
    allow = [word for host in web.hosts for word in ("--allow", host)]
    return Command(folder, ["crawl", *web.seeds, *allow], [*QUICK, "-s", f"per_host={per_host}", *more])


def complaints(
    web: KnownWeb,
    crawl: Command,
    log: OriginLog,
    *,
    per_host: int = 4,
    limits: Limits = PRODUCT,
    lost_leases: Sequence[Counter[str]] = (),
    bodies: bool = False,
    instead: Mapping[str, tuple[State, str]] = NOTHING,
) -> list[str]:
    """Everything that is not as it must be, each beginning with its kind; empty for a crawl without fault.

    `lost_leases` are the pages that were in hand at each kill: they may be asked for once more. `instead` tells of pages that
    a spider makes end otherwise than the web foretells, without an item and after any number of requests.
    """
    lost_leases = [*lost_leases, Counter(dict.fromkeys(instead, 1000))]
    return [
        *wrong_records(web, crawl, limits, instead),
        *wrong_items(web, crawl, limits, instead),
        *crawl.left_over(),
        *rude(web, log, per_host),
        *too_often(web, log, limits, lost_leases),
        *(missing_bodies(web, crawl, limits) if bodies else ()),
    ]


def wrong_records(
    web: KnownWeb,
    crawl: Command,
    limits: Limits = PRODUCT,
    instead: Mapping[str, tuple[State, str]] = NOTHING,
) -> list[str]:
    expected = {
        url: (outcome.state, "" if outcome.code == OK else outcome.code)
        for url, outcome in web.expected(limits).items()
    } | dict(instead)
    found = crawl.records()
    with crawl.reading() as db:
        twice = db.execute("SELECT url FROM record GROUP BY url HAVING count(*) > 1").fetchall()
    return [
        *(f"lost: {url}" for url in expected.keys() - found.keys()),
        *(f"unexpected: {url}" for url in found.keys() - expected.keys()),
        *(f"twice: {url}" for (url,) in twice),
        *(
            f"{'poison' if found[url][1] == 'poison' else 'outcome'}: {url} {told(found[url])}, not {told(expected[url])}"
            for url in expected.keys() & found.keys()
            if expected[url] != found[url]
        ),
    ]


def told(outcome: tuple[State, str]) -> str:
    return f"{outcome[0].name}({outcome[1]})"


def wrong_items(
    web: KnownWeb,
    crawl: Command,
    limits: Limits = PRODUCT,
    instead: Mapping[str, tuple[State, str]] = NOTHING,
) -> list[str]:
    expected, found = web.items(limits), crawl.items()
    expected = {url: item for url, item in expected.items() if url not in instead}
    times = Counter(item["url"] for item in found)
    return [
        *(f"item lost: {url}" for url in expected.keys() - times.keys()),
        *(f"item unexpected: {url}" for url in times.keys() - expected.keys()),
        *(f"item twice: {url}" for url, number in times.items() if number > 1),
        *(
            f"item wrong: {item}, not {expected[item['url']]}"
            for item in found
            if item["url"] in expected and item != expected[item["url"]]
        ),
    ]


def rude(web: KnownWeb, log: OriginLog, per_host: int) -> list[str]:
    robots = {host: web.robots(host) for host in web.hosts}
    found = judge(log, per_host, web.delays(), robots, foreign=[web.foreign])
    return [f"rude: {violation.kind} {violation.host} {violation.detail}" for violation in found]


def too_often(
    web: KnownWeb, log: OriginLog, limits: Limits, lost_leases: Iterable[Counter[str]]
) -> list[str]:
    """More requests for a page than a crawl without faults sends, and one for each time it was in the hands of the killed."""
    allowed = Counter(web.requests(limits))
    for lost in lost_leases:
        allowed.update({url: n for url, n in lost.items() if url in allowed})
    hits = log.hits_by_url()
    return [
        f"refetched: {url} {hits[url]} times, {most} would do"
        for url, most in allowed.items()
        if hits[url] > most
    ]


def refetched(web: KnownWeb, log: OriginLog, limits: Limits = PRODUCT) -> int:
    """How many requests for pages there were beyond those of a crawl without faults."""
    hits = log.hits_by_url()
    return sum(max(hits[url] - most, 0) for url, most in web.requests(limits).items())


def missing_bodies(web: KnownWeb, crawl: Command, limits: Limits = PRODUCT) -> list[str]:
    """Pages that are settled, and whose body is in no blob."""
    return [
        f"blob: {url}"
        for url, outcome in web.expected(limits).items()
        if outcome.code == OK and not blob_of(crawl, body_of(web, url)).exists()
    ]


def body_of(web: KnownWeb, url: str) -> bytes:
    """What the web answers in the end."""
    host, _, path = url.removeprefix("http://").partition("/")
    head = f"GET /{path} HTTP/1.1\r\n\r\n".encode()
    return b"".join(web.answer(Request(host, head), attempt=99).body)


def blob_of(crawl: Command, body: bytes) -> Path:
    kind, _, digest = key_of(BODY, body).partition("-")
    return crawl.state / "blobs" / kind / digest[:2] / digest[2:4] / digest


def spare_page(web: KnownWeb) -> str:
    """A page that links to others first, and that nothing would be lost without: all it links to is linked elsewhere too."""
    nodes = web._graph.nodes
    urls = {node.number: f"http://{web.hosts[node.host]}{node.path}" for node in nodes}
    for number in nodes[0].links:
        below = {link for link in nodes[number].links if nodes[link].layer > nodes[number].layer}
        peers = [nodes[peer] for peer in nodes[0].links if peer not in {0, number}]
        others = {link for peer in peers for link in peer.links}
        if number and below and below <= others:
            return urls[number]
    raise AssertionError("this web has no spare page in its first layer: take another seed")


def run_of(web: KnownWeb, folder: Path, handler: str, *more: str, before: str = "") -> Command:
    """`gossamer run` of a spider that does what the plain crawl does, with these lines at the beginning of its handler."""
    file = folder / "author.py"
    lines = "\n".join(f"    {line}" for line in handler.splitlines())
    file.write_text(
        f"""
from gossamer import Page, Spider
{before}
author = Spider("author", start={web.seeds!r})

@author.page()
def page(page: Page):
{lines}
    yield {{"url": page.url, "status": page.status, "title": page.title, "depth": page.depth}}
    yield page.follow()
""",
        encoding="utf-8",
    )
    allow = [word for host in web.hosts for word in ("--allow", host)]
    return Command(folder, ["run", str(file), *allow], [*QUICK, *more])

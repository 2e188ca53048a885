"""Links to where a crawl must not look: rows D04, U03 to U05, U13 and N03 to N08, through the whole engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_crawl import crawl, crawl_site
from hostile_origin import GOOD, HOSTILE, hostile_site, html, linking, moved

from gossamer import Page, Spider
from gossamer.model.record import State
from gossamer.spiders.hooks import Failure

BLOCKED = (State.FAILED, "blocked_address")
# PORT is one on which a site listens, on every address of this machine that begins with 127.
INSIDE = [
    "http://127.0.0.2:PORT/",
    "http://localhost:PORT/",
    "http://a.localhost:PORT/",
    "http://LOCALHOST.:PORT/",
    "http://2130706434:PORT/",
    "http://0x7f.2:PORT/",
    "http://0177.0.0.2:PORT/",
    "http://127.2:PORT/",
    "http://①②⑦.0.0.2:PORT/",
    "http://0.0.0.0:PORT/",
    "http://[::]:PORT/",
    "http://[::1]:PORT/",
    "http://[::ffff:127.0.0.2]:PORT/",
    "http://[::ffff:7f00:2]:PORT/",
    "http://[64:ff9b::7f00:2]:PORT/",
    "http://[2002:7f00:2::]:PORT/",
    "http://[fe80::1]:PORT/",
]
NEAR = [
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.254/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[fc00::1]/",
]
METADATA = [
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/latest/",
    "http://0xA9FEA9FE/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[fd00:ec2::254]/",
    "http://100.100.100.200/",
]


@pytest.mark.parametrize("robots", [True, False])
@pytest.mark.parametrize("by", ["link", "redirect"])
async def test_no_way_leads_inside(tmp_path: Path, by: str, robots: bool) -> None:
    """D04, U04, U05, N04, N05: whatever is written, found or redirected to, only a host that was named may be private."""
    async with hostile_site({"/": html("<title>inside</title>")}, host="0.0.0.0") as inside:
        urls = [url.replace("PORT", str(inside.port)) for url in (*INSIDE, *NEAR, *METADATA)]
        ways = {f"/to/{n}": moved(url.encode()) for n, url in enumerate(urls)}
        hub = linking(*urls) if by == "link" else linking(*ways)
        async with hostile_site({HOSTILE: hub, **ways}) as here:
            found = await crawl_site(tmp_path, here, allow="*", robots=robots)
            assert await found.complaints(here, dict.fromkeys(urls, BLOCKED)) == []
        assert inside.connections == 0
        assert not any(item["title"] == "inside" for item in found.items)


async def test_metadata_services_stay_closed_where_networks_are_opened(tmp_path: Path) -> None:
    """N04: private networks that were allowed do not open the addresses where clouds give out credentials."""
    async with hostile_site(linking(*METADATA)) as here:
        networks = ["127.0.0.0/8", "169.254.0.0/16", "100.64.0.0/10", "fc00::/7"]
        named = ["127.0.0.1", "169.254.169.254", "100.100.100.200", "[fd00:ec2::254]"]
        found = await crawl_site(tmp_path, here, allow="*", allow_net=networks, private_hosts=named)
        assert await found.complaints(here, dict.fromkeys(METADATA, BLOCKED)) == []


async def test_a_refusal_tells_no_address(tmp_path: Path) -> None:
    """N08: author and log learn the code and one sentence that is the same for all, not what a name resolves to."""
    told: list[Failure] = []
    async with hostile_site({}, host="0.0.0.0") as inside:
        urls = [f"http://localhost:{inside.port}/", "http://169.254.169.254/", "http://10.0.0.1/"]
        async with hostile_site(linking(*urls)) as here:
            spider = Spider("asker", start=[here.url(path) for path in (HOSTILE, *GOOD)])

            @spider.page()
            def read(page: Page) -> Iterator[Any]:
                yield {"url": page.url, "title": page.title}
                yield page.follow()

            @spider.failed
            def note(failure: Failure) -> None:
                told.append(failure)

            found = await crawl(tmp_path, spider, allow="*", robots=False)
            assert await found.complaints(here, dict.fromkeys(urls, BLOCKED)) == []
    assert len(told) == 3
    assert len({(failure.code, failure.detail) for failure in told}) == 1
    assert not any("127.0.0.1" in text for text in (*found.lines, *(failure.detail for failure in told)))


@pytest.mark.parametrize("robots", [True, False])
async def test_names_that_lead_nowhere(tmp_path: Path, robots: bool) -> None:
    """N03: hosts without an address end FAILED(dns) within their patience, whoever of robots.txt and page asks first."""
    urls = [f"http://{name}.invalid/" for name in ("nowhere", "xn--nxasmq6b", "a-" + "b" * 60, "_")]
    async with hostile_site(linking(*urls)) as here:
        found = await crawl_site(tmp_path, here, allow="*", robots=robots, host_patience=0.2)
        assert await found.complaints(here, dict.fromkeys(urls, (State.FAILED, "dns"))) == []


@pytest.mark.parametrize("robots", [True, False])
async def test_a_port_where_nobody_listens(tmp_path: Path, robots: bool) -> None:
    """A host that does not let in is FAILED(connect) within its patience."""
    async with hostile_site({}, host="127.0.0.2") as gone:
        url = gone.url("/x")
    async with hostile_site(linking(url)) as here:
        settings: dict[str, Any] = {"private_hosts": ["127.0.0.1", "127.0.0.2"], "host_patience": 0.2}
        found = await crawl_site(tmp_path, here, allow="*", robots=robots, **settings)
        assert await found.complaints(here, {url: (State.FAILED, "connect")}) == []


@pytest.mark.parametrize(
    ("href", "reason"),
    [
        ("http://a@b@c/", "refused:userinfo"),
        ("http://good.example\\@127.0.0.2/", "refused:offsite"),
        ("http://good.example#@127.0.0.2/", "refused:offsite"),
        ("http://good.example?@127.0.0.2/", "refused:offsite"),
        ("http://user:pass@good.example/", "refused:userinfo"),
        ("http:///good.example/", "refused:offsite"),
        ("http:/\\good.example/", "refused:offsite"),
        ("http://good.example:0/", "refused:port"),
        ("http://good.example:22/", "refused:port"),
        ("http://good.example:6379/", "refused:port"),
        ("http://good.example:65536/", "refused:syntax"),
        ("http://[::1%25lo]/", "refused:syntax"),
        ("http://" + "a" * 10_000 + ".example/", "refused:host"),
        ("http://xn--a.example/", "refused:syntax"),
        ("http://$(id).example/", "refused:host"),
    ],
)
async def test_confusing_authorities_have_one_meaning(tmp_path: Path, href: str, reason: str) -> None:
    """U03, U06, U13: a link is refused by its reason, or goes to the host that browsers would see, and to no other."""
    async with hostile_site({}, host="127.0.0.2") as other, hostile_site(linking(href)) as here:
        found = await crawl_site(tmp_path, here)
        assert await found.wrongs(here) == []
        counters = await found.counters()
        assert {name: n for name, n in counters.items() if name.startswith("refused:")} == {reason: 1}
        assert other.connections == 0

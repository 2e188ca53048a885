"""From what a handler wants to follow to the links that are pushed: which, with what priority, and why the others are not."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gossamer.crawling.knowing import Known
from gossamer.crawling.outlinks import Outlinks, Refusals
from gossamer.model.record import Link
from gossamer.model.request import Request, decode
from gossamer.model.scope import Boundary, Scope
from gossamer.model.settings import Settings
from gossamer.spiders.follow import Follow

HOST = "example.com:443"


def outlinks(depth: int | None = None, **settings: Any) -> Outlinks:
    made = Settings(**settings)
    scope = Scope(allow=("example.com",), deny=made.deny, depth=depth)
    return Outlinks(made, Boundary(scope), Known())


def urls(*paths: str) -> list[str]:
    return [f"https://example.com{path}" for path in paths]


def follow(out: Outlinks, *paths: str, depth: int = 1, **like: Any) -> list[Link]:
    return out.of_follow(
        Follow(urls(*paths), Request("https://example.com/", **like) if like else None), depth, Refusals()
    )


def test_plain_links_carry_nothing_but_their_url() -> None:
    """The hot path: a key, the host, the priority of the depth, and no request."""
    [link] = follow(outlinks(), "/a", depth=2)
    assert (link.url, link.host, link.depth, link.request) == ("https://example.com/a", HOST, 2, b"")
    [again] = outlinks().of_request(Request("https://example.com/a"), 2, Refusals())
    assert again == link, "the long way makes the same record of the same URL"


def test_what_is_acknowledged_is_not_pushed_again() -> None:
    """Asking changes nothing; only a durable settle makes a link known."""
    out = outlinks()
    links = follow(out, "/a", "/b")
    assert [link.url for link in follow(out, "/a", "/b")] == urls("/a", "/b")
    out.acknowledge(links)
    assert [link.url for link in follow(out, "/a", "/b", "/c")] == urls("/c")


def test_the_same_page_found_nearer_is_pushed_again() -> None:
    """Breadth first, a nearer link has the higher priority, which a waiting record takes over."""
    out = outlinks()
    out.acknowledge(follow(out, "/a", depth=5))
    assert follow(out, "/a", depth=6) == []
    assert len(follow(out, "/a", depth=4)) == 1


@pytest.mark.parametrize(("order", "nearer_first"), [("breadth", True), ("depth", False)])
def test_the_order_is_in_the_priority(order: str, nearer_first: bool) -> None:
    """An author's own priority outweighs every depth."""
    out = outlinks(order=order)
    [near], [far] = follow(out, "/a", depth=1), follow(out, "/b", depth=9)
    assert (near.priority > far.priority) is nearer_first
    [wanted] = follow(out, "/c", depth=500, priority=1)
    assert wanted.priority > near.priority
    assert wanted.priority > far.priority


def test_what_is_out_of_scope_is_counted_with_an_example() -> None:
    """Not stored: counted by cause, and the first of each cause is told."""
    out, refusals = outlinks(depth=3, deny=("*/private/*",)), Refusals()
    wanted = Follow(
        ["https://other.example/", "https://other.example/2", *urls("/private/x", "/fine")],
        refused=Counter(scheme=2),
    )
    links = out.of_follow(wanted, 3, refusals)
    assert [link.url for link in links] == urls("/fine")
    assert refusals.counts["refused:scheme"] == 2
    assert sum(refusals.counts.values()) == 5
    assert len(refusals.samples) == 2
    assert ("https://other.example/") in dict(refusals.samples).values()
    too_deep = Refusals()
    assert out.of_follow(Follow(urls("/deep")), 4, too_deep) == []
    assert sum(too_deep.counts.values()) == 1


def test_a_request_travels_with_its_record() -> None:
    """Method, body, label and meta come back as they were given; other methods are other records."""
    out = outlinks()
    request = Request("https://example.com/s", method="POST", body=b"q=1", label="result", meta={"n": 1})
    [link] = out.of_request(request, 1, Refusals())
    back = decode(link.url, link.request)
    assert (back.method, back.body, back.label, back.meta) == ("POST", b"q=1", "result", {"n": 1})
    [plain] = out.of_request(Request("https://example.com/s"), 1, Refusals())
    [other] = out.of_request(request.changed(body=b"q=2"), 1, Refusals())
    assert len({link.key, plain.key, other.key}) == 3


def test_an_own_key_is_the_identity_and_no_dedupe_has_none() -> None:
    """Two URLs of one key are one record; without dedupe the same URL is a new record each time."""
    out = outlinks()
    [one], [two] = (out.of_request(Request(url, key="k"), 1, Refusals()) for url in urls("/1", "/2"))
    assert one.own_key
    assert one.key == two.key
    out.acknowledge([one])
    assert len(follow(out, "/1")) == 1, "that key was met, not this URL"
    again = [follow(out, "/x", dedupe=False)[0].key for _ in range(3)]
    assert len(set(again)) == 3


def test_a_seed_that_is_no_url_is_refused_not_raised() -> None:
    """One bad address costs nothing else."""
    refusals = Refusals()
    assert outlinks().of_request(Request("mailto:someone@example.com"), 0, refusals) == []
    assert sum(refusals.counts.values()) == 1


def test_a_trap_is_known_by_its_shape() -> None:
    """It becomes a record and is never fetched, so that it can be explained."""
    out = outlinks()
    maze = "https://example.com" + "/again" * 3 + "/"
    assert out.is_trap(maze)
    assert not out.is_trap("https://example.com/once/again/")
    assert len(follow(out, "/again/again/again/")) == 1

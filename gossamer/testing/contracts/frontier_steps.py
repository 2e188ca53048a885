"""The short words in which the frontier's contract tests are written: a page, a begun task, a lease, a verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b

from gossamer.model.host import HostOrder, HostView, RobotsOrder, Wish
from gossamer.model.item import Item
from gossamer.model.record import Grant, Kind, Leases, Link, Outcome, Verdict
from gossamer.model.task import TaskSpec, TaskView
from gossamer.ports.frontier import Explained, Frontier

Elapse = Callable[[float], Awaitable[None]]
"""The fixture that lets the store's time pass."""

RUDE = Wish(robots=False)
"""No robots to ask for first: tests about other things stay short."""

HOST = "a.test"
RULES = RobotsOrder(b"User-agent: *\nDisallow:", ttl=100.0)


def key(identity: str) -> bytes:
    return blake2b(identity.encode(), digest_size=16).digest()


def page(path: str = "/", host: str = HOST, **fields: object) -> Link:
    url = f"https://{host}{path}"
    return Link(key=key(url), url=url, host=host, **fields)  # type: ignore[arg-type]


def pages(count: int, host: str = HOST) -> list[Link]:
    return [page(f"/{n}", host) for n in range(count)]


def seed(name: str = "0", **fields: object) -> Link:
    url = f"seed:{name}"
    return Link(key=key(url), url=url, host="", kind=Kind.SEED, **fields)  # type: ignore[arg-type]


def items(*texts: bytes) -> list[Item]:
    """Items without keys."""
    return [Item(text) for text in texts]


async def begin(
    frontier: Frontier,
    *links: Link,
    name: str = "t",
    wish: Wish = RUDE,
    seeded: bool = False,
    **fields: object,
) -> str:
    """Open a task with these links and a session to work on it; the session."""
    from gossamer.model.task import Command

    await frontier.open_task(TaskSpec(name=name, wish=wish, **fields))  # type: ignore[arg-type]
    await frontier.push(name, links)
    if seeded:
        await frontier.control(name, Command.SEEDED)
    return await frontier.open_session("worker")


async def take(frontier: Frontier, session: str, n: int = 100, name: str = "t") -> list[Grant]:
    return (await frontier.lease(session, {name: n})).grants


async def take_one(frontier: Frontier, session: str, name: str = "t") -> Grant:
    (grant,) = await take(frontier, session, 1, name)
    return grant


async def settle(frontier: Frontier, session: str, *outcomes: Outcome, **want: int) -> Leases:
    return await frontier.settle(session, outcomes, want)


def done(grant: Grant, code: str = "", **fields: object) -> Outcome:
    return Outcome(grant.number, Verdict.DONE, code, **fields)  # type: ignore[arg-type]


def failed(grant: Grant, code: str = "timeout", **fields: object) -> Outcome:
    return Outcome(grant.number, Verdict.FAILED, code, **fields)  # type: ignore[arg-type]


def retry(grant: Grant, **fields: object) -> Outcome:
    return Outcome(grant.number, Verdict.RETRY, **fields)  # type: ignore[arg-type]


def ordered(grant: Grant, sent_ago: float | None = 0.0, **order: object) -> Outcome:
    """DONE, with this order about the host."""
    return done(grant, sent_ago=sent_ago, host=HostOrder(**order))  # type: ignore[arg-type]


async def ask_robots(frontier: Frontier, session: str, rules: RobotsOrder = RULES, name: str = "t") -> None:
    """Take the one robots lease that stands before the pages, and answer it."""
    (grant,) = await take(frontier, session, 1, name)
    assert grant.kind is Kind.ROBOTS
    await settle(frontier, session, done(grant, sent_ago=0.0, host=HostOrder(good=True, robots=rules)))


async def life(frontier: Frontier, link: Link, name: str = "t") -> Explained:
    found = await frontier.explain(name, link.key, link.host)
    assert found is not None
    return found


async def state(frontier: Frontier, name: str = "t") -> TaskView:
    (view,) = await frontier.tasks([name])
    return view


async def row(frontier: Frontier, host: str = HOST) -> HostView:
    return (await frontier.hosts([host]))[host]


def urls(grants: Sequence[Grant]) -> list[str]:
    return [grant.url for grant in grants]

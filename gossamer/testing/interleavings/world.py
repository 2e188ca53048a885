"""What a random life is made of: tasks with their wishes, hosts, links, verdicts, orders, steps in time."""

from __future__ import annotations

from hashlib import blake2b
from random import Random

import msgspec

from gossamer.model.host import HostOrder, RobotsOrder, Wish
from gossamer.model.item import Item
from gossamer.model.record import Grant, Kind, Link, Outcome, Verdict
from gossamer.model.task import Command, TaskSpec

WISHES = (
    Wish(robots=False),
    Wish(robots=False, per_host=1),
    Wish(robots=False, delay=1.0),
    Wish(robots=False, first_delay=0.5),
    Wish(robots=False, pages_per_host=2),
    Wish(per_host=2),
    Wish(per_host=3, pages_per_host=3),
    Wish(first_delay=0.25),
)
ORDERS = (
    None,
    None,
    HostOrder(good=True),
    HostOrder(good=True, latency=0.125),
    HostOrder(good=True, turn=1.0, delay=1.0),
    HostOrder(good=True, delay=0.0),
    HostOrder(bad=True),
    HostOrder(bad=True, park=2.0, level=1),
    HostOrder(bad=True, park=9000.0, level=2, turn=0.5),
    HostOrder(bad=True, give_up="dns"),
)
RULES = (
    HostOrder(good=True, robots=RobotsOrder(b"", 86_400.0)),
    HostOrder(good=True, robots=RobotsOrder(b"User-agent: *\nDisallow: /x", 8.0)),
    HostOrder(
        good=True, turn=1.0, robots=RobotsOrder(b"User-agent: *\nCrawl-delay: 1", 60.0, crawl_delay=1.0)
    ),
    HostOrder(bad=True, park=1.0, level=1),
    HostOrder(bad=True, give_up="robots_unreachable"),
    None,
)
STEPS = (0.125, 0.5, 1.0, 1.0, 2.0, 4.0, 6.0, 7.0, 15.0, 4_000.0)
PRIORITIES = (0, 0, 0, 1, 5, -3)
VERDICTS = (Verdict.DONE,) * 5 + (
    Verdict.FAILED,
    Verdict.FAILED,
    Verdict.SKIPPED,
    Verdict.RETRY,
    Verdict.RETRY,
    Verdict.RELEASE,
)
CODES = {
    Verdict.DONE: ("", "", "http_404", "redirected"),
    Verdict.FAILED: ("timeout", "http_500"),
    Verdict.SKIPPED: ("robots", "trap"),
}
COMMANDS = (
    (Command.SEEDED,) * 5
    + (Command.PAUSE, Command.PAUSE, Command.RESUME, Command.RESUME, Command.RESUME)
    + (
        Command.RETRY_FAILED,
        Command.RETRY_FAILED,
        Command.UPDATE,
        Command.CANCEL,
        Command.FINISH,
        Command.FAIL,
    )
)


class World:
    """The names and the dice of one seed."""

    def __init__(self, seed: int) -> None:
        self.dice = Random(seed)
        self.seed = seed
        self.hosts = [f"h{n}.s{seed}.test" for n in range(self.dice.randint(1, 4))]
        self.specs = [self.spec(f"task-{seed}-{n}") for n in range(self.dice.randint(1, 3))]
        self._items = 0

    def spec(self, name: str) -> TaskSpec:
        """A task's wish, and sometimes a limit; sometimes it never ends by itself."""
        dice = self.dice
        wish = dice.choice(WISHES)
        if wish.first_delay and dice.random() < 0.3:
            wish = msgspec.structs.replace(wish, eager=(self.hosts[0],))
        return TaskSpec(
            name=name,
            wish=wish,
            max_pages=dice.choice((2, 5, 8)) if dice.random() < 0.25 else None,
            keep_open=dice.random() < 0.1,
            max_items=dice.choice((1, 4, 9)) if dice.random() < 0.2 else None,
            max_errors=dice.choice((1, 3, 6)) if dice.random() < 0.2 else None,
            log_limit=dice.choice((2, 4)) if dice.random() < 0.2 else None,
            pages_per_pattern=dice.choice((1, 3)) if dice.random() < 0.2 else None,
        )

    def links(self, most: int) -> list[Link]:
        return [self.link() for _ in range(self.dice.randint(0, most))]

    def link(self) -> Link:
        """One of about thirty URLs, so that many are known; a few with an author's own key, a few seeds."""
        dice = self.dice
        host, path, kind = dice.choice(self.hosts), dice.randrange(8), dice.random()
        priority = dice.choice(PRIORITIES)
        delay = dice.choice((1.0, 3.0)) if dice.random() < 0.08 else 0.0
        if kind < 0.05:
            url = f"seed:{path}"
            return Link(_key(url), url, "", priority, kind=Kind.SEED, delay=delay)
        if kind < 0.12:
            url = f"https://{host}/own/{path % 3}"
            return Link(_key(f"own {path % 3}"), url, host, priority, own_key=True, delay=delay)
        url = f"https://{host}/{path}"
        return Link(
            _key(url),
            url,
            host,
            priority,
            depth=path % 3,
            request=b'{"m":1}' if path == 7 else b"",
            delay=delay,
        )

    def outcome(self, grant: Grant) -> Outcome:
        """A verdict on the grant and everything that comes with it."""
        dice = self.dice
        if grant.kind is Kind.ROBOTS:
            verdict = dice.choice((Verdict.DONE, Verdict.DONE, Verdict.RETRY, Verdict.RELEASE))
            sent = None if verdict is Verdict.RELEASE else dice.choice((0.0, 0.25))
            order = dice.choice(RULES[:3]) if verdict is Verdict.DONE else dice.choice(RULES[3:])
            return Outcome(grant.number, verdict, task=grant.task, sent_ago=sent, host=order)
        verdict = dice.choice(VERDICTS)
        outcome = Outcome(grant.number, verdict, task=grant.task)
        if verdict in CODES:
            outcome.code = dice.choice(CODES[verdict])
        if verdict is Verdict.RETRY:
            self._dress_retry(outcome, grant)
        if grant.kind is Kind.PAGE and verdict is not Verdict.RELEASE:
            outcome.sent_ago = dice.choice((None, 0.0, 0.25, 1.0))
            # Giving a host up is the last and rarest order.
            outcome.host = dice.choice(ORDERS if dice.random() < 0.3 else ORDERS[:-2])
        if verdict in (Verdict.DONE, Verdict.RETRY):
            self._dress_answer(outcome)
        return outcome

    def _dress_retry(self, outcome: Outcome, grant: Grant) -> None:
        dice = self.dice
        outcome.delay = dice.choice((0.0, 0.5, 3.0))
        outcome.priority = dice.choice((None, None, -10))
        outcome.burned = dice.random() < 0.7
        outcome.crashed = dice.random() < 0.2
        if grant.kind is Kind.SEED:
            outcome.request = b'{"place":%d}' % dice.randrange(9)

    def _dress_answer(self, outcome: Outcome) -> None:
        outcome.links = self.links(4)
        for _ in range(self.dice.choice((0, 0, 1, 2))):
            self._items += 1
            key = self.dice.choice((None, None, f"key {self._items}"))
            outcome.items.append(Item(b'{"item":%d}' % self._items, key))
        if self.dice.random() < 0.2:
            outcome.body = f"body {self._items}"
        if outcome.links:
            outcome.counts = {"bytes": 10 * len(outcome.links)}
            outcome.samples = [("offsite", outcome.links[0].url)]


def _key(identity: str) -> bytes:
    found = _KEYS.get(identity)
    if found is None:
        found = _KEYS[identity] = blake2b(identity.encode(), digest_size=16).digest()
        if len(_KEYS) > 10_000:
            _KEYS.clear()
    return found


_KEYS: dict[str, bytes] = {}

"""The play: draws the next step, asks the store, tells the referee, writes the transcript."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import zip_longest
from typing import Any

import msgspec

from gossamer.model.errors import GossamerError
from gossamer.model.item import Item
from gossamer.model.record import Grant, Leases, Outcome, Verdict
from gossamer.model.task import ENDED, Command, TaskState
from gossamer.ports.frontier import SESSION_TTL, Frontier
from gossamer.testing.interleavings.referee import Referee, Violation
from gossamer.testing.interleavings.world import COMMANDS, RULES, STEPS, World

Elapse = Callable[[float], Awaitable[None]]
Event = tuple[Any, ...]

DRAIN_ROUNDS = 200


class Play:
    """One seed on one store."""

    def __init__(self, frontier: Any, elapse: Elapse, seed: int) -> None:
        self.frontier: Frontier = frontier
        self.elapse = elapse
        self.world = World(seed)
        self.dice = self.world.dice
        self.referee = Referee()
        self.sessions: list[str] = []  # also the dead: they go on trying
        self.alive: dict[str, float] = {}  # session → its last beat
        self.called = 0.0
        self.spent: list[int] = []  # tokens that were settled or lost
        self.cursors: dict[str, dict[str, int]] = {}  # task → sink → where it stands
        self.trimmed: dict[str, int] = {}  # task → what all sinks held, so that it may be gone
        self.transcript: list[Event] = []
        self.fresh: Sequence[Grant] = ()
        moves = ((self.push, 5), (self.settle, 10), (self.lease, 5), (self.wait, 4), (self.control, 2), (self.beat, 2),
                 (self.reap, 2), (self.release, 1), (self.renew, 1), (self.sink, 2))  # fmt: skip
        self.moves = [move for move, weight in moves for _ in range(weight)]

    @property
    def names(self) -> list[str]:
        return [spec.name for spec in self.world.specs]

    async def run(self, steps: int) -> list[Event]:
        try:
            await self.begin()
            for _ in range(steps):
                await self.dice.choice(self.moves)()
                await self.check()
            await self.drain()
            await self.check_ends()
            await self.leave()
        except (Violation, GossamerError) as broken:
            tail = "\n".join(f"  {event}" for event in self.transcript[-6:])
            said = (
                f"seed {self.world.seed}, step {len(self.transcript)}: {broken}\nThe last steps were:\n{tail}"
            )
            raise Violation(said) from None
        return self.transcript

    async def begin(self) -> None:
        for spec in self.world.specs:
            await self.frontier.open_task(spec)
        await self.look()
        for _ in range(self.dice.randint(1, 3)):
            await self.open_session()
        for name in self.names:
            await self.push(name, most=12)
        await self.check()

    def say(self, *event: Any) -> None:
        self.transcript.append(event)

    def enter(self) -> None:
        """The store forgives sessions the time in which nobody called it; a call that was refused is none."""
        now = self.referee.now
        if now - self.called > SESSION_TTL:
            self.alive = dict.fromkeys(self.alive, now)
        self.called = now

    # Moves

    async def wait(self) -> None:
        seconds = self.dice.choice(STEPS[:-1] if self.dice.random() < 0.9 else STEPS)
        await self.pass_time(seconds)

    async def pass_time(self, seconds: float) -> None:
        await self.elapse(seconds)
        self.referee.now += seconds
        self.say("wait", seconds)

    async def push(self, name: str = "", most: int = 6) -> None:
        name = name or self.dice.choice(self.names)
        links = self.world.links(most)
        try:
            answer = await self.frontier.push(name, links)
        except GossamerError as error:
            self.refused(error, may=self.referee.state[name].state in ENDED)
            return
        self.enter()
        self.referee.pushed(name, links, answer)
        self.say("push", name, len(links), answer)

    async def lease(self) -> None:
        session, want = self.dice.choice(self.sessions), self.want()
        try:
            answer = await self.frontier.lease(session, want)
        except GossamerError as error:
            self.refused(error, may=session not in self.alive)
            return
        self.enter()
        await self.take(session, answer)
        self.say("lease", self.sessions.index(session), list(want.items()), answer)

    async def settle(self) -> None:
        holders = list(dict.fromkeys(holder for holder, _ in self.referee.held.values()))
        session = self.dice.choice(holders if holders and self.dice.random() < 0.8 else self.sessions)
        outcomes, want = self.outcomes(session), self.want()
        self.enter()
        answer = await self.frontier.settle(session, outcomes, want)
        self.spent += [outcome.number for outcome in outcomes]
        self.referee.settled(session, outcomes, answer)
        await self.take(session, answer)
        self.say("settle", self.sessions.index(session), outcomes, list(want.items()), answer)

    async def take(self, session: str, answer: Leases) -> None:
        await self.look()
        self.referee.granted(session, answer)
        self.referee.check_full(answer, self.trimmed)
        self.fresh = answer.grants

    def want(self) -> dict[str, int]:
        names = self.dice.sample(self.names, self.dice.randint(0, len(self.names)))
        return {name: self.dice.randint(0, 6) for name in names}

    def outcomes(self, session: str) -> list[Outcome]:
        """Verdicts on some of what the session holds, and now and then on what it does not hold."""
        held = self.referee.held_by(session)
        chosen = self.dice.sample(held, self.dice.randint(min(1, len(held)), len(held)))
        outcomes = [self.world.outcome(grant) for grant in chosen]
        if self.dice.random() < 0.2:
            outcomes.append(self.stray(outcomes))
        return outcomes

    def stray(self, outcomes: Sequence[Outcome]) -> Outcome:
        """A token that most likely is no good: spent, of another session, never given, or twice in one call."""
        twice = [outcome.number for outcome in outcomes[:1]]
        number = self.dice.choice([10**9, *self.spent[-3:], *list(self.referee.held)[:2], *twice])
        items, links = [Item(b'{"stray":true}')], self.world.links(2)
        task = self.dice.choice([*self.names, "", "nobody"])
        return Outcome(number, Verdict.DONE, items=items, links=links, task=task, sent_ago=0.0)

    async def control(self) -> None:
        name, command = self.dice.choice(self.names), self.dice.choice(COMMANDS)
        if command in (Command.CANCEL, Command.FINISH, Command.FAIL) and self.dice.random() < 0.5:
            return
        await self.command(name, command)

    async def command(self, name: str, command: Command) -> None:
        spec = self.world.spec(name) if command is Command.UPDATE else None
        try:
            answer = await self.frontier.control(name, command, reason="by hand", spec=spec)
        except GossamerError as error:
            self.refused(error, may=command in (Command.PAUSE, Command.RESUME) or self.is_over(name))
            return
        self.enter()
        if command is Command.RETRY_FAILED:
            self.referee.forgive_failed(name)
        self.say("control", name, command, _untimed(answer))
        await self.look()

    def is_over(self, name: str) -> bool:
        return self.referee.state[name].state in ENDED or self.referee.state[name].state is TaskState.PAUSED

    def refused(self, error: GossamerError, *, may: bool) -> None:
        if not may:
            raise Violation(f"refused without a reason: {type(error).__name__}: {error}")
        self.say("refused", type(error).__name__)

    # Sessions

    async def open_session(self) -> None:
        self.enter()
        session = await self.frontier.open_session(f"worker {len(self.sessions)}")
        self.sessions.append(session)
        self.alive[session] = self.referee.now

    async def beat(self) -> None:
        session = self.dice.choice(self.sessions)
        self.enter()
        answer = await self.frontier.beat(session)
        if answer != (session in self.alive):
            raise Violation(f"session {self.sessions.index(session)} beats and hears {answer}")
        if answer:
            self.alive[session] = self.referee.now
        self.say("beat", self.sessions.index(session), answer)

    async def reap(self) -> None:
        self.enter()
        dead = [name for name, beat in self.alive.items() if self.referee.now - beat > SESSION_TTL]
        answer = await self.frontier.reap()
        if answer != len(dead):
            raise Violation(f"{len(dead)} sessions stopped beating, {answer} were reaped")
        for session in dead:
            del self.alive[session]
            self.give_up([grant.number for grant in self.referee.held_by(session)])
        if dead and len(self.alive) == 0:
            await self.open_session()
        self.say("reap", answer)

    async def release(self) -> None:
        session = self.dice.choice(self.sessions)
        numbers = [grant.number for grant in self.referee.held_by(session)]
        some = (
            self.dice.sample(numbers, self.dice.randint(0, len(numbers)))
            if self.dice.random() < 0.7
            else None
        )
        self.enter()
        answer = await self.frontier.release(session, some)
        given = numbers if some is None else some
        if answer != len(given):
            raise Violation(f"{len(given)} leases were to be released, not {answer}")
        self.give_up(given)
        self.say("release", self.sessions.index(session), answer)

    async def renew(self) -> None:
        """A session closes in good order, and another one begins."""
        session = self.dice.choice(self.sessions)
        self.enter()
        await self.frontier.close_session(session)
        self.alive.pop(session, None)
        self.give_up([grant.number for grant in self.referee.held_by(session)])
        await self.open_session()
        self.say("renew", self.sessions.index(session))

    def give_up(self, numbers: Sequence[int]) -> None:
        self.referee.lost(numbers)
        self.spent += numbers

    # The log

    async def sink(self) -> None:
        """A sink reads on from its cursor, and holds some of what it read."""
        name, sink = self.dice.choice(self.names), self.dice.choice(("a", "b"))
        self.enter()
        stands = await self.frontier.cursor(name, 0, sink)
        log = await self.frontier.read(name, 0, stands[0], 50)
        self.referee.check_items(name, log, stands[0])
        cursors = self.cursors.setdefault(name, {})
        cursors[sink] = stands[0]
        if log:
            held = cursors[sink] = self.dice.choice(log).number
            self.trimmed[name] = max(self.trimmed.get(name, 0), min(cursors.values()))
            await self.frontier.advance(name, 0, sink, held, b"%d" % held)
            # One that is late must not move the cursor back.
            await self.frontier.advance(name, 0, sink, held - 1, b"late")
            if await self.frontier.cursor(name, 0, sink) != (held, b"%d" % held):
                raise Violation(f"the cursor of {name} at sink {sink} does not stand where it was put")
        self.say("sink", name, sink, stands, log)

    async def empty_log(self, name: str) -> None:
        """All sinks take what there is, so that a full log stops nobody."""
        self.enter()
        cursors = {sink: (await self.frontier.cursor(name, 0, sink))[0] for sink in ("a", "b")}
        log = await self.frontier.read(name, 0, 0, 10_000)
        self.referee.check_log(name, log, trimmed=self.trimmed.get(name, 0))
        for sink, stands in cursors.items():
            cursors[sink] = max([stands, *(item.number for item in log)])
            await self.frontier.advance(name, 0, sink, cursors[sink])
        self.cursors[name] = cursors
        self.trimmed[name] = max(self.trimmed.get(name, 0), min(cursors.values()))

    # Checks

    async def look(self) -> None:
        self.referee.state = {view.spec.name: view for view in await self.frontier.tasks(self.names)}

    async def check(self) -> None:
        """What must hold after every step; it is part of the transcript as well."""
        await self.look()
        for name in self.names:
            self.referee.check_ended(name)
            counters = await self.frontier.counters(name)
            self.referee.check_counters(name, counters)
            self.referee.check_limits(name, counters)
            self.say("counters", _untimed(self.referee.state[name]), {k: v for k, v in counters.items() if v})
        hosts = await self.frontier.hosts(self.world.hosts)
        self.referee.check_hosts(hosts, self.fresh)
        self.fresh = ()
        self.say("hosts", hosts)

    async def check_ends(self) -> None:
        """Every record and item once more: what ended is what it was, and all stores tell the same life of it."""
        for name in self.names:
            log = await self.frontier.read(name, 0, 0, 10_000)
            self.referee.check_log(name, log, trimmed=self.trimmed.get(name, 0))
            self.say("items", name, log)
            for key, link in self.referee.keys.get(name, {}).items():
                life = await self.frontier.explain(name, key, link.host)
                if life is None:
                    raise Violation(f"{link.url} was pushed and is unknown")
                self.referee.check_end(name, life.url, life.state, life.code)
                self.referee.check_body(name, life)
                self.say("explain", name, life)
            samples = await self.frontier.samples(name)
            self.referee.check_samples(name, await self.frontier.counters(name), samples)
            self.say("samples", samples)
        self.referee.check_numbers()

    # The end

    async def drain(self) -> None:
        """Whatever happened: a session that does nothing but good work brings every task to its end."""
        for session in self.sessions:
            await self.frontier.close_session(session)
            self.give_up([grant.number for grant in self.referee.held_by(session)])
        self.alive.clear()
        await self.open_session()
        for name in self.names:
            if self.referee.state[name].state is TaskState.PAUSED:
                await self.command(name, Command.RESUME)
            await self.command(name, Command.SEEDED)
        for _ in range(DRAIN_ROUNDS):
            if not await self.work():
                return
        raise Violation(f"the tasks do not end: {list(self.referee.state.values())}")

    async def leave(self) -> None:
        """Leave nothing alive, so that another seed may be played on the same store."""
        for session in self.sessions:
            await self.frontier.close_session(session)
        for name in self.names:
            if not self.is_over(name):
                await self.frontier.control(name, Command.CANCEL)

    async def work(self) -> bool:
        """One round of good work on all running tasks; False when nothing is left."""
        running = [view.spec.name for view in self.referee.state.values() if view.state is TaskState.RUNNING]
        for name in running:
            await self.empty_log(name)
        want = dict.fromkeys(running, 5)
        session = self.sessions[-1]
        outcomes = [_good(grant) for grant in self.referee.held_by(session)]
        self.enter()
        answer = await self.frontier.settle(session, outcomes, want)
        self.referee.settled(session, outcomes, answer)
        await self.take(session, answer)
        self.say("work", outcomes, want, answer)
        await self.check()
        if not answer.grants and answer.wait:
            await self.pass_time(answer.wait)
            return True
        return bool(answer.grants) or self.is_unfinished()

    def is_unfinished(self) -> bool:
        views = self.referee.state.values()
        return any(view.state is TaskState.RUNNING and not view.spec.keep_open for view in views)


def _good(grant: Grant) -> Outcome:
    rules = RULES[0] if grant.url.endswith("/robots.txt") else None
    return Outcome(grant.number, Verdict.DONE, task=grant.task, sent_ago=0.0, host=rules)


def _untimed(view: Any) -> Any:
    return msgspec.structs.replace(view, opened_ago=round(view.opened_ago, 3))


def first_difference(model: Sequence[Event], store: Sequence[Event]) -> str | None:
    """Where the store's transcript leaves the model's, with the steps that led there; None when they are equal."""
    for at, (expected, got) in enumerate(zip_longest(model, store)):
        if expected != got:
            moves = [event for event in model[:at] if event[0] not in ("counters", "hosts")]
            before = "\n".join(f"  {event}" for event in moves[-6:])
            return f"step {at}\n{before}\nmodel: {expected}\nstore: {got}"
    return None

"""`RedisFrontier`: each method is one call of the script."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self

import msgspec

from gossamer.backends.redis import wire
from gossamer.backends.redis.calling import Calls, PatternsWanted
from gossamer.backends.redis.connection import open_client, read_address
from gossamer.backends.redis.opening import check
from gossamer.backends.redis.packing import as_string, link_row, outcome_row
from gossamer.model.errors import UsageError
from gossamer.model.host import HostView
from gossamer.model.record import Leases, Link, LoggedItem, Outcome, Pushed
from gossamer.model.task import CHANGES, LEADS_TO, REPEATABLE, STATELESS, Command, TaskSpec, TaskView
from gossamer.ports.frontier import CursorAhead, Explained, SessionView


class Now(Protocol):
    """The part of a clock that a test hands in."""

    def now(self) -> float: ...


class RedisFrontier:
    """All four Protocols of `ports.frontier` on a Redis or Valkey. Open it with `async with`."""

    partitions = 1

    def __init__(
        self, url: str, *, namespace: str = "", clock: Now | None = None, telling: bool = False
    ) -> None:
        """The store's time is the server's, unless a clock is given. `telling`: say what its settings weaken."""
        self.address = read_address(url, namespace)
        self._clock = clock
        self._telling = telling
        self._client = open_client(self.address)
        self._calls = Calls(self._client, f"gossamer:{{{self.address.namespace}.0}}:", self.address.shown)
        self._with_patterns: set[str] = set()  # tasks that have a budget of patterns
        self._turns: dict[str, int] = {}  # session → the number of its last call

    @property
    def incarnation(self) -> str:
        return f"redis-{self._calls.life}"

    async def __aenter__(self) -> Self:
        try:
            await check(self._client, self.address, telling=self._telling)
            await self._ask("tasks", names=[])
        except BaseException:
            await self._client.aclose()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._client.aclose()

    # FrontierStore

    async def open_task(self, spec: TaskSpec) -> TaskView:
        answer, *_ = await self._ask("open_task", name=spec.name, rules=wire.rules_of(spec), spec=_text(spec))
        return wire.read_view(answer).task()  # type: ignore[no-any-return]

    async def tasks(self, names: Sequence[str] | None = None) -> list[TaskView]:
        answer, *_ = await self._ask("tasks", names=None if names is None else list(dict.fromkeys(names)))
        return [row.task() for row in wire.read_views(answer)]

    async def push(self, task: str, links: Sequence[Link]) -> Pushed:
        def arguments() -> dict[str, Any]:
            rows = [link_row(link, pattern=task in self._with_patterns) for link in links]
            return {"task": task, "links": rows, "patterns": list(self._with_patterns)}

        new, known = wire.read_pair((await self._ask_with_patterns("push", arguments))[0])
        return Pushed(new, known)

    async def lease(self, session: str, want: Mapping[str, int]) -> Leases:
        answer, *_ = await self._ask(
            "lease", session=session, want=list(want.items()), identity=self._turn(session)
        )
        return self._granted(answer)

    async def settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        identity, life = self._turn(session), self._calls.life

        def arguments() -> dict[str, Any]:
            return {
                "session": session,
                "outcomes": [outcome_row(outcome, pattern=bool(self._with_patterns)) for outcome in outcomes],
                "want": list(want.items()),
                "identity": identity,
                "incarnation": life,
                "patterns": list(self._with_patterns),
            }

        answer, *_ = await self._ask_with_patterns("settle", arguments)
        return self._granted(answer)

    async def control(
        self, task: str, command: Command, *, reason: str = "", spec: TaskSpec | None = None
    ) -> TaskView:
        if command is Command.UPDATE and (spec is None or spec.name != task):
            raise UsageError(
                "An update needs the new spec of the same task",
                where=task,
                hint="pass spec= with the name of the task that is updated",
            )
        target = LEADS_TO.get(command)
        answer, *_ = await self._ask(
            "control", task=task, command=command.value, reason=reason, target=target.value if target else None,
            **{"from": [state.value for state, leads in CHANGES.items() if target in leads]},
            repeatable=command in REPEATABLE, stateless=command in STATELESS,
            rules=wire.rules_of(spec) if spec else None, spec=_text(spec) if spec else None,
        )  # fmt: skip
        return wire.read_view(answer).task()  # type: ignore[no-any-return]

    async def forget(self, task: str) -> None:
        rest = wire.read_rest((await self._ask("forget", task=task))[0])
        while rest:
            rest = wire.read_rest((await self._ask("forget", sweep=rest))[0])

    # SessionStore

    async def open_session(self, worker: str) -> str:
        session = secrets.token_hex(8)
        await self._ask("open_session", session=session, worker=worker)
        return session

    async def beat(self, session: str) -> bool:
        return bool(wire.read_flag((await self._ask("beat", session=session))[0]))

    async def release(self, session: str, numbers: Sequence[int] | None = None) -> int:
        given = None if numbers is None else list(numbers)
        return int(wire.read_number((await self._ask("release", session=session, numbers=given))[0]))

    async def close_session(self, session: str) -> None:
        self._turns.pop(session, None)
        await self._ask("close_session", session=session)

    async def reap(self) -> int:
        return int(wire.read_number((await self._ask("reap"))[0]))

    # ItemLog

    async def read(self, task: str, partition: int, after: int, limit: int) -> list[LoggedItem]:  # noqa: ARG002
        answer, *_ = await self._log("read", task=task, after=after, limit=limit)
        return [
            LoggedItem(row[0], row[1].encode(), row[2] if len(row) > 2 else None)
            for row in wire.read_items(answer)
        ]

    async def cursor(self, task: str, partition: int, sink: str) -> tuple[int, bytes]:  # noqa: ARG002
        number, state = await self._log("cursor", task=task, sink=sink)
        return int(wire.read_number(number)), state

    async def advance(
        self,
        task: str,
        partition: int,  # noqa: ARG002  (one partition)
        sink: str,
        number: int,
        state: bytes = b"",
        *,
        after: int | None = None,
    ) -> None:
        await self._log("advance", task=task, sink=sink, number=number, state=as_string(state), after=after)

    # Oversight

    async def sessions(self) -> list[SessionView]:
        answer, *_ = await self._ask("sessions")
        views = [
            SessionView(
                session=name, worker=worker, beat_ago=max(ago, 0.0),
                leases=Counter(task for task, _ in held), hosts=Counter(host for _, host in held),
            )
            for name, worker, ago, held in wire.read_sessions(answer)
        ]  # fmt: skip
        return sorted(views, key=lambda view: (view.worker, view.session))

    async def counters(self, task: str) -> dict[str, int]:
        answer, *_ = await self._ask("counters", task=task)
        return wire.read_counters(answer).counters()  # type: ignore[no-any-return]

    async def samples(self, task: str) -> dict[str, list[str]]:
        answer, *_ = await self._ask("samples", task=task)
        return dict(wire.read_samples(answer))

    async def explain(self, task: str, key: bytes, host: str) -> Explained | None:  # noqa: ARG002  (one partition)
        found = wire.read_explained((await self._ask("explain", task=task, key=as_string(key)))[0])
        return found.explained() if isinstance(found, wire.ExplainedRow) else None

    async def hosts(self, names: Sequence[str]) -> dict[str, HostView]:
        answer, *robots = await self._ask("hosts", names=list(names))
        return wire.read_hosts(answer).views(robots)  # type: ignore[no-any-return]

    # How a method becomes a call

    async def _ask(self, call: str, /, **arguments: Any) -> list[Any]:
        if self._clock is not None:
            arguments["now"] = self._clock.now()
        return await self._calls(call, **arguments)

    async def _ask_with_patterns(self, call: str, arguments: Any) -> list[Any]:
        """Links of a task that has a budget of patterns carry theirs: the script cannot work them out."""
        while True:
            try:
                return await self._ask(call, **arguments())
            except PatternsWanted as wanted:
                self._with_patterns.add(str(wanted))

    async def _log(self, call: str, /, **arguments: Any) -> list[Any]:
        try:
            return await self._ask(call, **arguments)
        except CursorAhead as error:
            sink, task = arguments.get("sink", ""), arguments["task"]
            who = f"The sink {sink!r}" if sink else "Who reads the log"
            raise CursorAhead(
                error.what.replace("Who reads the log", who), where=task, hint=error.hint
            ) from None

    def _granted(self, answer: bytes) -> Leases:
        leases: Leases = wire.read_leases(answer).leases()
        return leases

    def _turn(self, session: str) -> str:
        """What tells this call of the session from all others, so that it is not done twice when its answer was lost."""
        self._turns[session] = turn = self._turns.get(session, 0) + 1
        return f"{turn:012x}"


def _text(spec: TaskSpec) -> str:
    return msgspec.json.encode(spec).decode()

"""The frontier on SQLite: each method is one transaction on the writer's thread, or one reading beside it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self, TypeVar

from gossamer.backends.sqlite import items, oversight, sessions, tasks
from gossamer.backends.sqlite.database import Database, one
from gossamer.backends.sqlite.leasing import lease, tick
from gossamer.backends.sqlite.ledger import Ledger
from gossamer.backends.sqlite.pushing import HostIds, push
from gossamer.backends.sqlite.settling import settle
from gossamer.model.host import HostView
from gossamer.model.record import Leases, Link, LoggedItem, Outcome, Pushed
from gossamer.model.task import Command, SessionLost, TaskSpec, TaskView
from gossamer.ports.frontier import Explained, SessionView

T = TypeVar("T")

# After a reboot the store's time goes on from here: what it was, and what the wall clock said then.
SEEN = "UPDATE meta SET value = iif(name = 'seen', ?, ?) WHERE name IN ('seen', 'wall')"


class Now(Protocol):
    """The part of a clock that the store reads."""

    def now(self) -> float: ...

    def wall(self) -> float: ...


class BootClock:
    """Seconds that all processes of this machine agree on and that no clock setting moves."""

    def now(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def wall(self) -> float:
        return time.time()


class SqliteFrontier:
    """All four Protocols of `ports.frontier` on one file. Open it with `async with`."""

    partitions = 1

    def __init__(self, path: Path | str, clock: Now | None = None) -> None:
        self.path = Path(path)
        self.incarnation = ""
        self._clock = clock or BootClock()
        self._ids = HostIds()
        # It may remember hosts that a transaction met and that are not there after its rollback.
        self._database = Database(self.path, self._ids.forget)
        self._locks = sessions.SessionLocks(self.path.parent / "sessions")
        self._anchor = 0.0  # the store's time is the clock's plus this

    async def __aenter__(self) -> Self:
        await self._database.open()
        await self._database.write(self._anchor_time)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._database.close()
        self._locks.close()

    # FrontierStore

    async def open_task(self, spec: TaskSpec) -> TaskView:
        return await self._change(lambda ledger: tasks.open_task(ledger, spec).view(ledger.now))

    async def tasks(self, names: Sequence[str] | None = None) -> list[TaskView]:
        views = await self._look(lambda ledger: [row.view(ledger.now) for row in ledger.all_tasks()])
        return views if names is None else [view for view in views if view.spec.name in set(names)]

    async def push(self, task: str, links: Sequence[Link]) -> Pushed:
        def work(ledger: Ledger) -> Pushed:
            row = ledger.named(task)
            tasks.accepts(row)
            new = push(ledger, row, [(None, links)], self._ids)
            tasks.complete(ledger, row)
            ledger.refresh()
            return Pushed(new, len(links) - new)

        return await self._change(work)

    async def lease(self, session: str, want: Mapping[str, int]) -> Leases:
        def work(ledger: Ledger) -> Leases:
            if not sessions.is_alive(ledger.db, session):
                raise SessionLost("The session is dead: its leases went back", hint="open a new session")
            answer = Leases()
            tick(ledger)
            ledger.refresh()
            lease(ledger, session, want, answer)
            return answer

        return await self._change(work)

    async def settle(self, session: str, outcomes: Sequence[Outcome], want: Mapping[str, int]) -> Leases:
        def work(ledger: Ledger) -> Leases:
            answer = Leases()
            settle(ledger, self._ids, session, outcomes, want, answer)
            return answer

        return await self._change(work)

    async def control(
        self, task: str, command: Command, *, reason: str = "", spec: TaskSpec | None = None
    ) -> TaskView:
        return await self._change(
            lambda ledger: tasks.control(ledger, task, command, reason, spec).view(ledger.now)
        )

    async def forget(self, task: str) -> None:
        await self._change(lambda ledger: tasks.forget(ledger, task))

    # SessionStore

    async def open_session(self, worker: str) -> str:
        def work(ledger: Ledger) -> str:
            session = sessions.open_session(ledger, worker)
            self._locks.take(
                session
            )  # before the row is seen by others, so that nobody takes it for an orphan
            return session

        return await self._change(work)

    async def beat(self, session: str) -> bool:
        return await self._change(lambda ledger: sessions.beat(ledger, session))

    async def release(self, session: str, numbers: Sequence[int] | None = None) -> int:
        def work(ledger: Ledger) -> int:
            count = sessions.give_back(ledger, session, numbers, lost=False)
            ledger.refresh()
            return count

        return await self._change(work)

    async def close_session(self, session: str) -> None:
        def work(ledger: Ledger) -> None:
            sessions.close(ledger, session)
            ledger.refresh()

        await self._change(work)
        self._locks.drop(session)

    async def reap(self) -> int:
        def work(ledger: Ledger) -> int:
            count = sessions.reap(ledger, self._locks)
            ledger.refresh()
            return count

        return await self._change(work)

    # ItemLog

    async def read(self, task: str, partition: int, after: int, limit: int) -> list[LoggedItem]:
        return await self._database.read(lambda db: items.read(db, task, after, limit))

    async def cursor(self, task: str, partition: int, sink: str) -> tuple[int, bytes]:
        return await self._change(lambda ledger: items.cursor(ledger, task, sink))

    async def advance(
        self,
        task: str,
        partition: int,
        sink: str,
        number: int,
        state: bytes = b"",
        *,
        after: int | None = None,
    ) -> None:
        await self._change(lambda ledger: items.advance(ledger, task, sink, number, state, after))

    # Oversight

    async def sessions(self) -> list[SessionView]:
        return await self._database.read(lambda db: oversight.sessions(db, self._now()))

    async def counters(self, task: str) -> dict[str, int]:
        return await self._look(lambda ledger: oversight.counters(ledger, task))

    async def samples(self, task: str) -> dict[str, list[str]]:
        return await self._look(lambda ledger: oversight.samples(ledger, task))

    async def explain(self, task: str, key: bytes, host: str) -> Explained | None:
        return await self._look(lambda ledger: oversight.explain(ledger, task, key, host))

    async def hosts(self, names: Sequence[str]) -> dict[str, HostView]:
        return await self._database.read(lambda db: oversight.hosts(db, names, self._now()))

    # How a method becomes a transaction

    def _now(self) -> float:
        return round(self._clock.now() + self._anchor, 6)

    async def _change(self, work: Callable[[Ledger], T]) -> T:
        def transaction(db: sqlite3.Connection) -> T:
            ledger = Ledger(db, self._now())
            sessions.grace(ledger, one(db, "SELECT value FROM meta WHERE name = 'seen'"))
            answer = work(ledger)
            ledger.write()
            db.execute(SEEN, (ledger.now, self._clock.wall()))
            return answer

        return await self._database.write(transaction)

    async def _look(self, work: Callable[[Ledger], T]) -> T:
        return await self._database.read(lambda db: work(Ledger(db, self._now())))

    def _anchor_time(self, db: sqlite3.Connection) -> None:
        """Let the store's time go on where it stood: by the boot clock, or after a reboot by the wall clock, never backwards."""
        known = dict(db.execute("SELECT name, value FROM meta").fetchall())
        clock, wall, boot = self._clock.now(), self._clock.wall(), boot_id()
        if known.get("boot") == boot and clock + known["anchor"] >= known["seen"]:
            self._anchor, self.incarnation = known["anchor"], known["incarnation"]
            return
        slept = max(0.0, wall - known["wall"]) if known else 0.0
        start = known["seen"] + slept if known else 0.0
        self._anchor = start - clock
        self.incarnation = known.get("incarnation") or f"sqlite-{wall:.6f}"
        rows = {
            "boot": boot,
            "anchor": self._anchor,
            "wall": wall,
            "seen": start,
            "incarnation": self.incarnation,
        }
        db.executemany("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", list(rows.items()))


def boot_id() -> str:
    """What tells this boot of the machine from another."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return "unknown"

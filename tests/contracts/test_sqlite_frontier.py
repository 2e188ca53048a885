"""The SQLite frontier keeps the contract, over restarts, and answers random lives as the twin does."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from gossamer.backends.memory.frontier import MemoryFrontier
from gossamer.backends.sqlite import frontier as sqlite_frontier
from gossamer.backends.sqlite.frontier import SqliteFrontier
from gossamer.model.errors import StateError
from gossamer.model.host import HostOrder
from gossamer.model.item import Item
from gossamer.model.task import Command
from gossamer.ports.frontier import Frontier
from gossamer.testing.contracts.frontier import DurabilityContract, FrontierContract
from gossamer.testing.contracts.frontier_durable import Reopen
from gossamer.testing.contracts.frontier_steps import (
    Elapse,
    begin,
    done,
    failed,
    items,
    life,
    page,
    pages,
    settle,
    state,
    take,
    take_one,
)
from gossamer.testing.fake_clock import FakeClock
from gossamer.testing.interleavings import first_difference, run


def elapsing(clock: FakeClock) -> Elapse:
    async def pass_time(seconds: float) -> None:
        clock.advance(seconds)

    return pass_time


class TestSqliteFrontier(FrontierContract, DurabilityContract):
    """One file in a temporary folder, on a clock that stands still."""

    @pytest.fixture
    def clock(self) -> FakeClock:
        return FakeClock()

    @pytest.fixture
    def elapse(self, clock: FakeClock) -> Elapse:
        return elapsing(clock)

    @pytest.fixture
    async def opened(self) -> AsyncIterator[AsyncExitStack]:
        async with AsyncExitStack() as stack:
            yield stack

    @pytest.fixture
    async def frontier(self, opened: AsyncExitStack, tmp_path: Path, clock: FakeClock) -> Frontier:
        return await opened.enter_async_context(SqliteFrontier(tmp_path / "frontier.db", clock=clock))

    @pytest.fixture
    def reopen(self, opened: AsyncExitStack, tmp_path: Path, clock: FakeClock) -> Reopen:
        async def again() -> Frontier:
            await opened.aclose()
            return await opened.enter_async_context(SqliteFrontier(tmp_path / "frontier.db", clock=clock))

        return again


class TestOlderFiles:
    """A state file of an earlier Gossamer."""

    @pytest.fixture
    async def old(self, tmp_path: Path) -> Path:
        """A file of format 1: a task with a failure, an item and a record that waits."""
        file = tmp_path / "frontier.db"
        async with SqliteFrontier(file, clock=FakeClock()) as store:
            session = await begin(store, *pages(3))
            one, two, _ = await take(store, session)
            await settle(store, session, failed(one), done(two, items=items(b'{"old":true}')))
            await store.close_session(session)
        with sqlite3.connect(file) as db:
            for undo in (
                "DROP TABLE body",
                "DROP TABLE pattern",
                "ALTER TABLE task DROP COLUMN errors",
                "ALTER TABLE item DROP COLUMN key",
                "PRAGMA user_version = 1",
            ):
                db.execute(undo)
        db.close()
        return file

    async def test_it_goes_on_where_it_was(self, old: Path) -> None:
        """Nothing of it is lost, what failed counts towards a limit, and all that is new can be kept."""
        async with SqliteFrontier(old, clock=FakeClock()) as store:
            session = await store.open_session("new")
            grant = await take_one(store, session)
            await settle(store, session, done(grant, items=[Item(b'{"new":true}', "key")], body="body-1"))
            assert (await life(store, page("/2"))).body == "body-1"
            log = await store.read("t", 0, 0, 9)
            assert [(item.data, item.key) for item in log] == [
                (b'{"old":true}', None),
                (b'{"new":true}', "key"),
            ]
            spec = msgspec.structs.replace((await state(store)).spec, max_errors=1)
            assert (await store.control("t", Command.UPDATE, spec=spec)).reason == "max_errors"
            await store.forget("t")

    async def test_it_becomes_what_a_new_one_is(self, old: Path, tmp_path: Path) -> None:
        """The same tables with the same columns, though not always in the same order, and the same number."""
        new = tmp_path / "new" / "frontier.db"
        for file in (old, new):
            async with SqliteFrontier(file, clock=FakeClock()):
                pass
        assert columns(old) == columns(new)


def columns(file: Path) -> tuple[int, dict[str, set[str]]]:
    """The format's number, and each table with its columns as they are declared."""
    with contextlib.closing(sqlite3.connect(file)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        said = {name: {str(row[1:]) for row in db.execute(f"PRAGMA table_info({name})")} for name in tables}
        return db.execute("PRAGMA user_version").fetchone()[0], said


async def test_a_commit_survives_a_power_cut(tmp_path: Path) -> None:
    """The writer's log is synchronised with every commit, and checkpoints are nobody's but the store's own."""
    async with SqliteFrontier(tmp_path / "frontier.db") as store:

        def settings(db: sqlite3.Connection) -> list[object]:
            names = ("journal_mode", "synchronous", "wal_autocheckpoint")
            return [db.execute(f"PRAGMA {name}").fetchone()[0] for name in names]

        assert await store._database.write(settings) == ["wal", 2, 0]


async def test_writers_of_two_processes_take_turns(tmp_path: Path) -> None:
    """While another process has its turn, a call waits for it, however long that takes; then it goes on."""
    async with SqliteFrontier(tmp_path / "frontier.db") as store:
        script = (
            "import fcntl, sys, time\n"
            "file = open(sys.argv[1], 'r+'); fcntl.flock(file, fcntl.LOCK_EX); print('mine', flush=True); sys.stdin.read()"
        )
        other = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, str(tmp_path / "frontier.turn"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert other.stdout is not None
        assert other.stdin is not None
        assert await other.stdout.readline() == b"mine\n"
        opening = asyncio.create_task(store.open_session("worker"))
        await asyncio.wait({opening}, timeout=0.2)
        assert not opening.done()
        other.stdin.close()
        await asyncio.wait_for(opening, 5)
        await other.wait()


class FailsOnce:
    """A connection whose next commit fails."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
        if sql == "COMMIT" and not self._failed:
            self._failed = True
            raise sqlite3.OperationalError("disk I/O error")
        return self._db.execute(sql, *args)


async def test_a_host_met_in_vain_is_met_again(tmp_path: Path) -> None:
    """After a commit that failed, hosts get their rows anew: a URL never comes under the host that took its place."""
    async with SqliteFrontier(tmp_path / "frontier.db", clock=FakeClock()) as store:
        session = await begin(store)
        store._database._write = cast("sqlite3.Connection", FailsOnce(store._database._write))
        with pytest.raises(StateError):
            await store.push("t", [page("/", "first.test")])
        await store.push("t", [page("/", "second.test")])
        assert (await store.push("t", [page("/", "first.test")])).new == 1
        grants = await take(store, session)
        assert [grant.url for grant in grants] == ["https://second.test/", "https://first.test/"]
        assert [grant.host for grant in grants] == ["second.test", "first.test"]


@pytest.mark.parametrize("attempt", range(20))
async def test_a_new_state_may_be_opened_by_many_at_once(tmp_path: Path, attempt: int) -> None:
    """Two commands that begin together on an empty folder find one store, whoever makes it."""

    async def use(name: str) -> None:
        async with SqliteFrontier(tmp_path / "frontier.db") as store:
            await begin(store, page("/"), name=name)

    await asyncio.gather(*(use(f"task {number}") for number in range(4)))
    async with SqliteFrontier(tmp_path / "frontier.db") as store:
        assert len(await store.tasks()) == 4


async def test_a_reboot_takes_no_longer_than_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After hours of crawling and a minute of rebooting, a host that was parked for an hour is parked for its rest."""
    boots = iter(["first", "second"])
    monkeypatch.setattr(sqlite_frontier, "boot_id", lambda: next(boots))
    before = FakeClock()
    async with SqliteFrontier(tmp_path / "frontier.db", clock=before) as store:
        session = await begin(store, page("/a"), page("/b"))
        before.advance(7_200)
        session = await store.open_session("again")
        grant = await take_one(store, session)
        order = HostOrder(bad=True, park=3_600, level=1)
        await settle(store, session, done(grant, sent_ago=0.0, host=order))
    after = Booted(before.wall() + 60)
    async with SqliteFrontier(tmp_path / "frontier.db", clock=after) as store:
        parked_for = (await store.hosts(["a.test"]))["a.test"].parked_for
        assert parked_for == pytest.approx(3_540, abs=1)


class Booted:
    """The clocks of a machine that has just been started."""

    def __init__(self, wall: float) -> None:
        self._wall = wall

    def now(self) -> float:
        return 5.0

    def wall(self) -> float:
        return self._wall


SEEDS_PER_STORE = 20


@pytest.mark.parametrize("first", range(0, 300, SEEDS_PER_STORE))
async def test_random_lives_are_those_of_the_twin(first: int, tmp_path: Path) -> None:
    """The same seeds, many on one store, give answers on SQLite that are the model's to the last number."""
    ours, models = FakeClock(), FakeClock()
    model = MemoryFrontier(models)
    async with SqliteFrontier(tmp_path / "frontier.db", clock=ours) as store:
        for seed in range(first, first + SEEDS_PER_STORE):
            expected = await run(model, elapsing(models), seed)
            difference = first_difference(expected, await run(store, elapsing(ours), seed))
            assert difference is None, f"seed {seed}, {difference}"


@pytest.mark.slow
@pytest.mark.parametrize("first", range(300, 3_000, 100))
async def test_many_random_lives_are_those_of_the_twin(first: int, tmp_path: Path) -> None:
    """The same with more seeds, each on a store of its own."""
    for seed in range(first, first + 100):
        ours, models = FakeClock(), FakeClock()
        expected = await run(MemoryFrontier(models), elapsing(models), seed)
        async with SqliteFrontier(tmp_path / f"{seed}.db", clock=ours) as store:
            difference = first_difference(expected, await run(store, elapsing(ours), seed))
        assert difference is None, f"seed {seed}, {difference}"

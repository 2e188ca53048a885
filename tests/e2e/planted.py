"""Mistakes to plant in the product (see `gossamer.testing.faults`): each one the checks of this folder must notice.

They change the product as somebody might who does not know why it is as it is. Each function is called once, before the
command line starts.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


def settle_before_the_blobs_are_safe() -> None:
    """The page is settled first, and its body is written afterwards."""
    from gossamer.crawling.settler import Settler

    settle_batch = Settler._settle_batch

    async def body_last(self: Settler) -> None:
        bodies, self._bodies = self._bodies, {}
        await settle_batch(self)
        if bodies and self._blobs is not None:
            await self._blobs.put_many(list(bodies.values()))

    Settler._settle_batch = body_last  # type: ignore[method-assign]


def mark_before_enqueue() -> None:
    """Two calls instead of one: links are marked as known in a transaction of their own, then the page is settled."""
    from gossamer.backends.sqlite.frontier import SqliteFrontier
    from gossamer.backends.sqlite.ledger import Ledger

    settle = SqliteFrontier.settle

    async def in_two_steps(
        self: SqliteFrontier, session: str, outcomes: Sequence[Any], want: Mapping[str, int]
    ) -> Any:
        marks: list[tuple[int, ...]] = []

        def mark(ledger: Ledger) -> None:
            task = ledger.all_tasks()[0].id
            for outcome in outcomes:
                new = []
                for link in outcome.links:
                    row = (task, self._ids.of(ledger, [link])[link.host], *struct.unpack("<2q", link.key))
                    sql = "INSERT INTO known (task, bucket, k1, k2, id) VALUES (?, ?, ?, ?, 0) ON CONFLICT DO NOTHING"
                    if ledger.db.execute(sql, row).rowcount:
                        marks.append(row)
                        new.append(link)
                outcome.links = new

        original = self._change

        def settling(work: Any) -> Any:
            def unmark_and_settle(ledger: Ledger) -> Any:
                sql = "DELETE FROM known WHERE task = ? AND bucket = ? AND k1 = ? AND k2 = ? AND id = 0"
                ledger.db.executemany(sql, marks)
                return work(ledger)

            return original(unmark_and_settle)

        if outcomes:
            await original(mark)
        self._change = settling  # type: ignore[method-assign, assignment]
        try:
            return await settle(self, session, outcomes, want)
        finally:
            del self._change

    SqliteFrontier.settle = in_two_steps  # type: ignore[method-assign]


def known_when_seen() -> None:
    """A link is remembered as enqueued when a handler asks for it, not when its settle is acknowledged."""
    from gossamer.crawling.outlinks import Outlinks
    from gossamer.spiders.follow import Follow
    from gossamer.spiders.recording import Recorder

    seen: set[str] = set()
    follow = Recorder._follow

    def remembering(self: Recorder, wanted: Follow) -> None:
        new = [url for url in wanted.urls if url not in seen]
        seen.update(new)
        follow(self, Follow(new, wanted.like, wanted.refused))

    Recorder._follow = remembering  # type: ignore[method-assign]
    Outlinks.acknowledge = lambda *_: None  # type: ignore[method-assign, assignment]


def no_token_check() -> None:
    """A settle counts whoever sends it: a lease that was taken away is put back first, and its session too."""
    from gossamer.backends.sqlite import leasing
    from gossamer.backends.sqlite.settling import Settling

    granted: dict[int, tuple[Any, ...]] = {}
    insert, run = leasing.Granting._insert, Settling.run

    def remember(self: leasing.Granting, rows: list[tuple[Any, ...]]) -> int:
        first: int = insert(self, rows)
        for at, (record, host, kind) in enumerate(rows):
            granted[first + at] = (record, self.task.id, host, int(kind))
        return first

    def believe(self: Settling, session: str, outcomes: Sequence[Any], answer: Any) -> None:
        ledger, db = self.ledger, self.ledger.db
        db.execute(
            "INSERT INTO session (name, worker, beat) VALUES (?, 'back from the dead', ?) ON CONFLICT DO NOTHING",
            (session, ledger.now),
        )
        for outcome in outcomes:
            record, task_id, host, kind = granted[outcome.number]
            if db.execute("SELECT 1 FROM lease WHERE number = ?", (outcome.number,)).fetchone():
                continue
            db.execute(
                "INSERT INTO lease (number, session, record, task, host, kind) VALUES (?, ?, ?, ?, ?, ?)",
                (outcome.number, session, record, task_id, host, kind),
            )
            ledger.load_hosts([host])
            ledger.hosts[host].open += 1
            if record is not None:
                ledger.lanes[host, task_id][1] += 1
                ledger.task(task_id).leased += 1
                ledger.task(task_id).leased_pages += kind == 0
        run(self, session, outcomes, answer)

    leasing.Granting._insert = remember  # type: ignore[method-assign, assignment]
    Settling.run = believe  # type: ignore[method-assign]


def slot_freed_before_the_socket() -> None:
    """A page that is late is settled when its time is over, while its exchange goes on for a while."""
    from gossamer.backends.curl.transport import CurlTransport
    from gossamer.ports.transport import Answer, Exchange, FetchError

    send = CurlTransport.send
    left: set[asyncio.Task[Answer]] = set()

    async def give_up(self: CurlTransport, exchange: Exchange) -> Answer:
        patient = msgspec.structs.replace(exchange.deadlines, header=exchange.deadlines.header + 0.3)
        going = asyncio.create_task(send(self, msgspec.structs.replace(exchange, deadlines=patient)))
        done, _ = await asyncio.wait({going}, timeout=exchange.deadlines.header)
        if done:
            return going.result()
        left.add(going)
        going.add_done_callback(lambda task: task.cancelled() or task.exception())
        raise FetchError("timeout_header", "the headers did not end in time")

    CurlTransport.send = give_up  # type: ignore[method-assign]


def cursor_before_the_items() -> None:
    """The sink's cursor moves first, and the items are written afterwards."""
    from gossamer.backends.files.jsonl import JsonlSink
    from gossamer.crawling.followers import SinkFollower

    batch = SinkFollower._batch

    async def cursor_first(self: SinkFollower) -> bool:
        sink, held = self._sink, []

        class Later:
            async def write(self, items: Any) -> bytes:
                held.append(items)
                return sink._state() if isinstance(sink, JsonlSink) else b""

        self._sink = Later()  # type: ignore[assignment]
        try:
            more: bool = await batch(self)
        finally:
            self._sink = sink
        for items in held:
            await sink.write(items)
        return more

    SinkFollower._batch = cursor_first  # type: ignore[method-assign]

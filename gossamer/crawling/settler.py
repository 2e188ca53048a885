"""The group commit: while one batch settles, the next one gathers.

A batch costs the same whether it holds one page or fifty, so it waits for company as long as nobody waits for it: while the
worker has leases enough to go on with, and no longer than a moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping

from gossamer.model.record import Leases, Outcome
from gossamer.model.task import TaskEnded
from gossamer.ports.blobs import BlobStore
from gossamer.ports.frontier import FrontierStore

MAX_BATCH = 1_000  # outcomes in one transaction
COMPANY = 0.05  # seconds that outcomes wait for others at most
AHEAD = 1_000  # links of one outcome that travel in its own transaction; more are pushed ahead in chunks


class Settler:
    """Settles outcomes in batches, and hands on the leases that come back."""

    def __init__(
        self,
        store: FrontierStore,
        session: str,
        want: Callable[[], Mapping[str, int]],
        on_settled: Callable[[list[Outcome], Leases], None],
        blobs: BlobStore | None = None,
        *,
        has_plenty: Callable[[], bool] = lambda: False,
    ) -> None:
        """`has_plenty` tells whether the worker can go on for a while without new leases."""
        self._store = store
        self._session = session
        self._want = want
        self._on_settled = on_settled
        self._blobs = blobs
        self._waiting: list[Outcome] = []
        self._bodies: dict[int, bytes] = {}  # lease number → what its page answered, to be kept
        self._sent: dict[int, float] = {}
        self._has_plenty = has_plenty
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._turn = asyncio.Lock()
        self.settled = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(
        self, task: str, outcome: Outcome, sent_at: float | None = None, body: bytes | None = None
    ) -> None:
        """Settle this with the next batch; the body is durable before. `sent_at` is when the request went out."""
        outcome.task = task
        if sent_at is not None:
            self._sent[outcome.number] = sent_at
        self._waiting.append(outcome)
        if body is not None:
            self._bodies[outcome.number] = body
        self._wake.set()
        if not self._may_wait():
            self._hurry.set()

    def wake(self) -> None:
        """Ask for leases although nothing is to be settled."""
        self._wake.set()
        self._hurry.set()

    async def run(self) -> None:
        """Settle until cancelled. An error of the store ends this, and with it the worker."""
        while True:
            await self._wake.wait()
            if self._may_wait():
                self._hurry.clear()  # it was in a hurry for the leases that the last settle brought
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(COMPANY):
                        await self._hurry.wait()
            await self.settle_once()

    def _may_wait(self) -> bool:
        return len(self._waiting) < MAX_BATCH and self._has_plenty()

    async def settle_once(self) -> None:
        """One batch. A second caller waits for its turn."""
        async with self._turn:
            await self._settle_batch()

    async def _settle_batch(self) -> None:
        self._wake.clear()
        batch, self._waiting = self._waiting[:MAX_BATCH], self._waiting[MAX_BATCH:]
        if self._waiting:
            self.wake()
        # Bodies first: a settled page must never name a blob that is not there. An orphan blob is harmless.
        await self._keep_bodies(batch)
        await self._push_ahead(batch)
        want = self._want()
        if not batch and not want:
            return
        now = time.monotonic()
        for outcome in batch:
            sent = self._sent.pop(outcome.number, None)
            if sent is not None:
                outcome.sent_ago = max(0.0, now - sent)
        leases = await self._store.settle(self._session, batch, want)
        self.settled += len(batch)
        self._on_settled(batch, leases)

    async def flush(self) -> None:
        """Settle all that waits, one batch after the other, and the one that is under way in `run`."""
        while self._waiting or self._turn.locked():
            await self.settle_once()

    async def _keep_bodies(self, batch: list[Outcome]) -> None:
        with_body = [outcome for outcome in batch if outcome.number in self._bodies]
        bodies = [self._bodies.pop(outcome.number) for outcome in with_body]
        if bodies and self._blobs is not None:
            for outcome, key in zip(with_body, await self._blobs.put_many(bodies), strict=True):
                outcome.body = key

    async def _push_ahead(self, batch: list[Outcome]) -> None:
        """A page with very many links must not make one long transaction: all but the last chunk go before it."""
        for outcome in batch:
            while len(outcome.links) > AHEAD:
                chunk, outcome.links = outcome.links[:AHEAD], outcome.links[AHEAD:]
                with contextlib.suppress(TaskEnded):  # then the settle will be refused, which says it all
                    await self._store.push(outcome.task, chunk)

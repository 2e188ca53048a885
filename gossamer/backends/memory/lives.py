"""Sessions: a worker's life. Whatever ends it, its leases go back."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence

from gossamer.backends.memory.rows import Host, Lease, Session
from gossamer.backends.memory.settling import Settling
from gossamer.model.hostrow import effective_delay
from gossamer.ports.frontier import SESSION_TTL


class Lives(Settling):
    """`ports.frontier.SessionStore` in memory."""

    async def open_session(self, worker: str) -> str:
        self._enter()
        session = secrets.token_hex(8)
        self._sessions[session] = Session(worker, self._now)
        return session

    async def beat(self, session: str) -> bool:
        self._enter()
        if session not in self._sessions:
            return False
        self._sessions[session].beat = self._now
        return True

    async def release(self, session: str, numbers: Sequence[int] | None = None) -> int:
        self._enter()
        held = self._held(session)
        if numbers is not None:
            held = [lease for lease in held if lease.number in set(numbers)]
        self._return_all(held)
        return len(held)

    async def close_session(self, session: str) -> None:
        self._enter()
        self._return_all(self._held(session), pause=True)
        self._sessions.pop(session, None)

    async def reap(self) -> int:
        self._enter()
        dead = [name for name, session in self._sessions.items() if self._now - session.beat > SESSION_TTL]
        lost: list[Lease] = []
        for name in dead:
            del self._sessions[name]
            lost += self._held(name)
        for lease in lost:
            if lease.record is not None:
                lease.record.suspect = True
        self._return_all(lost, pause=True)
        return len(dead)

    def _held(self, session: str) -> list[Lease]:
        return [lease for lease in self._leases.values() if lease.session == session]

    def _return_all(self, leases: Iterable[Lease], *, pause: bool = False) -> None:
        hosts = {lease.lane.host for lease in leases}
        tasks = {lease.lane.task for lease in leases}
        for lease in leases:
            self._return(lease)
        self._account_given_up()
        if pause:
            self._pause(hosts)
        for task in tasks:
            self._check_end(task)
        self._refresh()

    def _pause(self, hosts: set[Host]) -> None:
        """Nobody knows when the lost requests went out: the next one waits as if that was now."""
        for host in hosts:
            if host.row.name:
                turn = self._now + effective_delay(host.row, self._asking(host))
                host.row.next_turn = max(host.row.next_turn, turn)

"""The origin's own record of what reached it, on its own monotonic clock.

Politeness is judged here and never by what a crawler says about itself. One line per connection opened or closed and
one per visit (a request and its answer); times are seconds of the origin's clock.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TextIO


@dataclass(slots=True)
class Visit:
    """A request and what became of it. Status 0: no answer was sent. `end` is None while it is open."""

    connection: int
    host: str
    method: str
    path: str
    attempt: int
    start: float
    end: float | None = None
    status: int = 0
    aborted: bool = False
    retry_after: float | None = None
    scheme: str = "http"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}{self.path}"


@dataclass(slots=True)
class ConnectionRecord:
    """A connection as the origin saw it."""

    connection: int
    host: str
    opened: float
    closed: float | None = None


@dataclass
class OriginLog:
    """Visits in the order of their start. Beyond `limit` nothing is kept and `overflowed` counts the loss."""

    path: Path | None = None
    limit: int = 2_000_000
    scheme: str = "http"
    visits: list[Visit] = field(default_factory=list)
    connections: list[ConnectionRecord] = field(default_factory=list)
    overflowed: int = 0

    def __post_init__(self) -> None:
        self._file: TextIO | None = self.path.open("w", encoding="utf-8") if self.path else None

    def opened(self, connection: int, host: str) -> ConnectionRecord:
        record = ConnectionRecord(connection, host, time.monotonic())
        if len(self.connections) < self.limit:
            self.connections.append(record)
        else:
            self.overflowed += 1
        return record

    def closed(self, record: ConnectionRecord) -> None:
        record.closed = time.monotonic()
        self._write(record)

    def started(self, connection: int, host: str, method: str, path: str, attempt: int) -> Visit:
        visit = Visit(connection, host, method, path, attempt, time.monotonic(), scheme=self.scheme)
        if len(self.visits) < self.limit:
            self.visits.append(visit)
        else:
            self.overflowed += 1
        return visit

    def ended(self, visit: Visit, *, aborted: bool = False) -> None:
        visit.end = time.monotonic()
        visit.aborted = aborted
        self._write(visit)

    def hits(self, url: str) -> int:
        """How many requests for this URL arrived."""
        return sum(visit.url == url for visit in self.visits)

    def hits_by_url(self) -> Counter[str]:
        return Counter(visit.url for visit in self.visits)

    def hosts(self) -> list[str]:
        return sorted({visit.host for visit in self.visits})

    def lines(self) -> Iterator[str]:
        """Everything as JSON lines, open visits and connections included."""
        for record in self.connections:
            yield _encode(record)
        for visit in self.visits:
            yield _encode(visit)
        if self.overflowed:
            yield json.dumps({"event": "overflow", "lost": self.overflowed})

    def clear(self) -> None:
        """Forgets what is kept in memory; a file keeps its lines."""
        self.visits.clear()
        self.connections.clear()
        self.overflowed = 0

    def flush(self) -> None:
        if self._file:
            self._file.flush()

    def close(self) -> None:
        """Writes what never ended, then closes the file. Safe to call twice."""
        if self._file is None:
            return
        for record in self.connections:
            if record.closed is None:
                self._write(record)
        for visit in self.visits:
            if visit.end is None:
                self._write(visit)
        if self.overflowed:
            self._file.write(json.dumps({"event": "overflow", "lost": self.overflowed}) + "\n")
        self._file.close()
        self._file = None

    @classmethod
    def parse(cls, lines: Iterable[str]) -> OriginLog:
        """The log that `lines` or a log file holds, visits sorted by their start."""
        log = cls()
        for text in lines:
            if not text.strip():
                continue
            row: dict[str, Any] = json.loads(text)
            match row.pop("event"):
                case "connection":
                    log.connections.append(ConnectionRecord(**row))
                case "visit":
                    log.visits.append(Visit(**row))
                case _:
                    log.overflowed += row["lost"]
        log.connections.sort(key=lambda record: record.opened)
        log.visits.sort(key=lambda visit: visit.start)
        return log

    @classmethod
    def read(cls, path: Path) -> OriginLog:
        with path.open(encoding="utf-8") as lines:
            return cls.parse(lines)

    def _write(self, record: ConnectionRecord | Visit) -> None:
        if self._file:
            self._file.write(_encode(record) + "\n")


def _encode(record: ConnectionRecord | Visit) -> str:
    event = "connection" if isinstance(record, ConnectionRecord) else "visit"
    return json.dumps({"event": event, **asdict(record)})

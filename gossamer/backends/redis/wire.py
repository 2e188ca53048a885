"""What the script answers, read into the words of the model."""

from __future__ import annotations

from typing import Any

import msgspec

from gossamer.model.host import HostView
from gossamer.model.hostrow import HostRow, robots_url, view
from gossamer.model.record import Grant, Kind, Leases, State
from gossamer.model.task import TaskSpec, TaskState, TaskView
from gossamer.ports.frontier import Explained


class GrantRow(msgspec.Struct, array_like=True, gc=False):
    """A lease as the script tells it; a robots lease has the scheme in place of a URL."""

    number: int
    task: str
    kind: Kind
    url: str
    host: str
    priority: int
    depth: int
    hops: int
    request: str
    retries: int
    crashes: int
    suspect: bool


class LeasesRow(msgspec.Struct):
    """The answer of lease and settle."""

    now: float = 0.0
    grants: list[GrantRow] = []
    hosts: list[HostRow] = []
    ended: list[tuple[str, str]] = []
    stale: list[int] = []
    wait: float | None = None

    def leases(self) -> Leases:
        hosts = {row.name: row for row in self.hosts}
        return Leases(
            grants=[_grant(row, hosts) for row in self.grants],
            wait=self.wait,
            stale=self.stale,
            ended=dict(self.ended),
            hosts={name: view(row, self.now) for name, row in hosts.items()},
        )


def _grant(row: GrantRow, hosts: dict[str, HostRow]) -> Grant:
    url = robots_url(hosts[row.host]) if row.kind is Kind.ROBOTS else row.url
    return Grant(
        row.number, row.task, row.kind, url, row.host, row.priority, row.depth, row.hops, row.request.encode(),
        row.retries, row.crashes, row.suspect,
    )  # fmt: skip


class ViewRow(msgspec.Struct):
    """A task as it stands; its spec is a text of its own."""

    state: TaskState
    seeding: bool
    opened_ago: float
    discovered: int
    pending: int
    leased: int
    terminal: int
    reason: str = ""
    ended_ago: float | None = None
    spec: str = ""

    def task(self) -> TaskView:
        return TaskView(
            spec=read_spec(self.spec), state=self.state, reason=self.reason, seeding=self.seeding,
            opened_ago=self.opened_ago, ended_ago=self.ended_ago, discovered=self.discovered, pending=self.pending,
            leased=self.leased, terminal=self.terminal,
        )  # fmt: skip


class CountersRow(msgspec.Struct):
    """All counters of a task, of one moment."""

    view: ViewRow
    counts: list[tuple[str, int]]
    pages: int

    def counters(self) -> dict[str, int]:
        sums = {"done": 0, "failed": 0, "skipped": 0, "items": 0, "retried": 0, "stale": 0, "bytes": 0}
        kept = {name: n for name, n in self.counts if n}
        over = self.view.ended_ago is not None
        return sums | kept | {
            "discovered": self.view.discovered,
            "pending": self.view.pending,
            "leased": self.view.leased,
            "cancelled": self.view.discovered - self.view.terminal if over else 0,
            "pages": self.pages,
        }  # fmt: skip


class ExplainedRow(msgspec.Struct):
    """The life of one record."""

    url: str
    state: State
    depth: int
    priority: int
    retries: int
    crashes: int
    suspect: bool
    due_in: float
    host: HostRow
    now: float
    code: str = ""
    found_on: str = ""
    body: str | None = None

    def explained(self) -> Explained:
        return Explained(
            url=self.url, state=self.state, code=self.code, depth=self.depth, priority=self.priority,
            retries=self.retries, crashes=self.crashes, suspect=self.suspect, found_on=self.found_on, body=self.body,
            due_in=self.due_in, host=view(self.host, self.now),
        )  # fmt: skip


class HostsRow(msgspec.Struct):
    """Rows of hosts, of one moment."""

    now: float
    rows: list[HostRow]

    def views(self, robots: list[bytes]) -> dict[str, HostView]:
        for row, rules in zip(self.rows, robots, strict=True):
            row.robots = rules
        return {row.name: view(row, self.now, robots=True) for row in self.rows}


def decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(kind, strict=False)


read_leases = decoder(LeasesRow).decode
read_view = decoder(ViewRow).decode
read_views = decoder(list[ViewRow]).decode
read_pair = decoder(tuple[int, int]).decode
read_counters = decoder(CountersRow).decode
read_samples = decoder(list[tuple[str, list[str]]]).decode
read_explained = decoder(ExplainedRow | None).decode
read_hosts = decoder(HostsRow).decode
read_number = decoder(int).decode
read_flag = decoder(bool).decode
read_rest = decoder(tuple[int, int, int] | None).decode
read_sessions = decoder(list[tuple[str, str, float, list[tuple[str, str]]]]).decode
read_items = decoder(list[tuple[Any, ...]]).decode
_spec = msgspec.json.Decoder(TaskSpec)


def read_spec(text: str) -> TaskSpec:
    return _spec.decode(text)


def rules_of(spec: TaskSpec) -> dict[str, Any]:
    """What the script must know of a spec."""
    wish = msgspec.to_builtins(spec.wish)
    names = ("max_pages", "max_items", "pages_per_pattern", "max_errors", "keep_open", "log_limit")
    return {"wish": wish} | {name: getattr(spec, name) for name in names}

"""`gossamer explain TASK URL`: the life of one URL in words, or why it has none."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from gossamer.model.errors import UsageError
from gossamer.services import figures
from gossamer.services.commands.flags import Frontier, Namespace
from gossamer.services.commands.tasks import Json, Place, State, TaskName, find_task, opened, wait_for
from gossamer.services.options import STATE

if TYPE_CHECKING:
    from gossamer.model.host import HostView
    from gossamer.model.task import TaskView
    from gossamer.ports.frontier import Explained
    from gossamer.services.refusals import Rules

LABEL = 11
OUTSIDE = frozenset({"scheme", "offsite", "denied"})
"""Refusals that hold for every request to a URL, whatever its method, body or key."""


class Asked(NamedTuple):
    """By what a request is known: its own key, or method, URL and body."""

    method: str = "GET"
    body: bytes | None = None
    key: str | None = None

    @property
    def is_plain(self) -> bool:
        return self == Asked()

    def fingerprint(self, url: str) -> bytes:
        from gossamer.model.url import fingerprint, fingerprint_of_key

        return fingerprint(self.method, url, self.body) if self.key is None else fingerprint_of_key(self.key)


class Found(NamedTuple):
    """Everything that was asked of the frontier about one URL."""

    task: TaskView
    rules: Rules
    url: str
    record: Explained | None
    host: HostView | None
    refused: str | None
    """The rule that would refuse it; asked only where it was never pushed."""
    asked: Asked
    body: Path | None
    """The file that holds the page's body, where it was kept."""
    detail: str
    """What was the matter with a page that failed, where it is among the examples that are kept."""
    is_run: bool
    """Whether a process runs the task now."""


def explain(
    task: TaskName,
    url: Annotated[
        str, Parameter(metavar="URL", help="As it stands in a browser; it is made canonical first.")
    ],
    /,
    *,
    key: Annotated[
        str | None, Parameter(metavar="KEY", allow_leading_hyphen=True, help="Its request's own key.")
    ] = None,
    method: Annotated[
        str | None, Parameter(metavar="METHOD", help="Its request's method: GET, or POST with --body.")
    ] = None,
    body: Annotated[
        str | None,
        Parameter(
            metavar="TEXT", allow_leading_hyphen=True, help="Its request's body, exactly as it was sent."
        ),
    ] = None,
    state: State = STATE,
    frontier: Frontier = "",
    namespace: Namespace = "",
    as_json: Json = False,
) -> int:
    """Tell the life of one URL, or why it has none.

    Where it was found, how it ended or what keeps it waiting, and how its host is doing.
    """
    found = wait_for(_find(Place(state, frontier, namespace), task, url, _asked(key, method, body)))
    if as_json:
        print(json.dumps(_document(found)))
        return 0
    _print(_lines(found))
    return 0


def _asked(key: str | None, method: str | None, body: str | None) -> Asked:
    from gossamer.model.request import METHODS

    if key is not None and (method is not None or body is not None):
        raise UsageError(
            "A request with a key of its own is known by that alone",
            where="option --key",
            hint="leave out --method and --body",
        )
    method = (method or ("GET" if body is None else "POST")).upper()
    if method not in METHODS:
        raise UsageError(
            f"{method!r} is no method that a crawl may use",
            where="option --method",
            hint=f"one of {', '.join(sorted(METHODS))}",
        )
    return Asked(method, None if body is None else body.encode(), key)


async def _find(place: Place, task: str, url: str, asked: Asked) -> Found:
    from gossamer.model.url import canonical, host_key
    from gossamer.services.refusals import refusal, rules_of, url_options
    from gossamer.services.wiring import runner

    async with opened(*place) as frontier:
        view = await find_task(frontier, task)
        rules = rules_of(view.spec)
        url = canonical(url, options=url_options(rules.settings))
        key = host_key(url)
        record = await frontier.explain(task, asked.fingerprint(url), key)
        if record is not None and record.url != url:  # a key leads where it was used, whatever URL was typed
            url, key = record.url, record.host.host
        host = (await frontier.hosts([key])).get(key)
        detail = _detail_of(record, await frontier.samples(task)) if record is not None else ""
    refused = None if record else refusal(rules, url, key, host.robots if host else None)
    host = host or (record.host if record else None)
    is_run = bool(place.frontier) or runner(place.state, task) is not None
    return Found(
        view, rules, url, record, host, refused, asked, _body_of(place.state, record), detail, is_run
    )


def _detail_of(record: Explained, samples: dict[str, list[str]]) -> str:
    """From an example `URL what was the matter`, as failures keep a few."""
    for sample in samples.get(f"failed:{record.code}", []):
        url, _, detail = sample.partition(" ")
        if url == record.url:
            return detail.strip()
    return ""


def _body_of(state: Path, record: Explained | None) -> Path | None:
    """Where the body lies that was kept with this record."""
    from gossamer.services.bodies import body_path

    return body_path(state, record.body) if record is not None and record.body else None


def _lines(found: Found) -> list[tuple[str, str]]:
    """(label, text); without a label a line goes on with the one above."""
    lines = [("", found.url), ("", "")]
    lines += _record_lines(found) if found.record else _unknown_lines(found)
    if found.host is not None:
        lines += [("", ""), *_host_lines(found, found.host)]
    return lines


def _record_lines(found: Found) -> list[tuple[str, str]]:
    from gossamer.model.record import State as RecordState
    from gossamer.services.meanings import meaning

    record = found.record
    assert record is not None
    code = f" ({record.code})" if record.code else ""
    means = meaning(record.code or "ok" if record.state is RecordState.DONE else record.code)
    lines = [("State", f"{record.state.name}{code}" + (f": {means}" if means else ""))]
    if found.detail:
        lines.append(("", found.detail))
    if record.state is RecordState.PENDING:
        lines.append(("", _waits_for(found)))
    lines.append(("Found on", record.found_on or "nowhere: it is where the task started"))
    lines.append(("Depth", _depth(record.depth)))
    if record.priority:
        lines.append(("Priority", f"{record.priority}"))
    lines.append(("Attempts", _attempts(record)))
    if found.body is not None:
        gone = "" if found.body.exists() else " (it is no longer there)"
        lines.append(("Body", f"{found.body}{gone}"))
    return lines


def _waits_for(found: Found) -> str:
    """What keeps a PENDING page, the first thing that applies."""
    record, state = found.record, found.task.state.value
    assert record is not None
    host = record.host
    if state != "RUNNING":
        return f"it waits because the task is {state}"
    if not found.is_run:
        return "it waits because no process runs the task: start its command again"
    if record.due_in > 0:
        return f"it waits for its next attempt, due in {figures.duration(record.due_in)}"
    if host.parked_for > 0:
        return f"it waits because its host is parked for {figures.duration(host.parked_for)} more"
    if found.rules.settings.robots and not host.robots_version:
        return "it waits for the host's robots.txt"
    return "it waits for its turn among the pages of its host"


def _unknown_lines(found: Found) -> list[tuple[str, str]]:
    asked = found.asked
    by = " with this key" if asked.key is not None else " with this method and body"
    lines = [("State", "this task has never met this URL" + ("" if asked.is_plain else by))]
    lines += _unknown_reasons(found)
    if found.refused not in OUTSIDE:
        if asked.is_plain:
            lines.append(
                ("Else try", "--key KEY, or --method METHOD and --body TEXT, if it was asked for so")
            )
        else:
            lines.append(("Else try", "the same without --key, --method and --body: as a plain GET"))
        lines.append(("", "a request with dedupe=False is no other's equal: it cannot be looked for"))
    return lines


def _unknown_reasons(found: Found) -> list[tuple[str, str]]:
    """Which rule would leave it out, or what else may be the matter."""
    from gossamer.services.meanings import meaning

    lines = []
    if found.refused is not None:
        lines.append(("Refused", f"{found.refused}: {meaning(found.refused)}"))
        lines.append(("", "had a page linked to it, it would have been left out"))
        return lines
    lines.append(("Refused", "no: neither scope, trap defence nor the known robots.txt would keep it out"))
    depth = found.rules.settings.depth
    if depth is not None:
        lines.append(("", f"unless it lies deeper than {figures.counted(depth, 'link')} from the seeds"))
    waiting = found.task.pending + found.task.leased
    if waiting and found.task.state.value in {"RUNNING", "PAUSED"}:
        lines.append(("Perhaps", f"{figures.counted(waiting, 'page')} may still link to it"))
    else:
        lines.append(
            ("Perhaps", "no page of the task links to it in this spelling; compare path, slash and query")
        )
    return lines


def _host_lines(found: Found, host: HostView) -> list[tuple[str, str]]:
    lines = [("Host", host.host), ("  Pace", _pace(host))]
    if host.parked_for > 0:
        times = figures.counted(host.level, "time")
        lines.append(("  Parked", f"for {figures.duration(host.parked_for)} more, {times} in a row"))
    if host.trouble:
        answers = figures.counted(host.trouble, "bad answer")
        lines.append(("  Trouble", f"{answers} in a row, none good for {figures.duration(host.bad_for)}"))
    lines.append(("  Robots", _robots(found, host)))
    return lines


def _pace(host: HostView) -> str:
    said = [f"{host.open} open now"]
    if host.delay is None:
        said.append("nobody has measured it yet")
    else:
        pause = figures.duration(host.delay) if host.delay else "no pause"
        said.append(f"{pause} between requests")
    if host.crawl_delay:
        said.append(f"robots.txt asks for {figures.duration(host.crawl_delay)}")
    if host.latency:
        said.append(f"answers in {figures.duration(host.latency)}")
    return " · ".join(said)


def _robots(found: Found, host: HostView) -> str:
    from gossamer.services.refusals import robots_allow

    if not found.rules.settings.robots:
        return "not obeyed: this task ignores robots.txt"
    if not host.robots_version:
        return "not known yet, or expired"
    allowed = robots_allow(host.robots, found.url, found.rules.settings.user_agent)
    return "allows this URL" if allowed else "forbids this URL"


def _depth(depth: int) -> str:
    return "a seed" if depth == 0 else f"{figures.counted(depth, 'link')} from a seed"


def _attempts(record: Explained) -> str:
    said = [f"repeated {figures.counted(record.retries, 'time')}" if record.retries else "not repeated"]
    if record.crashes:
        said.append(f"{figures.counted(record.crashes, 'process', 'processes')} died over it")
    if record.suspect:
        said.append("it is handled alone, because a lease of it ended without a verdict")
    return " · ".join(said)


def _document(found: Found) -> dict[str, Any]:
    record, host = found.record, found.host
    document: dict[str, Any] = {
        "task": found.task.spec.name,
        "url": found.url,
        "state": None,
        "refused": found.refused,
    }
    if record is not None:
        document["state"] = record.state.name
        names = ("code", "found_on", "depth", "priority", "retries", "crashes", "suspect", "due_in")
        document |= {name: getattr(record, name) for name in names}
    if found.detail:
        document["detail"] = found.detail
    if found.body is not None:
        document["body"] = str(found.body)
    if host is not None:
        row = ("host", "open", "delay", "crawl_delay", "level", "trouble", "bad_for", "parked_for", "latency")
        document["host"] = {name: getattr(host, name) for name in row}
        document["host"]["robots_known"] = bool(host.robots_version)
    return document


def _print(lines: list[tuple[str, str]]) -> None:
    if not sys.stdout.isatty():
        for index, (label, text) in enumerate(lines):
            print((f"{label:<{LABEL}}" if index else "") + figures.plain(text) if text else "")
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, markup=False, emoji=False)
    for index, (label, text) in enumerate(lines):
        if index == 0:
            console.print(Text(figures.plain(text), style="bold"), soft_wrap=True)
        else:
            console.print(
                Text.assemble((f"{label:<{LABEL}}", "bright_black"), figures.plain(text)), soft_wrap=True
            )

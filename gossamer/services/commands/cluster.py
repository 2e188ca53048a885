"""`gossamer worker`, `push` and `close`: many machines on one frontier."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from gossamer.model.errors import SettingsError, UsageError
from gossamer.services import figures
from gossamer.services.commands.flags import MAX_WORKERS, Frontier, Namespace
from gossamer.services.commands.tasks import Json, State, TaskName, find_task, opened, wait_for
from gossamer.services.options import STATE

if TYPE_CHECKING:
    from gossamer.services.crew import Duty, Role

CHUNK = 1_000


def worker(
    *,
    frontier: Frontier = "",
    namespace: Namespace = "",
    project: Annotated[
        list[str] | None,
        Parameter(metavar="PATH", help="A file, folder or package with spiders; repeatable."),
    ] = None,
    tasks: Annotated[
        str | None, Parameter(metavar="NAME,…", help="Serve these tasks only; `all` is the default.")
    ] = None,
    concurrency: Annotated[
        int | None, Parameter(metavar="N", help="Open exchanges of one process (64).")
    ] = None,
    processes: Annotated[
        str | None, Parameter(metavar="N", help="Processes; `auto` is one for each processor (1).")
    ] = None,
    labels: Annotated[
        str | None, Parameter(metavar="LABEL,…", help="Serve tasks that need some of these, too.")
    ] = None,
    delay: Annotated[
        float | None,
        Parameter(metavar="S", help="Ask no host more often than this; what a task asks for may be slower."),
    ] = None,
    proxy: Annotated[
        str | None, Parameter(metavar="URL", help="The way out, where a task names none.")
    ] = None,
    state: Annotated[Path | None, Parameter(metavar="DIR", help="Where bodies are kept (.gossamer).")] = None,
    config: Annotated[
        Path | None,
        Parameter(metavar="FILE", help="A TOML file with these options; what is typed is stronger."),
    ] = None,
) -> int:
    """Work on the tasks of a shared frontier until it is stopped.

    The first Ctrl-C, or SIGTERM, finishes the open pages and gives everything else back.
    """
    typed = {
        "frontier": frontier or None, "namespace": namespace or None, "project": project, "tasks": tasks,
        "concurrency": concurrency, "processes": processes, "labels": labels, "delay": delay, "proxy": proxy,
        "state": str(state) if state else None,
    }  # fmt: skip
    chosen = (
        DEFAULTS | read_profile(config) | {name: value for name, value in typed.items() if value is not None}
    )
    duty = duty_of_worker(chosen)
    from gossamer.services.manning import man

    return man(duty, processes_of(chosen["processes"]))


DEFAULTS: dict[str, Any] = {
    "frontier": "", "namespace": "", "project": [], "tasks": "all", "concurrency": 64, "processes": "1", "labels": "",
    "delay": 0.0, "proxy": None, "state": str(STATE),
}  # fmt: skip


def read_profile(file: Path | None) -> dict[str, Any]:
    """A worker's options from a file. Raises SettingsError with the nearest right name."""
    if file is None:
        return {}
    import difflib
    import tomllib

    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"The file cannot be read: {error.strerror}", where=str(file), hint="check --config"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"The file is not TOML: {error}", where=str(file), hint="name = value, one a line"
        ) from None
    for name, value in found.items():
        if name not in DEFAULTS:
            near = difflib.get_close_matches(name, DEFAULTS, n=1)
            hint = near[0] if near else f"one of {', '.join(DEFAULTS)}"
            raise SettingsError(f"A worker has no option {name!r}", where=str(file), hint=hint)
        kind = str if DEFAULTS[name] is None else type(DEFAULTS[name])
        if (
            not isinstance(value, kind)
            and not (name == "processes" and isinstance(value, int))
            and not (kind is float and isinstance(value, int))
        ):
            raise SettingsError(
                f"{name} = {value!r} is no {kind.__name__}",
                where=str(file),
                hint=f"{name} = {DEFAULTS[name]!r}",
            )
    return found


def processes_of(written: Any) -> int:
    import os

    text = str(written)
    if text == "auto":
        return max(len(os.sched_getaffinity(0)), 1)
    if not text.isdigit() or not 1 <= int(text) <= MAX_WORKERS:
        raise UsageError(
            f"{text!r} processes cannot be", where="option --processes", hint=f"auto, or 1 to {MAX_WORKERS}"
        )
    return int(text)


def duty_of_worker(chosen: dict[str, Any]) -> Duty:
    from gossamer.services.crew import Role, duty_of

    if not chosen["frontier"]:
        raise UsageError(
            "A worker serves a frontier that machines share",
            where="gossamer worker",
            hint="--frontier redis://host:6379/0; a state folder has workers by `gossamer run --workers N`",
        )
    concurrency, delay = int(chosen["concurrency"]), float(chosen["delay"])
    if not 1 <= concurrency <= 20_000:
        raise UsageError(
            f"A concurrency of {concurrency} cannot be", where="option --concurrency", hint="1 to 20000"
        )
    if not 0 <= delay <= 3600:
        raise UsageError(f"A delay of {delay:g} s cannot be", where="option --delay", hint="0 to 3600")
    named = split(chosen["tasks"])
    role: Role = Role(
        projects=tuple(chosen["project"]),
        tasks=() if named in ((), ("all",)) else named,
        concurrency=concurrency,
        labels=split(chosen["labels"]),
        delay=delay,
        proxy=chosen["proxy"],
    )
    return duty_of(chosen["state"], "", frontier=chosen["frontier"], namespace=chosen["namespace"], role=role)


def split(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def push(
    task: TaskName,
    *urls: Annotated[str, Parameter(metavar="URL", help="More URLs; `-` reads them from standard input.")],
    frontier: Frontier = "",
    namespace: Namespace = "",
    state: State = STATE,
    as_json: Json = False,
) -> int:
    """Give a running task more URLs; tells how many were new, and how many it knew."""
    if not urls:
        raise UsageError(
            "No URL was given",
            where="gossamer push",
            hint="gossamer push TASK URL..., or - for standard input",
        )
    new, known, refused = wait_for(_pushed(task, read_urls(urls), state, frontier, namespace))
    if as_json:
        print(json.dumps({"task": task, "new": new, "known": known, "refused": refused}))
    else:
        said = f"{new:,} new, {known:,} known"
        print(f"{said}, {sum(refused.values()):,} refused ({figures.causes(refused)})" if refused else said)
    return 0


def close(
    task: TaskName, /, *, frontier: Frontier = "", namespace: Namespace = "", state: State = STATE
) -> int:
    """Let a task end that was opened with --keep-open: when all that it has is done."""
    wait_for(_closed(task, state, frontier, namespace))
    print(f"{figures.plain(task)} ends when all that it has is done.")
    return 0


def read_urls(words: Iterable[str]) -> Iterator[str]:
    for word in words:
        if word == "-":
            yield from (line.strip() for line in sys.stdin if line.strip() and not line.startswith("#"))
        else:
            yield word


async def _pushed(
    task: str, urls: Iterator[str], state: Path, url: str, namespace: str
) -> tuple[int, int, dict[str, int]]:
    """In chunks, each durable before the next one is read: what is interrupted may be pushed again."""
    from gossamer.crawling.outlinks import Refusals
    from gossamer.crawling.runtime import Runtime
    from gossamer.model.request import Request
    from gossamer.services.submission import read_kept
    from gossamer.spiders import Spider

    refusals, new, known = Refusals(), 0, 0
    async with opened(state, url, namespace) as frontier:
        view = await find_task(frontier, task)
        kept = read_kept(view.spec)
        runtime = Runtime(view.spec, Spider("push"), kept.settings, hosts=kept.hosts, home=kept.home)
        while chunk := list(islice(urls, CHUNK)):
            links = [link for one in chunk for link in runtime.outlinks.of_request(Request(one), 0, refusals)]
            answer = await frontier.push(task, links)
            new, known = new + answer.new, known + answer.known
    return new, known, {name.removeprefix("refused:"): n for name, n in refusals.counts.items()}


async def _closed(task: str, state: Path, url: str, namespace: str) -> None:
    import msgspec

    from gossamer.model.task import Command

    async with opened(state, url, namespace) as frontier:
        view = await find_task(frontier, task)
        spec = msgspec.structs.replace(view.spec, keep_open=False)
        await frontier.control(task, Command.UPDATE, spec=spec)

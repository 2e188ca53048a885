"""The options that `crawl` and `run` share, and how they become `RunOptions`.

Options that are settings are taken as text and converted with all other settings, so `--delay 250ms` and
`GOSSAMER_DELAY=250ms` are read, and refused, by the same words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from gossamer.model.errors import SettingsError, UsageError
from gossamer.services.options import STATE, RunOptions

if TYPE_CHECKING:
    from gossamer.services.settings import Given

SPIDER = Group("The spider", sort_key=0)
RESULTS = Group("Results", sort_key=1)
WHAT = Group("What is fetched", sort_key=2)
HOW = Group("How politely", sort_key=3)
RUNNING = Group("How it runs", sort_key=4)
TOGETHER = Group("On several machines", sort_key=5)
FRONTIER = "GOSSAMER_FRONTIER"

Frontier = Annotated[
    str,
    Parameter(
        name="--frontier", group=TOGETHER, metavar="URL", env_var=FRONTIER,
        help="A frontier that machines share: redis://host:6379/0, rediss://…, redis+sentinel://h1,h2/master.",
    ),
]  # fmt: skip
Namespace = Annotated[
    str,
    Parameter(
        name="--namespace", group=TOGETHER, metavar="NAME", env_var="GOSSAMER_NAMESPACE",
        help="Tasks of other namespaces of the store are not seen.",
    ),
]  # fmt: skip

MAX_WORKERS = 256
_TASK = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
OTHER_FORMATS = frozenset({".csv", ".tsv", ".xml", ".parquet", ".xlsx", ".db", ".sqlite", ".yaml", ".yml"})

# Option → setting, where the option's value is the setting's.
SAME = ("max_pages", "depth", "concurrency", "per_host", "delay")


@Parameter(name="*")
@dataclass(kw_only=True)
class Flags:
    """What may be typed after the URLs of `crawl` or the file of `run`."""

    output: Annotated[
        Path | None,
        Parameter(
            alias="-o",
            group=RESULTS,
            metavar="FILE.jsonl",
            allow_leading_hyphen=True,
            help="Where items go, `-` for standard output; <task>.jsonl if not given.",
        ),
    ] = None
    as_json: Annotated[
        bool,
        Parameter(name="--json", group=RESULTS, help="End with one JSON object on stdout."),
    ] = False
    quiet: Annotated[bool, Parameter(alias="-q", group=RESULTS, help="No progress and no summary.")] = False
    allow: Annotated[
        list[str] | None,
        Parameter(group=WHAT, metavar="HOST", help="A host that may be fetched too; repeatable."),
    ] = None
    allow_net: Annotated[
        list[str] | None,
        Parameter(
            group=WHAT,
            metavar="CIDR",
            help="A network that may be dialled though it is not public.",
        ),
    ] = None
    max_pages: Annotated[str | None, Parameter(group=WHAT, metavar="N", help="End after so many pages.")] = (
        None
    )
    depth: Annotated[
        str | None, Parameter(group=WHAT, metavar="N", help="Follow links so far from the seeds.")
    ] = None
    concurrency: Annotated[
        str | None, Parameter(group=HOW, metavar="N", help="Open exchanges of one worker (64).")
    ] = None
    per_host: Annotated[
        str | None, Parameter(group=HOW, metavar="N", help="Open exchanges with one host (4).")
    ] = None
    delay: Annotated[
        str | None,
        Parameter(group=HOW, metavar="S", help="Seconds between requests to a host; adaptive if not given."),
    ] = None
    ignore_robots: Annotated[
        bool, Parameter(group=HOW, help="Do not ask for robots.txt. Only for sites of your own.")
    ] = False
    state: Annotated[
        Path, Parameter(group=RUNNING, metavar="DIR", help="Where the crawl is kept (.gossamer).")
    ] = STATE
    fresh: Annotated[
        bool, Parameter(group=RUNNING, help="Forget what an earlier run did and start anew.")
    ] = False
    workers: Annotated[int, Parameter(group=RUNNING, metavar="N", help="Worker processes (1).")] = 1
    setting: Annotated[
        list[str] | None,
        Parameter(
            name=["-s", "--set"],
            group=RUNNING,
            metavar="NAME=VALUE",
            help="Any other setting; `gossamer settings` lists them.",
        ),
    ] = None
    config: Annotated[
        Path | None,
        Parameter(
            group=RUNNING,
            metavar="FILE",
            help="The settings file (gossamer.toml, if it is here).",
        ),
    ] = None

    frontier: Frontier = ""
    namespace: Namespace = ""
    task: Annotated[
        str | None,
        Parameter(group=TOGETHER, metavar="NAME", help="The task's name; the same name is the same task."),
    ] = None
    no_work: Annotated[
        bool,
        Parameter(name="--no-work", group=TOGETHER, help="Submit and follow it; workers elsewhere fetch."),
    ] = False
    keep_open: Annotated[
        bool,
        Parameter(
            group=TOGETHER, help="Do not end by itself: `gossamer push` gives it more, `close` ends it."
        ),
    ] = False
    needs: Annotated[
        list[str] | None,
        Parameter(
            group=TOGETHER, metavar="LABEL", help="Only workers with this label take part; repeatable."
        ),
    ] = None

    def options(self, **own: Any) -> RunOptions:
        """What `crawl` and `run` share; `own` are settings that one of them has for itself. Raises UsageError, SettingsError."""
        if not 1 <= self.workers <= MAX_WORKERS:
            raise UsageError(
                f"{self.workers} workers cannot be", where="option --workers", hint=f"1 to {MAX_WORKERS}"
            )
        if self.output is not None and self.output.suffix.lower() in OTHER_FORMATS:
            raise UsageError(
                "Items are written as JSON lines",
                where=f"option --output {self.output}",
                hint=f"{self.output.with_suffix('.jsonl')}",
            )
        if self.no_work and not self.frontier:
            raise UsageError(
                "Nobody else works on a state folder",
                where="option --no-work",
                hint="leave it out, or name a --frontier",
            )
        if self.task is not None and not _TASK.fullmatch(self.task):
            raise UsageError(
                f"{self.task[:100]!r} is no name for a task", where="option --task",
                hint="up to 100 letters, digits, dots, - and _",
            )  # fmt: skip
        return RunOptions(
            frontier=self.frontier,
            namespace=self.namespace,
            task=self.task,
            works=not self.no_work,
            keep_open=self.keep_open,
            needs=tuple(self.needs or ()),
            settings=self.given_settings(own),
            config=self.config,
            state=self.state,
            output=self.output,
            fresh=self.fresh,
            workers=self.workers,
            json=self.as_json,
            quiet=self.quiet,
        )

    def given_settings(self, own: Mapping[str, Any]) -> dict[str, Given]:
        """The settings that were typed, by name; raises SettingsError for one that was typed twice."""
        from gossamer.services.settings import Given, assignments

        given = assignments(self.setting or ())
        typed = {name: (getattr(self, name), name) for name in (*SAME, "allow_net", "allow")}
        typed |= {name: (value, name) for name, value in own.items()}
        typed["robots"] = (False if self.ignore_robots else None, "ignore_robots")
        for name, (value, option) in typed.items():
            if value is None or value == []:
                continue
            where = f"option --{option.replace('_', '-')}"
            if name in given:
                raise SettingsError(
                    f"{name} is given twice", where=f"{where} and -s {name}", hint="give it once"
                )
            given[name] = Given(value, where)
        return given


def pairs(given: Iterable[str], option: str, form: str) -> dict[str, str]:
    """NAME=VALUE, any number of times, each name once."""
    found: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UsageError(
                f"{pair!r} has no name and value", where=f"option {option}", hint=f"{option} {form}"
            )
        if name.strip() in found:
            raise UsageError(
                f"{name.strip()!r} is given twice", where=f"option {option}", hint="give it once"
            )
        found[name.strip()] = value
    return found

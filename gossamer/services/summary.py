"""The end of a run: what was done, what was not and why, where the results are, and what to do next.

People read the summary on stderr, programs the one JSON object on stdout and the exit code. All three are made from
the same `Ending`, so they cannot disagree.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self, TextIO

from gossamer.model.errors import ExitCode
from gossamer.services import figures
from gossamer.services.options import STATE
from gossamer.spiders.effects import DROPPED, INVALID, OWN

INTERRUPTED = "INTERRUPTED"
DONE, FAILED, SKIPPED, REFUSED, SEED = "done:", "failed:", "skipped:", "refused:", "seed:"
"""Before the causes in names of counters and samples. `seed:` is ours: refused seeds are counted by no store."""
EXAMPLES = 2
"""Examples shown for each cause of failure; `gossamer explain` tells the rest."""
CAUSES = 8
"""Causes or reasons shown one below the other."""
ON_ONE_LINE = 12
"""Counters shown beside each other."""
SHOWN = 160
"""Characters shown of an example that is an item."""
LABEL = 11


@dataclass(kw_only=True)
class Ending:
    """How a run ended. The counters are the frontier's, over all runs of the task; the duration is this run's."""

    task: str
    state: str
    reason: str = ""
    pages: int = 0
    items: int = 0
    failed: int = 0
    skipped: int = 0
    retried: int = 0
    bytes: int = 0
    waiting: int = 0
    """Records that are not ended: what an interrupted run leaves to the next one."""
    seconds: float = 0.0
    pages_now: int | None = None
    """Pages of this run, for the rate of a resumed one; None: all of them are of this run."""
    interrupted: bool = False
    answers: dict[str, int] = field(default_factory=dict)
    """Answers that are done and are no page: `http_404`, `http_403` …"""
    failures: dict[str, int] = field(default_factory=dict)
    skips: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """The author's own counters (`page.count`)."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Items that the author left out (`page.drop`, cleaning), by reason."""
    invalid: dict[str, int] = field(default_factory=dict)
    """Items that could not be stored, by reason: `schema`, `key`, `too_large` …"""
    refused: dict[str, int] = field(default_factory=dict)
    """Links that were not taken, by cause: `offsite`, `too_deep`, `denied` …"""
    seeds_refused: dict[str, int] = field(default_factory=dict)
    """Seeds of this run that were not taken, by cause."""
    samples: dict[str, list[str]] = field(default_factory=dict)
    """Examples by counter, as the frontier keeps them (`failed:http_503`, `dropped:REASON`, `refused:offsite`)."""
    output: Path | None = None
    state_dir: Path = STATE
    notes: list[str] = field(default_factory=list)
    """Sentences that no figure tells, such as why nothing was fetched."""

    @classmethod
    def of(
        cls,
        task: str,
        state: str,
        counters: Mapping[str, int],
        samples: Mapping[str, list[str]] | None = None,
        *,
        seconds: float,
        reason: str = "",
        interrupted: bool = False,
        pages_before: int = 0,
        output: Path | None = None,
        state_dir: Path = STATE,
    ) -> Self:
        """From the frontier's counters."""
        pages = counters.get("pages", 0)
        answers = {code: n for code, n in _by_cause(counters, DONE).items() if code.startswith("http_")}
        ending = cls(
            task=task,
            state=str(state),
            reason=reason,
            pages=pages,
            items=counters.get("items", 0),
            failed=counters.get("failed", 0),
            skipped=counters.get("skipped", 0),
            retried=counters.get("retried", 0),
            bytes=counters.get("bytes", 0),
            waiting=counters.get("pending", 0) + counters.get("leased", 0),
            seconds=seconds,
            pages_now=pages - pages_before,
            interrupted=interrupted,
            answers=answers,
            failures=_by_cause(counters, FAILED),
            skips=_by_cause(counters, SKIPPED),
            counts=_by_cause(counters, OWN),
            dropped=_by_cause(counters, DROPPED),
            invalid=_by_cause(counters, INVALID),
            refused=_by_cause(counters, REFUSED),
            samples={name: list(some) for name, some in (samples or {}).items()},
            output=output,
            state_dir=state_dir,
        )
        if pages and not ending.items and sum(answers.values()) >= pages:
            ending.notes.append(
                "No page was found: every answer was an error. Look at the address of the start."
            )
        return ending

    def note_selected(self, fields: Iterable[str]) -> None:
        """Say which `--select` found nothing on any page, though there were pages: it is misspelt more often than not."""
        if self.items:
            self.notes += [
                f"--select {name} matched on no page" for name in fields if not self.counts.get(name)
            ]

    def note_seeds(self, counts: Mapping[str, int], samples: Iterable[tuple[str, str]]) -> None:
        """What the feeder refused: `refused:CAUSE` → how many, and an example of each."""
        self.seeds_refused = _by_cause(counts, REFUSED)
        for name, url in samples:
            self.samples.setdefault(SEED + name.removeprefix(REFUSED), []).append(url)

    @property
    def shown_state(self) -> str:
        """INTERRUPTED where this process left a task that goes on; else the task's own state."""
        return INTERRUPTED if self.interrupted else self.state

    @property
    def pages_per_second(self) -> float:
        pages = self.pages if self.pages_now is None else self.pages_now
        return round(pages / self.seconds, 1) if self.seconds > 0 else 0.0

    @property
    def exit_code(self) -> ExitCode:
        if self.interrupted:
            return ExitCode.INTERRUPTED
        if self.state != "COMPLETED":
            return ExitCode.TASK_FAILED
        return ExitCode.PAGES_FAILED if self.failed else ExitCode.COMPLETED

    def to_json(self) -> str:
        """The one line that `--json` promises: these keys, no others."""
        return json.dumps(
            {
                "task": self.task,
                "state": self.shown_state,
                "pages": self.pages,
                "items": self.items,
                "failed": self.failed,
                "skipped": self.skipped,
                "retried": self.retried,
                "bytes": self.bytes,
                "seconds": round(self.seconds, 3),
                "pages_per_second": self.pages_per_second,
            }
        )


def report(
    ending: Ending,
    *,
    as_json: bool = False,
    quiet: bool = False,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
) -> ExitCode:
    """Tell people and programs; the exit code is for the caller to return."""
    stderr = sys.stderr if stderr is None else stderr
    stdout = sys.stdout if stdout is None else stdout
    if not quiet:
        show(ending, stderr)
    if as_json:
        stdout.write(f"{ending.to_json()}\n")
        stdout.flush()
    return ending.exit_code


def show(ending: Ending, stream: TextIO) -> None:
    """The summary: in colour on a terminal, the same words without it elsewhere."""
    lines = summary_lines(ending)
    if not stream.isatty():
        stream.write("".join(f"{text}\n" for text, _ in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    for text, style in lines:
        shown = Text(text, style="bold" if style else "")
        if style:
            shown.stylize(style, 0, len(ending.shown_state))
        elif text.startswith("  "):
            shown.stylize("bright_black", 0, LABEL + 2)
        console.print(shown, soft_wrap=True)


def summary_lines(ending: Ending) -> list[tuple[str, str]]:
    """Each line with its style, which only the first has."""
    lines = [_first_line(ending), ""]
    lines += account_lines(ending)
    lines += [_line("Note", figures.plain(note)) for note in ending.notes]
    if ending.output is not None:
        output = "standard output" if str(ending.output) == "-" else str(ending.output)
        lines.append(_line("Results", figures.plain(output)))
    steps = _next_steps(ending)
    lines += [_line("Next" if index == 0 else "", step) for index, step in enumerate(steps)]
    style = {ExitCode.COMPLETED: "green", ExitCode.TASK_FAILED: "red"}.get(ending.exit_code, "yellow")
    return [("", ""), (lines[0], style), *((line, "") for line in lines[1:]), ("", "")]


def account_lines(ending: Ending) -> list[str]:
    """What was done and what was left out, with causes and examples; also of a task that still runs."""
    lines = [_line(label, said) for label, said in _figures(ending) if said]
    if ending.answers:
        ranked = sorted(ending.answers.items(), key=lambda answer: (-answer[1], answer[0]))
        said = [f"{number:,} {figures.plain(code)}" for code, number in ranked[:CAUSES]]
        lines.append(_line("Answers", " · ".join(said)))
    lines += _by_reason("Failed", ending.failures, FAILED, ending, examples=EXAMPLES)
    lines += _by_reason("Dropped", ending.dropped, DROPPED, ending)
    lines += _by_reason("Invalid", ending.invalid, INVALID, ending)
    # A link to a fragment is the page that it stands on: nothing was left out.
    refused = {cause: number for cause, number in ending.refused.items() if cause != "fragment"}
    if links := sum(refused.values()):
        lines.append(_line("Left out", f"{figures.counted(links, 'link')}  {figures.causes(refused)}"))
    lines += _refused_seeds(ending)
    if ending.counts:
        lines.append(_line("Counted", figures.causes(ending.counts, ON_ONE_LINE)))
    return lines


def _first_line(ending: Ending) -> str:
    reason = f" ({figures.plain(ending.reason)})" if ending.reason else ""
    return (
        f"{ending.shown_state}{reason}  {figures.plain(ending.task)}  in {figures.duration(ending.seconds)}"
    )


def _figures(ending: Ending) -> list[tuple[str, str]]:
    before = "" if ending.pages_now in {None, ending.pages} else f", {ending.pages_now:,} of them in this run"
    speed = f"  {ending.pages_per_second:,.1f}/s" if ending.pages_per_second else ""
    skipped = f"{ending.skipped:,}  {figures.causes(ending.skips)}".rstrip() if ending.skipped else ""
    return [
        ("Pages", f"{ending.pages:,}{before}{speed}  {figures.size(ending.bytes)}"),
        ("Items", f"{ending.items:,}"),
        ("Waiting", f"{ending.waiting:,}" if ending.waiting else ""),
        ("Retried", f"{ending.retried:,}" if ending.retried else ""),
        ("Skipped", skipped),
    ]


def _by_reason(
    label: str, causes: Mapping[str, int], prefix: str, ending: Ending, *, examples: int = 1
) -> list[str]:
    """How many, then each cause with its number, the most frequent first, and examples below it."""
    total = ending.failed if prefix == FAILED else sum(causes.values())
    if not total:
        return []
    ranked = sorted(causes.items(), key=lambda cause: (-cause[1], cause[0]))
    lines = [_line(label, f"{total:,}")]
    for cause, number in ranked[:CAUSES]:
        lines.append(_line("", f"{number:,} {figures.plain(cause)}"))
        some = ending.samples.get(prefix + cause, [])[:examples]
        # A URL is shown whole, to be copied; an item only so far that it can be recognised.
        lines += [_line("", f"  {figures.plain(one if prefix == FAILED else _short(one))}") for one in some]
    if len(ranked) > CAUSES:
        lines.append(_line("", f"{len(ranked) - CAUSES} more causes"))
    return lines


def _refused_seeds(ending: Ending) -> list[str]:
    refused = ending.seeds_refused
    if not refused:
        return []
    lines = [_line("Seeds", f"{sum(refused.values()):,} refused  {figures.causes(refused)}")]
    examples = [url for cause in refused for url in ending.samples.get(SEED + cause, [])]
    return lines + [_line("", f"  {figures.plain(url)}") for url in examples[:EXAMPLES]]


def _next_steps(ending: Ending) -> list[str]:
    state = "" if ending.state_dir == STATE else f" --state {quoted(str(ending.state_dir))}"
    task = quoted(ending.task)
    if ending.interrupted:
        return ["the same command goes on where this one stopped"]
    if not ending.failed:
        return [] if ending.state == "COMPLETED" else [f"gossamer tasks{state}"]
    codes = sorted(ending.failures, key=lambda code: -ending.failures[code])
    # A sample is a URL, and perhaps a blank and what was the matter with it.
    urls = [sample.partition(" ")[0] for code in codes for sample in ending.samples.get(f"failed:{code}", [])]
    url = quoted(urls[0]) if urls else "URL"
    return [
        f"gossamer explain {task} {url}{state}",
        f"gossamer retry-failed {task}{state}, then the same command again",
    ]


def quoted(word: str) -> str:
    """As a shell takes it."""
    import shlex

    return shlex.quote(figures.plain(word))


def _by_cause(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    return {name.removeprefix(prefix): number for name, number in counters.items() if name.startswith(prefix)}


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _line(label: str, said: str) -> str:
    return f"  {label:<{LABEL}}{said}".rstrip()

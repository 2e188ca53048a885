"""Every error that Gossamer raises on purpose, in one tree.

An error answers three questions: what was wrong, where, and what to do about it. `code` is the stable word that logs,
the API and scripts match on; sentences may be reworded, codes may not. Exit codes are one table at the end, so a shell
script can rely on them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

SHOWN = 300
"""How much of a foreign string (a URL, a path, a value) an error repeats: log lines stay bounded."""


class GossamerError(Exception):
    """The root: catch it to catch everything that Gossamer says about its own work."""

    code: ClassVar[str] = "error"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        said = [_sentence(self.what)]
        if self.where:
            said.append(_sentence(f"Where: {_clip(self.where)}"))
        if self.hint:
            said.append(_sentence(f"Try: {self.hint}"))
        return " ".join(said)


class SettingsError(GossamerError):
    """A setting, in a file, the environment or the command line, cannot be used."""

    code = "settings"


class UsageError(GossamerError):
    """The command or the call was given something it cannot work with."""

    code = "usage"


class SpiderError(GossamerError):
    """A spider file could not be loaded, or the spider is not one that can be run."""

    code = "spider"


class StateError(GossamerError):
    """The state directory is broken, read-only, full, or written by a newer version."""

    code = "state"


class OutputError(GossamerError):
    """The results cannot be written to where they should go."""

    code = "output"


class TaskFailed(GossamerError):  # noqa: N818  (the name of a task's terminal state)
    """The task as a whole could not go on; the pages settled so far are kept."""

    code = "task_failed"


class ItemError(GossamerError):
    """A handler yielded something that is no item, or one that its schema refuses."""

    code = "item"


class StaleLease(GossamerError):  # noqa: N818  (a fact about a lease, known by this name in the frontier's contract)
    """The lease was lost (its session ended, or the task was cancelled): what was done under it must not count."""

    code = "stale_lease"


class InvalidURL(GossamerError):  # noqa: N818  (reads as what it is where it is raised and caught)
    """A URL that Gossamer will not fetch; `reason` is one of `URL_REASONS`."""

    code = "invalid_url"

    def __init__(self, reason: str, *, where: str | None = None) -> None:
        what, hint = URL_REASONS[reason]
        super().__init__(what, where=where, hint=hint)
        self.reason = reason


URL_REASONS: dict[str, tuple[str, str]] = {
    "scheme": ("The URL is neither http nor https", "give an address that starts with https:// or http://"),
    "userinfo": (
        "The URL holds a user name or password",
        "remove the part before @ and set credentials in the task's headers",
    ),
    "url_too_long": ("The URL is longer than 8 KiB", "send large values as a request body"),
    "port": (
        "The URL names port 0 or a port of another service",
        "allow the port in the settings if a web server really listens there",
    ),
    "host": ("The host name of the URL is not a valid one", "check the spelling of the host"),
    "bad_location": (
        "The server redirects to an address that cannot be read",
        "open the page in a browser to see where it leads",
    ),
    "syntax": ("The URL cannot be read", "write it as https://host/path"),
}
"""Why a URL is refused → (what is said, what to do). The keys are stable: records are SKIPPED or FAILED with them."""


class ExitCode(IntEnum):
    """What `gossamer` tells the shell."""

    COMPLETED = 0
    USAGE = 1
    PAGES_FAILED = 3
    TASK_FAILED = 4
    INTERRUPTED = 130


_EXITS: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (SettingsError, ExitCode.USAGE),
    (UsageError, ExitCode.USAGE),
    (SpiderError, ExitCode.USAGE),
    (InvalidURL, ExitCode.USAGE),
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
)


def exit_code(error: BaseException) -> ExitCode:
    """The exit code of a process that ends by this error: what is not in the table has failed the task."""
    return next((code for kind, code in _EXITS if isinstance(error, kind)), ExitCode.TASK_FAILED)


def _clip(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


def _sentence(text: str) -> str:
    text = text.strip().rstrip(",;:")
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."

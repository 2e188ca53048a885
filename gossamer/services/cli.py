"""`gossamer`: the command line.

One application of commands (each in `services.commands`), one place where errors become a line, a hint and an exit
code. A shell script can rely on the exit codes of `model.errors.ExitCode`, on stdout holding nothing but results, and
on stderr holding everything else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Group, Parameter
from cyclopts.exceptions import UnknownCommandError

from gossamer.model.errors import ExitCode, GossamerError, OutputError, StateError, exit_code
from gossamer.services.commands.cluster import close, push, worker
from gossamer.services.commands.crawl import crawl, run
from gossamer.services.commands.demo import bench, demo
from gossamer.services.commands.explain import explain
from gossamer.services.commands.settings import settings
from gossamer.services.commands.tasks import cancel, pause, resume, retry_failed, tasks
from gossamer.services.commands.top import top

CRAWL = Group("Crawl", sort_key=1)
STEER = Group("Watch and steer", sort_key=2)
LEARN = Group("Learn", sort_key=3)
ABOUT = Group("About", sort_key=4)

COMMANDS: tuple[tuple[Callable[..., int], Group, str], ...] = (
    (crawl, CRAWL, "crawl URL... [OPTIONS]"),
    (run, CRAWL, "run FILE [-a NAME=VALUE]... [OPTIONS]"),
    (worker, CRAWL, "worker --frontier URL [OPTIONS]"),
    (tasks, STEER, "tasks [TASK] [OPTIONS]"),
    (top, STEER, "top [OPTIONS]"),
    (explain, STEER, "explain TASK URL [OPTIONS]"),
    (pause, STEER, "pause TASK [OPTIONS]"),
    (resume, STEER, "resume TASK [OPTIONS]"),
    (cancel, STEER, "cancel TASK [OPTIONS]"),
    (retry_failed, STEER, "retry-failed TASK [OPTIONS]"),
    (push, STEER, "push TASK URL... [OPTIONS]"),
    (close, STEER, "close TASK [OPTIONS]"),
    (demo, LEARN, "demo [OPTIONS]"),
    (bench, LEARN, "bench [OPTIONS]"),
    (settings, LEARN, "settings [NAME] [OPTIONS]"),
)
"""In the order in which people meet them."""


def application() -> App:
    app = App(
        name="gossamer",
        help="Collect the web: the same spider on a laptop and on a cluster, every URL accounted for exactly once.",
        help_epilogue="Exit codes: 0 completed, 1 wrong usage or settings, 3 completed but some pages FAILED, "
        "4 the task failed, 130 interrupted and resumable.",
        version=_version,
        help_format="plaintext",
        default_parameter=Parameter(negative=(), show_default=False),
        suppress_keyboard_interrupt=False,
        group_commands=ABOUT,
    )
    for order, (command, group, usage) in enumerate(COMMANDS):
        app.command(command, group=group, sort_key=order, usage=f"Usage: gossamer {usage}")
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and answer with its exit code; never raises, and never ends by a traceback that is not a bug."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        code = application()(words, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        _tell(*_usage(error))
        return int(ExitCode.USAGE)
    except (StateError, OutputError) as error:
        # A run that had begun raises TaskFailed instead: here the command named what cannot be used.
        _tell(error.what, error.where, error.hint)
        return int(ExitCode.USAGE)
    except GossamerError as error:
        _tell(error.what, error.where, error.hint)
        return int(exit_code(error))
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        return _reader_left()
    except Exception as error:  # noqa: BLE001  (the last line of defence: Python's own exit code 1 means wrong usage here)
        return _fault(error)
    return code if isinstance(code, int) else int(ExitCode.COMPLETED)


def _usage(error: CycloptsError) -> tuple[str, str | None, str]:
    """What was wrong with the command itself, with the nearest right word."""
    chain = " ".join(error.command_chain or ())
    what, mark, near = str(error).partition(" Did you mean ")
    known = what.partition(" Available commands:")[0]
    if mark:
        hint = near.partition("?")[0].strip('"')
        return known, None, hint if isinstance(error, UnknownCommandError) is False else f"gossamer {hint}"
    return known, None, f"gossamer {chain} --help" if chain else "gossamer --help"


def _tell(what: str, where: str | None, hint: str | None) -> None:
    """One clear line, then where, then what to do."""
    from gossamer.services.figures import plain

    colour = sys.stderr.isatty() and "NO_COLOR" not in os.environ
    mark = "\x1b[1;31merror:\x1b[0m" if colour else "error:"
    lines = [f"{mark} {plain(what.strip())}"]
    if where:
        lines.append(f"  where  {plain(where)}")
    if hint:
        lines.append(f"  try    {plain(hint)}")
    print("\n".join(lines), file=sys.stderr)


def _reader_left() -> int:
    """`gossamer tasks | head`: whoever read has enough; Python must not complain of it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(ExitCode.COMPLETED)


def _fault(error: Exception) -> int:
    """Nothing that was foreseen: a full disk, or a fault of this program, which its maker will want to see whole."""
    if isinstance(error, OSError):
        _tell(f"{error.strerror or error}", str(error.filename) if error.filename else None, None)
    else:
        import traceback

        traceback.print_exception(error)
        _tell(
            f"{type(error).__name__}: {error}",
            None,
            "report this, with the lines above; what was crawled is kept",
        )
    return int(exit_code(error))


def _version() -> str:
    from importlib.metadata import version

    return f"gossamer {version('gossamer')}"


if __name__ == "__main__":
    sys.exit(main())

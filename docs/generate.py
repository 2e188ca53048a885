"""Writes the reference pages that the program itself knows best: `python docs/generate.py`.

`cli.md` holds the help of every command as a terminal shows it, `settings.md` what `gossamer settings --markdown` prints. A
test fails when a page is not what this would write.
"""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from gossamer.services import cli

REFERENCE = Path(__file__).parent / "reference"
# The same page on every machine: as wide as a page of documentation, and without colours.
TERMINAL = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
INTRODUCTION = """\
# Commands

Written by `python docs/generate.py` from the `--help` of each command.

stdout holds nothing but results (`--json`, `tasks`, `explain`, `settings`); progress, summaries and errors go to stderr.

| exit code | means |
| --- | --- |
| 0 | completed |
| 1 | the command, a setting or the spider file is wrong, the state or the output cannot be used, or another process runs this crawl; nothing was fetched |
| 3 | completed, but some pages ended FAILED |
| 4 | the task failed as a whole, or was cancelled |
| 130 | interrupted; the same command goes on |
| 141 | who read the items of `-o -` has left; the same command goes on |

Pages that the server answers with 404 and the like are answers: they do not change the exit code. The summary counts them.
"""


def said(*words: str) -> str:
    """What a command prints on stdout."""
    out = StringIO()
    with patch.dict(os.environ, TERMINAL), redirect_stdout(out):
        code = cli.main(words)
    if code:
        raise SystemExit(f"gossamer {' '.join(words)} ended with exit code {code}")
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines()) + "\n"


def commands_page() -> str:
    names = [command.__name__.replace("_", "-") for command, _, _ in cli.COMMANDS]
    parts = [INTRODUCTION, f"## gossamer\n\n```text\n{said('--help')}```\n"]
    parts += [f"## gossamer {name}\n\n```text\n{said(name, '--help')}```\n" for name in names]
    return "\n".join(parts)


def pages() -> dict[Path, str]:
    """Every generated page with its content."""
    return {
        REFERENCE / "cli.md": commands_page(),
        REFERENCE / "settings.md": said("settings", "--markdown"),
    }


def main() -> None:
    for path, content in pages().items():
        path.write_text(content, encoding="utf-8")
        print(path.relative_to(REFERENCE.parents[1]), file=sys.stderr)


if __name__ == "__main__":
    main()

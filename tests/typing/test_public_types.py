"""The types of the public API, checked by the checker that authors use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_typed_examples_pass_the_strict_checker():
    """Right code passes, wrong code is refused (an ignore that hides nothing is an error)."""
    example = Path(__file__).with_name("author.py")
    told = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", str(example)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert told.returncode == 0, told.stdout

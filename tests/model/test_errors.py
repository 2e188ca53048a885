"""Errors are sentences with stable codes."""

from __future__ import annotations

import pytest

from gossamer.model import errors
from gossamer.model.errors import ExitCode, GossamerError, InvalidURL, exit_code


def every_error() -> list[type[GossamerError]]:
    return [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, GossamerError)
    ]


def test_an_error_says_what_where_and_what_to_do():
    """The sentence chain holds all three parts, each closed with one full stop."""
    error = GossamerError("The disk is full.", where="./state", hint="free some space")
    assert str(error) == "The disk is full. Where: ./state. Try: free some space."


def test_absent_parts_leave_no_trace():
    """An error without place or advice is one sentence."""
    assert str(GossamerError("Nothing to crawl")) == "Nothing to crawl."


def test_codes_are_unique_and_snake_case():
    """Two kinds of error can never be confused by a script."""
    codes = [kind.code for kind in every_error()]
    assert len(codes) >= 10
    assert len(set(codes)) == len(codes)
    assert all(code.replace("_", "").isalpha() and code.islower() for code in codes)


def test_a_long_place_is_clipped():
    """A megabyte of URL does not become a megabyte of log."""
    assert len(str(GossamerError("Bad", where="x" * 1_000_000))) < 400


@pytest.mark.parametrize("reason", list(errors.URL_REASONS))
def test_every_url_reason_has_a_sentence(reason: str):
    """Each reason code speaks for itself and stays readable as an attribute."""
    error = InvalidURL(reason, where="x")
    assert error.reason == reason
    assert "Where: x. Try: " in str(error)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.SettingsError("x"), 1),
        (errors.UsageError("x"), 1),
        (errors.SpiderError("x"), 1),
        (InvalidURL("scheme"), 1),
        (errors.StateError("x"), 4),
        (errors.OutputError("x"), 4),
        (errors.TaskFailed("x"), 4),
        (RuntimeError("x"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_exit_codes_are_those_of_the_table(error: BaseException, code: int):
    """The shell learns the kind of failure from the number alone."""
    assert exit_code(error) == code


def test_the_numbers_never_change():
    """Scripts of users depend on these figures."""
    assert {code.name: int(code) for code in ExitCode} == {
        "COMPLETED": 0,
        "USAGE": 1,
        "PAGES_FAILED": 3,
        "TASK_FAILED": 4,
        "INTERRUPTED": 130,
    }

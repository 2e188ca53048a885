"""The end of a run is told alike to people, to programs and to the shell."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gossamer.services.summary import Ending, report, summary_lines

COUNTERS = {
    "pages": 3210,
    "items": 3180,
    "failed": 3,
    "failed:http_503": 2,
    "failed:timeout_total": 1,
    "skipped": 12,
    "skipped:robots": 12,
    "retried": 9,
    "bytes": 41_200_000,
    "done:ok": 3210,
}
SAMPLES = {
    "failed:http_503": ["https://a.example/x?y=1&z=2 the server is busy"],
    "failed:timeout_total": ["https://a.example/slow"],
}


def ending(state: str = "COMPLETED", counters: dict[str, int] | None = None, **changes: Any) -> Ending:
    return Ending.of(
        "books", state, COUNTERS if counters is None else counters, SAMPLES, **({"seconds": 8.2134} | changes)
    )


def told(end: Ending, **how: Any) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = report(end, stdout=out, stderr=err, **how)
    return code, out.getvalue(), err.getvalue()


def test_json_has_exactly_the_promised_keys():
    """Programs get these ten keys in one last line of stdout, and nothing else is there."""
    _, out, _ = told(ending(), as_json=True)
    assert json.loads(out.splitlines()[-1]) == {
        "task": "books",
        "state": "COMPLETED",
        "pages": 3210,
        "items": 3180,
        "failed": 3,
        "skipped": 12,
        "retried": 9,
        "bytes": 41_200_000,
        "seconds": 8.213,
        "pages_per_second": 390.8,
    }
    assert len(out.splitlines()) == 1


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ending(counters={"pages": 1}), 0),
        (ending(), 3),
        (ending("FAILED", {}), 4),
        (ending("CANCELLED", {}), 4),
        (ending("RUNNING", {}, interrupted=True), 130),
        (ending("PAUSED", {"failed": 2}, interrupted=True), 130),
    ],
)
def test_the_exit_code_tells_how_it_ended(end: Ending, code: int):
    """Completed, completed with failures, failed and interrupted are four codes."""
    assert told(end, quiet=True)[0] == code


def test_an_interrupted_run_is_no_running_one():
    """A program that reads the JSON of a stopped run does not take it for one that goes on."""
    end = ending("RUNNING", {"pages": 10, "pending": 5}, interrupted=True)
    assert json.loads(end.to_json())["state"] == "INTERRUPTED"
    assert "the same command goes on" in told(end)[2]


def test_people_read_it_on_stderr():
    """Without --json stdout is empty; with --quiet stderr is too."""
    _, out, err = told(ending())
    assert (out, "COMPLETED" in err) == ("", True)
    assert told(ending(), quiet=True)[2] == ""


def test_failures_come_with_codes_examples_and_next_steps():
    """Whoever sees failures sees why, an example, and the commands that help, ready to paste."""
    text = told(ending(output=Path("books.jsonl")))[2]
    for said in (
        "3,210  390.8/s  41.2 MB",
        "2 http_503",
        "https://a.example/slow",
        "12  robots 12",
        "Results    books.jsonl",
        "gossamer explain books 'https://a.example/x?y=1&z=2'",
        "gossamer retry-failed books",
    ):
        assert said in text


def test_next_steps_name_a_state_directory_that_is_not_the_default():
    """The commands work as they are pasted, also with --state."""
    text = told(ending(state_dir=Path("my state")))[2]
    assert "gossamer retry-failed books --state 'my state'" in text


def test_a_clean_end_asks_for_nothing():
    """A crawl without failures has no next step."""
    text = told(ending(counters={"pages": 7, "items": 7}))[2]
    assert "Next" not in text
    assert "Failed" not in text


def test_a_resumed_run_measures_itself():
    """The rate is that of this run; the pages of earlier ones do not make it look fast."""
    end = ending(counters={"pages": 1000}, pages_before=900, seconds=10.0)
    assert end.pages_per_second == 10.0
    assert "100 of them in this run" in told(end)[2]


LEFT_OUT = {
    "pages": 9,
    "own:in_stock": 7,
    "own:sold out": 1200,
    "own:nothing": 0,
    "dropped:no price": 12,
    "dropped:test item": 1,
    "invalid:schema": 3,
    "refused:offsite": 312,
    "refused:too_deep": 40,
    "refused:fragment": 900,
}


def test_what_was_left_out_is_told_with_reasons_and_examples():
    """Dropped and invalid items, links and the author's counters each have their line, and items an example a reason."""
    end = ending(counters=LEFT_OUT)
    end.samples = {
        "dropped:no price": ["{'name': 'a'}", "{'name': 'b'}"],
        "invalid:schema": ["invalid:schema Expected `str` {'name': " + "x" * 300],
    }
    text = told(end)[2]
    for said in (
        "  Dropped    13\n             12 no price\n               {'name': 'a'}\n             1 test item\n",
        "  Invalid    3\n             3 schema\n               invalid:schema Expected `str` {'name': xx",
        "  Left out   352 links  offsite 312 · too_deep 40\n",
        "  Counted    sold out 1,200 · in_stock 7\n",
    ):
        assert said in text
    assert "'b'" not in text
    assert max(map(len, text.splitlines())) < 200


def test_the_ended_hook_gets_what_was_counted_as_fields():
    """Library users and `@spider.ended` need not take names of counters apart."""
    end = ending(counters=LEFT_OUT)
    assert end.counts == {"in_stock": 7, "sold out": 1200, "nothing": 0}
    assert end.dropped == {"no price": 12, "test item": 1}
    assert end.invalid == {"schema": 3}
    assert end.refused == {"offsite": 312, "too_deep": 40, "fragment": 900}


def test_refused_seeds_are_told():
    """How many, why, and which, for a start that was written wrongly is found nowhere else."""
    end = ending(counters={"pages": 1})
    end.note_seeds(
        {"refused:offsite": 3, "refused:syntax": 1},
        [("refused:offsite", "https://b.example/"), ("refused:syntax", "b.example")],
    )
    text = told(end)[2]
    assert "  Seeds      4 refused  offsite 3 · syntax 1\n             " in text
    assert "https://b.example/\n" in text
    assert "b.example\n" in text


def test_a_run_that_left_nothing_out_says_nothing_of_it():
    """The summary of a plain crawl stays short."""
    text = told(ending(counters={"pages": 7, "items": 7}))[2]
    assert not any(word in text for word in ("Dropped", "Invalid", "Left out", "Seeds", "Counted"))


def test_many_causes_stay_short():
    """A hundred codes do not fill the screen."""
    counters = {f"failed:http_{n}": 1 for n in range(500, 600)} | {"failed": 100}
    assert len(summary_lines(ending(counters=counters))) < 25


def test_foreign_words_cannot_steer_the_terminal():
    """Codes, samples and reasons lose their control characters."""
    end = ending(counters={"failed": 1, "failed:\x1b[2J": 1}, reason="\x1b[31m")
    end.samples = {"failed:\x1b[2J": ["https://a.example/\x1b]0;x"]}
    assert "\x1b" not in told(end)[2]


def test_a_terminal_gets_the_same_words():
    """Colours are all that a terminal adds."""
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    report(ending(), stderr=stream)
    assert "gossamer retry-failed books" in stream.getvalue()


def test_an_instant_run_divides_by_nothing():
    """A finished task that is asked again takes no time."""
    assert ending(seconds=0.0).pages_per_second == 0.0


def test_answers_that_are_no_page_are_counted():
    """A crawl of nothing but errors of the server says so, though its exit code is 0; pages beside them need no note."""
    counters = {"pages": 4, "done:http_404": 3, "done:http_403": 1}
    code, _, text = told(ending(counters=counters))
    assert code == 0
    assert "  Answers    3 http_404 · 1 http_403\n" in text
    assert "every answer was an error" in text
    text = told(ending(counters=counters | {"pages": 5, "items": 1, "done:ok": 1}))[2]
    assert "Answers" in text
    assert "every answer" not in text


def test_a_failure_is_shown_with_what_was_the_matter():
    """An example may hold a URL and a sentence; the command to paste holds the URL alone."""
    end = ending(counters={"failed": 1, "failed:handler_error": 1})
    end.samples = {"failed:handler_error": ["https://a.example/x book raised KeyError. Where: books.py:12."]}
    text = told(end)[2]
    assert "https://a.example/x book raised KeyError. Where: books.py:12." in text
    assert "gossamer explain books https://a.example/x\n" in text


def test_selectors_that_fit_nowhere_are_noted():
    """Only where there are items: a crawl without any has another trouble."""
    end = ending(counters={"pages": 2, "items": 2, "own:name": 2})
    end.note_selected(["name", "price"])
    assert end.notes == ["--select price matched on no page"]


def test_standard_output_has_a_name():
    """`-` alone says nothing."""
    assert "Results    standard output" in told(ending(output=Path("-")))[2]

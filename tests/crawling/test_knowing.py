"""What a worker knows to be enqueued: only what is certain, and never more than its two halves hold."""

from __future__ import annotations

from gossamer.crawling.knowing import Known


def test_what_was_added_is_not_new_any_more() -> None:
    """Known URLs are left out, the others stay in the order of the page."""
    known = Known()
    known.add("b", 0)
    assert known.unknown(["a", "b", "c"], 0) == ["a", "c"]


def test_a_higher_priority_is_news() -> None:
    """A link that was enqueued low is sent again when it is found with more weight, and not when it is found with less."""
    known = Known()
    known.add("a", 5)
    assert known.unknown(["a"], 6) == ["a"]
    assert known.unknown(["a"], 5) == []
    known.add("a", 6)
    known.add("a", 2)  # must not lower what is known
    assert known.unknown(["a"], 6) == []


def test_asking_does_not_make_known() -> None:
    """Only an acknowledged settle does; a link that was seen and lost is sent again."""
    known = Known()
    assert known.unknown(["a"], 0) == ["a"]
    assert known.unknown(["a"], 0) == ["a"]
    assert len(known) == 0


def test_add_tells_whether_it_was_new() -> None:
    """So that budgets count each URL once, in whichever half it lies."""
    known = Known(half=2)
    assert known.add("a", 0)
    assert not known.add("a", 0)
    assert known.add("b", 0)
    assert known.add("c", 0)  # a and b are old now
    assert not known.add("a", 0)


def test_it_never_grows_and_forgets_the_longest_unseen_first() -> None:
    """Ten thousand URLs pass; a few hundred stay, among them the one that is met again and again."""
    known = Known(half=100)
    known.add("home", 0)
    for number in range(10_000):
        known.unknown(["home"], 0)
        known.add(f"page {number}", 0)
        assert len(known) <= 202
    assert known.unknown(["home"], 0) == []
    assert known.unknown(["page 9999"], 0) == []
    assert known.unknown(["page 0"], 0) == ["page 0"]


def test_another_incarnation_empties_it() -> None:
    """A store that may have lost a tail makes nothing certain."""
    known = Known("first")
    known.add("a", 0)
    known.clear("second")
    assert known.unknown(["a"], 0) == ["a"]
    assert known.incarnation == "second"

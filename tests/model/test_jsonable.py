"""The judge of what is JSON as it stands."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.jsonable import MAX_NESTING, why_not_finite, why_not_json

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner)
        | st.dictionaries(st.text(max_size=3) | st.integers(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_what_is_accepted_comes_back_equal_from_json(value):
    """Accepted means: a strict JSON encoder writes it and a decoder gives back the same value of the same types."""
    if why_not_json(value) is None:
        again = json.loads(json.dumps(value, allow_nan=False))
        assert repr(again) == repr(value)


@settings(max_examples=300, deadline=None)
@given(ANYTHING)
def test_what_is_refused_would_not_have_come_back_equal(value):
    """Refused means: it cannot be written as strict JSON in UTF-8, or comes back as something else."""
    if why_not_json(value) is not None:
        try:
            text = json.dumps(value, allow_nan=False, ensure_ascii=False)
            text.encode()
        except (TypeError, ValueError):
            return
        assert repr(json.loads(text)) != repr(value)


def test_the_reason_names_the_place():
    """The path to the first value that is wrong is a Python expression."""
    assert why_not_json({"a": [1, {"b": {2}}]}) == "['a'][1]['b'] is a set"


def test_nesting_is_bounded():
    """A value that would exhaust the stack is refused before it does."""
    value: list[object] = []
    for _ in range(MAX_NESTING + 5):
        value = [value]
    assert "nested" in (why_not_json(value) or "")
    assert why_not_finite(value) is None


def test_only_numbers_that_json_cannot_write_are_not_finite():
    """Everything but NaN and the infinities passes, at any place."""
    assert why_not_finite({"a": (1, [2.5, None, "nan"])}) is None
    assert why_not_finite({"a": (1, [float("nan")])}) == "['a'][1][0] is nan"

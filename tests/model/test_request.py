"""Requests: what they refuse, and what is left of them in the frontier."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.errors import UsageError
from gossamer.model.request import MAX_REQUEST, Request, decode, encode

URL = "https://shop.example/a"
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LATIN = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters=";\x7f"), max_size=20)
TOKENS = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,10}", fullmatch=True).filter(
    lambda name: name.lower() not in {"te", "host", "trailer", "upgrade", "connection", "keep-alive"}
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def refused(**fields: object) -> str:
    with pytest.raises(UsageError) as caught:
        Request(URL, **fields)  # type: ignore[arg-type]
    return str(caught.value)


def test_a_plain_get_costs_no_byte_beside_its_url():
    """The record of nearly every link of a crawl is its URL alone; priority and depth have columns of their own."""
    assert encode(Request(URL, priority=5, depth=3)) == b""


@settings(max_examples=200, deadline=None)
@given(
    st.builds(
        Request,
        st.just(URL),
        method=st.sampled_from(["GET", "POST", "PUT", "HEAD"]),
        headers=st.dictionaries(TOKENS, LATIN, max_size=3),
        body=st.none() | st.binary(max_size=50),
        cookies=st.dictionaries(TOKENS, LATIN, max_size=2),
        priority=st.integers(-5, 5),
        depth=st.integers(0, 9),
        label=st.none() | TEXT,
        meta=st.dictionaries(TEXT, JSON, max_size=3),
        dedupe=st.booleans(),
        key=st.none() | st.text("abc", min_size=1, max_size=5),
        any_status=st.booleans(),
        proxy=st.none() | st.just("socks5://127.0.0.1:1080"),
        without=st.lists(TOKENS, max_size=2).map(tuple),
    )
)
def test_whatever_is_encoded_is_decoded_to_an_equal_request(request_):
    """No field of a request is lost or changed on its way through the frontier."""
    kept = encode(request_)
    again = decode(request_.url, kept, depth=request_.depth, priority=request_.priority)

    assert again == request_


def test_the_encoded_form_is_json_with_the_body_in_base64():
    """Stored requests execute nothing and can be read by any program."""
    kept = json.loads(encode(Request(URL, method="POST", body=b"\x00\xff", label="book")))
    assert kept == {"method": "POST", "body": base64.b64encode(b"\x00\xff").decode(), "label": "book"}


def test_a_newer_field_does_not_stop_an_older_reader():
    """A request written by a later version is read by this one: what it does not know is passed over."""
    assert decode(URL, b'{"label":"book","later":1}').label == "book"


def test_a_form_is_sent_as_browsers_send_it():
    """Values are percent-encoded, a list repeats its name, and the content type says what it is."""
    request = Request.form(URL, {"q": "a b&c", "tag": ["x", "y"]}, label="found")

    assert request.method == "POST"
    assert request.body == b"q=a+b%26c&tag=x&tag=y"
    assert request.headers == {"Content-Type": "application/x-www-form-urlencoded"}
    assert request.label == "found"


def test_a_json_body_carries_its_content_type_unless_the_author_has_one():
    """Headers that are given stand over the one that is implied."""
    request = Request.json(URL, {"page": 1}, method="PUT", headers={"Content-Type": "application/ld+json"})

    assert (request.method, request.body) == ("PUT", b'{"page":1}')
    assert request.headers == {"Content-Type": "application/ld+json"}


def test_a_json_body_must_be_json():
    """What would be bent on the way (NaN to null) is refused with its place."""
    with pytest.raises(UsageError, match=r"\['x'\] is nan"):
        Request.json(URL, {"x": float("nan")})


def test_an_unknown_method_is_refused_and_a_small_one_corrected():
    """A misspelt method is told at once, with the way it is written."""
    assert "write it as POST" in refused(method="post")
    assert "use one of" in refused(method="FETCH")


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\0b"])
def test_a_header_cannot_start_another_one(value):
    """A line break taken from a page never reaches the wire as a header of its own."""
    assert "line break" in refused(headers={"X-Name": value})


@pytest.mark.parametrize("name", ["Host", "content-length", "Accept-Encoding", "Transfer-Encoding"])
def test_headers_of_the_connection_belong_to_the_transport(name):
    """An author's copy of a browser's headers cannot break framing or decoding."""
    assert "transport" in refused(headers={name: "x"})


def test_other_wrong_fields_are_told_by_name():
    """Every refusal names the field and the request."""
    assert "name that HTTP does not allow" in refused(headers={"a b": "x"})
    assert "latin-1" in refused(headers={"X-A": "東京"})
    assert "is a int, not text" in refused(headers={"X-A": 1})
    assert "cookie 'a'" in refused(cookies={"a": "x; y"})
    assert "not bytes" in refused(body="text")
    assert "tuple of names" in refused(without="cookies")
    assert str(MAX_REQUEST) in refused(body=b"x" * (MAX_REQUEST + 1))
    assert "characters" in refused(key="x" * 5000)


@pytest.mark.parametrize(
    ("meta", "place"),
    [
        ({"when": object()}, "['when'] is a object"),
        ({"a": [1, (2,)]}, "['a'][1] is a tuple"),
        ({"a": float("inf")}, "['a'] is inf"),
        ({1: "x"}, "the key 1"),
        ({"a": "\ud800"}, "surrogate"),
    ],
)
def test_meta_that_is_not_json_is_refused_with_its_place(meta, place):
    """What would come back as another value than was put in is told where it stands."""
    assert place in refused(meta=meta)


def test_meta_is_bounded():
    """A megabyte belongs into a store, not into every record."""
    assert "Meta takes more than" in refused(meta={"a": "x" * MAX_REQUEST})


def test_a_link_that_was_not_found_is_told_as_such():
    """`Request(node.attr("href"))` of an element without one says what is wrong."""
    with pytest.raises(UsageError, match="is a NoneType"):
        Request(None)  # type: ignore[arg-type]


def test_no_secret_is_shown():
    """Neither the representation nor an error of a request repeats passwords, tokens or cookies."""
    request = Request(
        "https://user:secret1@shop.example/",
        headers={"Authorization": "secret2"},
        cookies={"sid": "secret3"},
        body=b"secret4",
        proxy="http://u:secret5@127.0.0.1:1",
    )

    assert "secret" not in repr(request)
    assert "secret" not in str(list(request.__rich_repr__()))
    assert "secret" not in refused(proxy="ftp://u:secret5@host")


def test_a_change_is_checked_like_a_new_request():
    """A middleware cannot make a request that could not have been made."""
    with pytest.raises(UsageError):
        Request(URL).changed(method="NOPE")

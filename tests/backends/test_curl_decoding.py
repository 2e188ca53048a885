"""Content codings undone while a body arrives."""

from __future__ import annotations

import gzip
import sys
import zlib

import brotli
import pytest

from gossamer.backends.curl.decoding import ACCEPTED, Decoder, coded
from gossamer.ports.transport import FetchError

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PLAIN = b"".join(b"<p class=row>%d</p>" % n for n in range(3_000))
CODED = {
    "gzip": gzip.compress(PLAIN),
    "x-gzip": gzip.compress(PLAIN),
    "deflate": zlib.compress(PLAIN),
    "br": brotli.compress(PLAIN, quality=4),
    "zstd": zstd.compress(PLAIN),
}
MOST = 1_000_000
BOMBS = {
    "gzip": gzip.compress(b"\0" * 30_000_000),
    "deflate": zlib.compress(b"\0" * 30_000_000),
    "br": brotli.compress(b"\0" * 30_000_000, quality=4),
    "zstd": zstd.compress(b"\0" * 30_000_000),
}


def pieces(body: bytes, size: int) -> list[bytes]:
    return [body[start : start + size] for start in range(0, len(body), size)]


@pytest.mark.parametrize("coding", CODED)
@pytest.mark.parametrize("size", [1, 7, 1_000, 1_000_000])
def test_wherever_a_body_is_cut_it_decodes_to_the_same(coding, size):
    """The network may split a coded body anywhere, also inside its first two bytes."""
    decoder = Decoder([coding], MOST)

    assert b"".join(decoder.feed(piece) for piece in pieces(CODED[coding], size)) == PLAIN
    assert decoder.whole


@pytest.mark.parametrize("coding", CODED)
def test_a_body_that_breaks_off_is_not_whole(coding):
    """What came can be read, and it is known that there was more."""
    decoder = Decoder([coding], MOST)
    came = decoder.feed(CODED[coding][: len(CODED[coding]) // 2])

    assert PLAIN.startswith(came)
    assert not decoder.whole


@pytest.mark.parametrize("coding", BOMBS)
def test_a_bomb_is_left_when_it_passes_its_bound(coding):
    """No more than the allowed bytes, and little beyond, are ever decoded."""
    decoder = Decoder([coding], MOST)
    got: list[bytes] = []
    with pytest.raises(FetchError) as caught:
        got.extend(decoder.feed(piece) for piece in pieces(BOMBS[coding], 16_384))

    assert caught.value.code == "too_large"
    assert sum(map(len, got)) <= MOST


def test_a_bomb_inside_a_coding_is_bounded_too():
    """Each of two codings has the bound, so the inner one cannot grow without limit either."""
    decoder = Decoder(["gzip", "gzip"], MOST)
    with pytest.raises(FetchError, match="more decoded bytes"):
        decoder.feed(gzip.compress(gzip.compress(b"\0" * 30_000_000)))


@pytest.mark.parametrize("coding", [name for name in CODED if name != "br"])
def test_what_follows_the_data_is_left_out(coding):
    """Zeros or a second member behind the coded data are not read, and that is known."""
    decoder = Decoder([coding], MOST)

    assert decoder.feed(CODED[coding] + b"\0\0\0") == PLAIN
    assert decoder.cut
    assert not decoder.whole
    assert decoder.feed(b"more") == b""


@pytest.mark.parametrize("coding", [name for name in CODED if name != "deflate"])
def test_what_is_not_in_its_coding_is_an_error(coding):
    """A plain body that claims a coding is refused with a code of its own."""
    with pytest.raises(FetchError) as caught:
        Decoder([coding], MOST).feed(b"plain text, whatever its headers say, and long enough to be sure")

    assert caught.value.code == "coding"


def test_codings_are_undone_from_the_last_to_the_first():
    """The header lists codings in the order in which they were applied."""
    assert Decoder(["deflate", "br"], MOST).feed(brotli.compress(zlib.compress(PLAIN))) == PLAIN


def test_an_unknown_coding_is_an_error_that_names_it():
    """Nothing is guessed about a coding that was not asked for."""
    with pytest.raises(FetchError, match="rot13"):
        coded(["rot13"], MOST)


def test_every_coding_that_is_asked_for_can_be_undone():
    """Accept-Encoding promises nothing that is not here."""
    for coding in ACCEPTED.split(", "):
        assert coded([coding], MOST)


def test_identity_is_no_coding():
    """A server that says "identity" sends the body as it is."""
    assert coded(["identity"], MOST) is None

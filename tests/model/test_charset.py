"""From bytes to text: rows H04 to H07 of the bad-input catalogue."""

from __future__ import annotations

import codecs
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gossamer.model.charset import _CODECS, _LABELS, decode, encoding_for, percent_encode

TEXTS = {
    "gbk": "今天天气很好，我们去公园散步吧。中国人民共和国成立于一九四九年，首都是北京。",
    "big5": "今天天氣很好，我們去公園散步吧。中華民國的首都是臺北，歡迎光臨我們的網站。",
    "shift_jis": "今日はとても良い天気ですね。公園へ散歩に行きましょう。日本語のページです。",
    "euc-jp": "今日はとても良い天気ですね。公園へ散歩に行きましょう。日本語のページです。",
    "euc-kr": "오늘은 날씨가 매우 좋습니다. 공원에 산책하러 갑시다. 한국어 페이지입니다.",
    "windows-1251": "Сегодня очень хорошая погода. Пойдём гулять в парк. Русская страница.",
    "windows-1252": "Élève à l'école, c'était déjà été, où ça? Größe übermäßig naïve façade",
}


def test_the_sources_are_asked_in_order():
    """Byte order mark, then header, then meta, then a guess."""
    meta = b'<meta charset="gbk">'
    assert decode(b"\xef\xbb\xbf" + meta, "text/html; charset=big5")[1:] == ("utf-8", "bom")
    assert decode(meta, "text/html; charset=big5")[1:] == ("big5", "header")
    assert decode(meta, "text/html")[1:] == ("gbk", "meta")
    assert decode(b"plain", None)[1:] == ("utf-8", "guess")
    assert decode(meta, "text/html; charset=unknown-42")[1:] == ("gbk", "meta")


@pytest.mark.parametrize(
    "label", ["zlib_codec", "hex", "utf-7", "rot13", "idna", "punycode", "unicode_escape", "utf_8_sig", ""]
)
def test_python_codecs_cannot_be_reached(label: str):
    """Only labels of the standard count; everything else is as if nothing had been said."""
    assert encoding_for(label) is None
    body = b"+ADw-x+AD4- caf\xc3\xa9"
    assert decode(body, f"text/html; charset={label}") == ("+ADw-x+AD4- café", "utf-8", "guess")
    assert decode(f"<meta charset='{label}'>é".encode()).source == "guess"


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("GB2312", "gbk"),
        (" Latin1\n", "windows-1252"),
        ("us-ascii", "windows-1252"),
        ("ISO-8859-1", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("sjis", "shift_jis"),
        ("ks_c_5601-1987", "euc-kr"),
        ("utf-16", "utf-16le"),
        ("utf8", "utf-8"),
        ("hz-gb-2312", "replacement"),
        ("x" * 1_000_000, None),
    ],
)
def test_labels_mean_what_browsers_take_them_for(label: str, name: str | None):
    """The label table of the standard, with its surprises."""
    assert encoding_for(label) == name


def test_every_encoding_of_the_table_has_a_codec():
    """No label leads to a codec that Python lacks."""
    assert set(_LABELS.values()) == set(_CODECS)
    for codec in set(_CODECS.values()) - {"-"}:
        codecs.lookup(codec)
    assert len(_LABELS) == 228


@pytest.mark.parametrize(
    ("head", "name"),
    [
        ('<meta charset="gbk">', "gbk"),
        ("<META CHARSET=GBK />", "gbk"),
        ("<meta\ncharset = 'gbk' >", "gbk"),
        ('<meta http-equiv="Content-Type" content="text/html; charset=gb2312">', "gbk"),
        ('<meta content="text/html;charset=gbk" http-equiv=content-type>', "gbk"),
        ('<meta content="text/html; charset=gbk">', None),
        ('<!-- <meta charset="gbk"> -->', None),
        ('<!-- <meta charset="gbk">', None),
        ("<a title='<meta charset=gbk>'>", None),
        ('<p>charset="gbk"</p>', None),
        ('<metacharset="gbk">', None),
        ('<meta charset="nonsense"><meta charset="gbk">', "gbk"),
        ('<meta charset="utf-16le">', "utf-8"),
        ('<meta charset="x-user-defined">', "windows-1252"),
        ('<?xml version="1.0" encoding="GBK"?><r/>', "gbk"),
        ("<p>" + "x" * 1100 + '<meta charset="gbk">', None),
    ],
)
def test_the_document_may_declare_itself(head: str, name: str | None):
    """Declarations are found where browsers look, and not in comments, texts, attributes or behind 1,024 bytes."""
    found = decode(head.encode())
    assert (found.encoding if found.source == "meta" else None) == name


@pytest.mark.parametrize("name", list(TEXTS))
def test_legacy_texts_without_a_word_are_recognised(name: str):
    """A typical page of each family is read rightly although nobody says what it is."""
    body = ("<html><body><p>" + TEXTS[name] + "</p>").encode(_CODECS[name])
    found = decode(body, "text/html")
    assert (found.encoding, found.source) == (name, "guess")
    assert TEXTS[name] in found.text


@pytest.mark.parametrize("name", list(TEXTS))
def test_declared_texts_are_exact(name: str):
    """Each encoding gives its text back to the character."""
    assert decode(TEXTS[name].encode(_CODECS[name]), f"text/html; charset={name}").text == TEXTS[name]


def test_a_cut_or_slightly_broken_utf8_page_stays_utf8():
    """One bad byte or a character cut at the end does not turn a page into mojibake."""
    assert decode("文字が多いページ".encode()[:-1]).encoding == "utf-8"
    assert decode("文字が多いページ".encode() + b"\xff").text == "文字が多いページ\ufffd"


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"a\x00b", "a\ufffdb"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"\xc0\xaf", "\ufffd\ufffd"),
        (b"\xff\xfe\x00\xd8a\x00", "\ufffda"),
        (b"", ""),
    ],
)
def test_broken_bytes_become_replacement_characters(body: bytes, text: str):
    """NUL, surrogates and overlong forms leave no trace that a store would refuse."""
    assert decode(body, "text/html; charset=utf-8").text == text


def test_an_error_never_swallows_markup():
    """The `<` behind half a character is still a `<`: nothing can be hidden from the parser that way."""
    for name in ("gbk", "gb18030", "big5", "euc-jp", "shift_jis", "euc-kr"):
        assert "<p>" in decode(b"x\x81<p>", f"text/html; charset={name}").text


def test_unreadable_and_user_defined_encodings():
    """The replacement encodings show nothing; x-user-defined keeps each byte apart."""
    assert decode(b"<script>", "text/html; charset=iso-2022-kr").text == "\ufffd"
    assert decode(b"a\x80\xff", "text/plain; charset=x-user-defined").text == "a\uf780\uf7ff"


def test_utf16_is_seen_without_a_mark():
    """An XML document in UTF-16 shows itself by its first characters."""
    body = "<?xml version='1.0'?><a>é</a>"
    assert decode(body.encode("utf-16-le")).text == body
    assert decode(body.encode("utf-16-be")).text == body


def test_hostile_heads_are_read_in_no_time():
    """Unclosed quotes, tags and comments cost nothing: the prescan is bounded and never goes back."""
    baits = [
        b"<a" * 600,
        b"<!--" * 300,
        b"<a '" * 300,
        b'<meta x="' * 150,
        b"<meta " + b"charset " * 150,
        b"<?xml " * 200,
    ]
    began = time.perf_counter()
    for bait in baits:
        decode(bait + b" charset " + b"\x80" * 50_000)
    assert time.perf_counter() - began < 0.5


def test_percent_encoding_of_runs():
    """Stateful encodings are written by the run; unencodable characters as references; ASCII is left alone."""
    assert percent_encode("a=日本", "iso-2022-jp") == "a=%1B$BF|K\\%1B(B"
    assert percent_encode("a=日€", "iso-2022-jp") == "a=%1B$BF|%1B(B%26%238364%3B"
    assert percent_encode("a=é", "utf-8") == "a=é"
    assert percent_encode("é", "nonsense") == "é"


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([*_CODECS, "nonsense", None]))
def test_any_bytes_give_storable_text(body: bytes, label: str | None):
    """Whatever arrives, the text is valid UTF-8 without NUL."""
    found = decode(body, f"text/html; charset={label}" if label else None)
    found.text.encode("utf-8")
    assert "\x00" not in found.text
    assert found.encoding in _CODECS

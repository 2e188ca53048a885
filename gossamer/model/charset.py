"""From the bytes of a page to its text, by the rules of browsers (WHATWG Encoding and HTML).

The order is: byte order mark, charset of the Content-Type header, `<meta>` or XML declaration in the first 1,024 bytes,
then a guess. A label that the standard does not list is ignored and the next source is asked; Python's codec registry
never sees a label from the network, so `zlib_codec`, `utf-7` or `idna` cannot be reached.

The guess (browsers leave it open): UTF-8 if the first 16 KiB are (nearly) valid UTF-8; else the five legacy families that can be
told apart by where their bytes lie; else windows-1252. Bytes that mean nothing become U+FFFD, and so does NUL, which
some stores refuse; the text never holds lone surrogates. Two deviations: the few undefined bytes of windows-125x are
U+FFFD rather than control characters, and 0x80 in GBK is no euro sign.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

_TABLE = """
utf-8 utf-8: unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866 cp866: 866 cp866 csibm866
iso-8859-2 iso8859-2: csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859-3: csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859-4: csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859-5: csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859-6: arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i
  iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859-7: csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7
  iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859-8: csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
  iso_8859-8:1988 visual
iso-8859-8-i iso8859-8: csiso88598i logical
iso-8859-10 iso8859-10: csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859-13: iso8859-13 iso885913
iso-8859-14 iso8859-14: iso8859-14 iso885914
iso-8859-15 iso8859-15: csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859-16:
koi8-r koi8-r: cskoi8r koi koi8 koi8_r
koi8-u koi8-u: koi8-ru
macintosh mac-roman: csmacintosh mac x-mac-roman
windows-874 cp874: dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250: cp1250 x-cp1250
windows-1251 cp1251: cp1251 x-cp1251
windows-1252 cp1252: ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591
  iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252
windows-1253 cp1253: cp1253 x-cp1253
windows-1254 cp1254: cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5
  x-cp1254
windows-1255 cp1255: cp1255 x-cp1255
windows-1256 cp1256: cp1256 x-cp1256
windows-1257 cp1257: cp1257 x-cp1257
windows-1258 cp1258: cp1258 x-cp1258
x-mac-cyrillic mac-cyrillic: x-mac-ukrainian
gbk gb18030: chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
gb18030 gb18030:
big5 big5hkscs: big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc_jp: cseucpkdfmtjapanese x-euc-jp
iso-2022-jp iso2022_jp_ext: csiso2022jp
shift_jis cp932: csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949: cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
replacement -: csiso2022kr hz-gb-2312 iso-2022-cn iso-2022-cn-ext iso-2022-kr
utf-16be utf-16-be: unicodefffe
utf-16le utf-16-le: csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
x-user-defined -:
"""


def _read_table() -> tuple[dict[str, str], dict[str, str]]:
    """Labels → WHATWG name, WHATWG name → Python's codec ("-": decoded here)."""
    labels: dict[str, str] = {}
    codecs: dict[str, str] = {}
    for line in _TABLE.replace("\n  ", " ").strip().splitlines():
        head, _, others = line.partition(":")
        name, codec = head.split()
        codecs[name] = codec
        labels.update(dict.fromkeys([name, *others.split()], name))
    return labels, codecs


_LABELS, _CODECS = _read_table()

_BOMS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_PRESCAN = 1024
_MAX_LABEL = 40
_CHARSET = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_TAG = re.compile(rb"""<!--.*?(?:-->|\Z)|</?([a-z][^\s/>]*+)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)""", re.DOTALL)
_ATTRIBUTE = re.compile(rb"""([^\s/>="']++)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>"']++))""")
_XML = re.compile(rb"""<\?xml[^>]*?\sencoding\s*=\s*["']([a-z0-9._:-]+)["']""", re.IGNORECASE)
_USER_DEFINED = {byte: 0xF780 + byte - 0x80 for byte in range(0x80, 0x100)}


class Decoded(NamedTuple):
    """A page as text, and how its encoding was found: "bom", "header", "meta", "guess"."""

    text: str
    encoding: str
    source: str


def decode(body: bytes, content_type: str | None = None) -> Decoded:
    """The text of a page. Never fails: what cannot be read is replaced."""
    encoding, source = encoding_of(body, content_type)
    if source == "bom":
        body = body[3 if encoding == "utf-8" else 2 :]
    text = _text(body, encoding)
    if "\x00" in text:
        text = text.replace("\x00", "\ufffd")
    return Decoded(text, encoding, source)


def encoding_of(body: bytes, content_type: str | None = None) -> tuple[str, str]:
    """The encoding by its WHATWG name, and the source that told it."""
    if body[:1] in b"\xef\xff\xfe" and body:
        for mark, name in _BOMS:
            if body.startswith(mark):
                return name, "bom"
    declared = _header_encoding(content_type[:500]) if content_type else None
    if declared:
        return declared, "header"
    declared = _declared(body[:_PRESCAN])
    if declared:
        return declared, "meta"
    return _guess(body), "guess"


def encoding_for(label: str) -> str | None:
    """The WHATWG name of the encoding that a label means; None if the standard does not know the label."""
    return _LABELS.get(label.strip("\t\n\f\r ").lower()) if len(label) <= _MAX_LABEL else None


def _text(body: bytes, encoding: str) -> str:
    codec = _CODECS[encoding]
    if codec == "-":
        if encoding == "replacement":  # encodings that can smuggle markup: nothing of them is read
            return "\ufffd" if body else ""
        return body.decode("latin-1").translate(_USER_DEFINED)
    return body.decode(codec, "replace")


@lru_cache(maxsize=1024)
def _header_encoding(content_type: str) -> str | None:
    match = _CHARSET.search(content_type)
    return encoding_for(match[match.lastindex or 1]) if match else None


def _declared(head: bytes) -> str | None:
    """The encoding that the document itself declares in its first bytes."""
    if head.startswith((b"<\x00?\x00", b"\x00<\x00?")):
        return "utf-16le" if head[0] else "utf-16be"
    head = head.lower()
    found = _meta_encoding(head) if b"charset" in head else None
    if found is None and b"<?xml" in head[:200] and (match := _XML.match(head.lstrip())):
        found = encoding_for(match[1].decode())
    # The declaration was read as ASCII, so the document cannot be in UTF-16.
    return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": "windows-1252"}.get(
        found or "", found
    )


def _meta_encoding(head: bytes) -> str | None:
    for tag in _TAG.finditer(head):
        if tag[1] == b"meta":
            values: dict[bytes, str] = {}
            for name, *value in _ATTRIBUTE.findall(tag[2]):
                values.setdefault(name, b"".join(value).decode("latin-1"))
            label = values.get(b"charset")
            if label is None and values.get(b"http-equiv", "").strip() == "content-type":
                match = _CHARSET.search(values.get(b"content", ""))
                label = match[match.lastindex or 1] if match else None
            if label is not None and (known := encoding_for(label)):
                return known
    return None


_SAMPLE = 16_384
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_PAIR = re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xfe]")


def _guess(body: bytes) -> str:
    """No declaration: UTF-8 if the bytes say so, else by where they lie, else windows-1252."""
    if body.isascii():
        return "utf-8"
    sample = body[:_SAMPLE]
    text = sample.decode("utf-8", "replace")
    bad = text.count("\ufffd")
    # A few broken bytes, or a character cut at the end, do not make a UTF-8 page a Western one.
    if bad == 0 or 4 * bad < sum(map(len, _NON_ASCII.findall(text))) - bad:
        return "utf-8"
    return _guess_legacy(sample)


def _guess_legacy(sample: bytes) -> str:
    runs = _HIGH_RUN.findall(sample)
    high = b"".join(runs)
    # Western texts have single accented letters between ASCII ones; everything below comes in runs.
    if len(high) < 2 * len(runs) or len(high) < 6:
        return "windows-1252"
    if _share(high, 0xE0, 0xFF) > 0.6:
        return "windows-1251"  # small Cyrillic letters
    pairs = _PAIR.findall(sample)
    leads = bytes(pair[0] for pair in pairs)
    if _share(leads, 0x81, 0x84) > 0.3:
        return "shift_jis"  # kana
    trails = bytes(pair[1] for pair in pairs)
    if _share(trails, 0x40, 0x7E) > 0.15 and _share(leads, 0xA1, 0xC6) > 0.8:
        return "big5"
    if _share(leads, 0xA4, 0xA5) > 0.2 and _share(trails, 0xA1, 0xFE) > 0.95:
        return "euc-jp"  # kana
    if _share(leads, 0xB0, 0xC8) > 0.93:
        return "euc-kr"  # Hangul; Chinese text uses the rows up to 0xD7 as well
    return "gbk" if _share(leads, 0xA1, 0xD7) > 0.8 else "windows-1252"


def _share(data: bytes, low: int, high: int) -> float:
    return sum(low <= byte <= high for byte in data) / len(data) if data else 0.0


# What WHATWG encoders write differs from what its decoders accept: no extensions, and GBK proper.
_QUERY_CODECS = _CODECS | {"gbk": "gbk", "iso-2022-jp": "iso2022_jp"}
_UTF8_OUTPUT = frozenset({"utf-8", "utf-16le", "utf-16be", "replacement", "x-user-defined"})
_ESCAPED = frozenset(b"\"#<>'")


def percent_encode(query: str, encoding: str) -> str:
    """The query of a link as a browser writes it on a page in this encoding; ASCII is left for the URL parser.

    A character that the encoding lacks is written as `%26%23N%3B`, its decimal reference.
    """
    if encoding in _UTF8_OUTPUT or encoding not in _QUERY_CODECS:
        return query
    return _NON_ASCII.sub(lambda run: _percent_run(run[0], encoding), query)


def _percent_run(run: str, encoding: str) -> str:
    if encoding == "iso-2022-jp":  # stateful: its escape sequences enclose a run, not a character
        try:
            return _escape(run.encode("iso2022_jp"))
        except UnicodeEncodeError:
            pass  # one by one
    return "".join(_percent_char(char, encoding) for char in run)


def _percent_char(char: str, encoding: str) -> str:
    if encoding == "gbk" and char == "€":
        return "%80"
    try:
        data = char.encode(_QUERY_CODECS[encoding])
    except UnicodeEncodeError:
        return f"%26%23{ord(char)}%3B"
    if (encoding == "big5" and data[0] < 0xA1) or (encoding == "euc-jp" and data[0] == 0x8F):
        return f"%26%23{ord(char)}%3B"
    return _escape(data)


def _escape(data: bytes) -> str:
    return "".join(chr(b) if 0x20 < b < 0x7F and b not in _ESCAPED else f"%{b:02X}" for b in data)

"""Parsing a page, unless it was written to make that expensive.

The HTML rules ask for work that a stranger can multiply: each tag may look at all open elements (a page of nested tags
costs the square of its length), and formatting elements that are left open are made again in each block after them (36 KB
can become a gigabyte). Browsers bound the depth; this parser does not. So pages with very many tags are counted through
first, and those that would cost far more than their size are refused. Below `FREE_TAGS` the worst case is bearable and
nothing is looked at but the number of tags.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from selectolax.lexbor import LexborDocumentOptions, LexborHTMLParser

from gossamer.model.errors import GossamerError

FREE_BYTES = 8 * 1024
FREE_TAGS = 1_500
SHALLOW_TAGS = 10_000
"""With no more tags than these, no nesting can be too deep."""
MAX_COPIES = 1_000_000
"""Formatting elements that may have to be made again: about 500 MB and a second."""
MAX_STEPS = 200_000_000
"""Open elements looked at, over all tags: about half a second."""

# Nothing here changes a tree on the parser's behalf, so it need not announce what it builds.
_OPTIONS = int(LexborDocumentOptions.WO_EVENTS)
# Of <a> and <nobr> only one can be open.
_FORMATTING = re.compile(
    rb"<(/?)(b|big|code|em|font|i|s|small|strike|strong|tt|u)([\s/][^>]*)?>", re.IGNORECASE
)
# The same with attributes, and perhaps a few others, <base> among them: looked for in a tenth of the time.
_ADORNED = re.compile(rb"<[bcefistuBCEFISTU][a-zA-Z]{0,5}+[\s/]")
_TAG = re.compile(rb"<(/?)([a-z][a-z0-9:-]*)")
_ALIKE = 3  # equal formatting elements that are made again at most
_BARE = 12 * _ALIKE  # formatting elements without attributes that can be made again, of all twelve names
# These hold nothing, or end by themselves where the next one begins; they nest only with others in between.
_FLAT = frozenset(
    b"area base br col embed hr img input link meta param source track wbr "
    b"p li dt dd option tr td th thead tbody tfoot colgroup caption".split()
)


class PageTooDeep(GossamerError):  # noqa: N818  (a fact about a page)
    """The page is nested so deep, or so broken, that parsing it would cost out of all proportion."""

    code = "page_too_deep"

    def __init__(self, what: str) -> None:
        super().__init__(f"The page is not parsed: {what}", hint="take what you need from page.text")


class Tree(NamedTuple):
    """A parsed page."""

    html: LexborHTMLParser
    may_have_base: bool
    """False if it was seen on the way that no <base> is there, which saves looking at every element for one."""


def parse(source: bytes) -> Tree:
    """The tree of a page in UTF-8; raises PageTooDeep."""
    may_have_base = True
    if len(source) > FREE_BYTES and (tags := source.count(b"<")) > FREE_TAGS:
        adorned = _ADORNED.findall(source)
        # With few different ones it need not be known whether they are closed.
        if (_BARE + len(adorned)) * tags // 2 > MAX_COPIES:
            _check_formatting(source, tags)
        if tags > SHALLOW_TAGS:
            _check_depth(source)
        may_have_base = any(tag[:5].lower() == b"<base" for tag in adorned)
    return Tree(LexborHTMLParser(source, options=_OPTIONS), may_have_base)


def _check_formatting(source: bytes, tags: int) -> None:
    """Refuse a page in which many different formatting elements stay open over many blocks."""
    left: Counter[bytes] = Counter()
    kinds: Counter[tuple[bytes, bytes]] = Counter()
    total = peak = 0
    for closing, name, attributes in _FORMATTING.findall(source):
        name = name.lower()
        if not closing:
            kinds[name, attributes] += 1
            left[name] += 1
            total += 1
            peak = max(peak, total)
        elif left[name]:
            left[name] -= 1
            total -= 1
    different = sum(min(count, _ALIKE) for count in kinds.values())
    if min(peak, different) * tags // 2 > MAX_COPIES:
        raise PageTooDeep(f"{peak} formatting elements are left open in {tags} tags")


def _check_depth(source: bytes) -> None:
    """Refuse a page in which very many tags lie very deep."""
    stack: list[bytes] = []
    left: Counter[bytes] = Counter()
    steps = 0
    for closing, name in _TAG.findall(source.lower()):
        if name in _FLAT:
            continue
        if not closing:
            stack.append(name)
            left[name] += 1
        elif left[name]:
            while (popped := stack.pop()) != name:
                left[popped] -= 1
            left[name] -= 1
        steps += len(stack)
        if steps > MAX_STEPS:
            raise PageTooDeep(f"its elements are nested {len(stack)} deep")

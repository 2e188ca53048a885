"""Links that a handler asks to follow: raw attributes on one side, URLs with shared options on the other.

A page of a crawl has dozens of links and nearly all are known already. So they stay plain strings that share one set
of options, made unique before they are joined, and become requests or records only where somebody needs them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypedDict

import msgspec
from parsel import SelectorList
from selectolax.lexbor import LexborNode

from gossamer.model.request import Request, encode

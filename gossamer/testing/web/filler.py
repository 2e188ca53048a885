"""Dull HTML of any length: the same bytes behind every bench page, so that size costs no memory."""

from __future__ import annotations

import random

WORDS = [
    "thread",
    "silk",
    "web",
    "spoke",
    "anchor",
    "spiral",
    "drift",
    "cellar",
    "lantern",
    "harbour",
    "copper",
    "meadow",
    "window",
    "orchard",
    "ladder",
    "quarry",
    "saddle",
    "timber",
    "velvet",
    "willow",
    "amber",
    "basin",
    "candle",
    "drummer",
    "ember",
    "feather",
    "garden",
    "hollow",
    "island",
    "jacket",
    "kettle",
    "ledger",
    "marble",
    "needle",
    "oyster",
    "pepper",
    "quiver",
    "ribbon",
    "saffron",
    "tunnel",
    "umbrella",
    "valley",
    "walnut",
    "yarrow",
]


def filler(size: int, seed: int = 0) -> bytes:
    """Exactly `size` bytes of paragraphs; the last one may be short, and it is closed."""
    draw = random.Random(f"filler {seed}")
    parts: list[bytes] = []
    length = 0
    while length < size:
        words = " ".join(draw.choices(WORDS, k=24))
        part = f'<div class="note"><p>{words}.</p><em>{draw.randrange(10**6)}</em></div>\n'.encode()
        if length + len(part) > size:
            part = (
                b"<!--".ljust(size - length - 3, b"~") + b"-->"
                if size - length >= 7
                else b" " * (size - length)
            )
        parts.append(part)
        length += len(part)
    return b"".join(parts)

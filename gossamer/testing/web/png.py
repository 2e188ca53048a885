"""Small pictures without a picture library: a patterned square as PNG bytes."""

from __future__ import annotations

import random
import struct
import zlib

Colour = tuple[int, int, int]


def picture(seed: str, side: int = 96) -> bytes:
    """A square of soft stripes and a disc, different for every seed and always the same for one."""
    draw = random.Random(seed)
    ground, stripe, disc = (_colour(draw) for _ in range(3))
    step = draw.choice((8, 12, 16))
    middle, radius = side // 2, draw.randrange(side // 5, side // 3)
    rows = bytearray()
    for y in range(side):
        rows.append(0)  # this row is stored without a filter
        for x in range(side):
            inside = (x - middle) ** 2 + (y - middle) ** 2 < radius**2
            rows += bytes(disc if inside else stripe if (x + y) // step % 2 else ground)
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"".join(
        (
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(bytes(rows), 9)),
            _chunk(b"IEND", b""),
        )
    )


def _colour(draw: random.Random) -> Colour:
    return draw.randrange(120, 245), draw.randrange(120, 245), draw.randrange(120, 245)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

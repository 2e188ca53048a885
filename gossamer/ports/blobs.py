"""Large values by reference: page bodies, and whatever an item holds that does not belong in a line of text.

A blob's key is made of its kind and the hash of its content, so putting is idempotent, two workers that put the same
page do not meet, and a page that is committed twice after a crash is stored once. Blobs are written *before* the record
is settled: a key in the item log always has its content, and a content without a record is at worst waste.

What every backend keeps, and `gossamer.testing.contracts.blobs` tests:

1. The key depends on kind and content alone, and is the same on every backend.
2. When `put` returns, the content survives a power cut. Whole or not at all: no reader ever sees a part.
3. What `get` returns has the hash that its key says; anything else raises.
4. No part of a file name or object name comes from input: a key that is none is refused before it is used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import ClassVar, NamedTuple, Protocol, Self

from gossamer.model.errors import GossamerError, UsageError

BODY = "body"
"""The kind of page bodies."""

_KIND = re.compile(r"[a-z][a-z0-9]{0,15}")
_KEY = re.compile(r"([a-z][a-z0-9]{0,15})-([0-9a-f]{64})")


class BlobMissing(GossamerError):  # noqa: N818  (a fact about a key)
    """No blob has this key, or what is stored under it is damaged."""

    code: ClassVar[str] = "blob_missing"


class Key(NamedTuple):
    """A key taken apart: its text is safe to build names from."""

    kind: str
    digest: str


def key_of(kind: str, content: bytes) -> str:
    """The key of a content: `kind-` and its SHA-256, which `sha256sum` can check."""
    if not _KIND.fullmatch(kind):
        raise UsageError(
            f"{kind[:50]!r} is no kind of blob", hint="use up to 16 lower-case letters and digits"
        )
    return f"{kind}-{sha256(content).hexdigest()}"


def parse_key(key: str) -> Key:
    """Take a key apart; raises UsageError for anything that `key_of` cannot have made."""
    match = _KEY.fullmatch(key)
    if match is None:
        raise UsageError(
            "This is no key of a blob", where=key, hint="keys look like body-9f86d0…, with 64 hex digits"
        )
    return Key(match[1], match[2])


class BlobStore(Protocol):
    """Content by its hash. May be called concurrently; opened and closed as an async context manager."""

    async def put(self, content: bytes, kind: str = BODY) -> str:
        """Store durably and return the key. The same content again costs next to nothing."""

    async def put_many(self, contents: Sequence[bytes], kind: str = BODY) -> list[str]:
        """Like `put` for each, in this order, with the cost of durability shared. All are durable when it returns."""

    async def get(self, key: str) -> bytes:
        """The content. Raises BlobMissing when there is none, or when it is not what the key says."""

    async def exists(self, key: str) -> bool:
        """Whether there is a blob with this key; its content is not read."""

    async def delete(self, key: str) -> bool:
        """Remove it; False when there was none. Who deletes knows that no item refers to it."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exc: object) -> None: ...

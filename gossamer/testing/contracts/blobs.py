"""What every blob store promises, as tests against its port alone.

A backend's test module inherits `BlobStoreContract` and gives it two fixtures: `store`, opened, and `reopened`, a
function that returns an unopened store on the same content (for a second process, or the next start).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256

import pytest

from gossamer.model.errors import UsageError
from gossamer.ports.blobs import BlobMissing, BlobStore, key_of, parse_key

CONTENTS = [b"", b"\x00", b"page" * 5_000, bytes(range(256)) * 4_096]
NO_KEYS = [
    "",
    "body",
    "body-",
    "body-../../../etc/passwd",
    "../body-" + "0" * 64,
    "body-" + "0" * 63,
    "body-" + "0" * 65,
    "body-" + "G" * 64,
    "body-" + "0" * 64 + "\n",
    "BODY-" + "0" * 64,
    "body/" + "0" * 64,
    "body-" + "٠" * 64,
]


class BlobStoreContract:
    """Inherit, and give the fixtures `store` and `reopened`."""

    @pytest.mark.parametrize("content", CONTENTS, ids=len)
    async def test_what_was_put_is_got(self, store: BlobStore, content: bytes) -> None:
        """Any bytes come back as they were, also none at all."""
        key = await store.put(content)
        assert await store.get(key) == content
        assert await store.exists(key)

    async def test_a_key_is_kind_and_hash(self, store: BlobStore) -> None:
        """The key can be computed by anybody, and equal content of two kinds is two blobs."""
        assert await store.put(b"x") == f"body-{sha256(b'x').hexdigest()}"
        assert await store.put(b"x", "shot") == key_of("shot", b"x")
        assert parse_key(key_of("shot", b"x")).kind == "shot"

    async def test_kinds_do_not_mix(self, store: BlobStore) -> None:
        """Deleting one kind's blob leaves the other kind's."""
        body, shot = await store.put(b"x"), await store.put(b"x", "shot")
        assert await store.delete(body)
        assert not await store.exists(body)
        assert await store.get(shot) == b"x"

    async def test_the_same_again_is_the_same(self, store: BlobStore) -> None:
        """Putting known content answers the same key and leaves one blob."""
        keys = {await store.put(b"again") for _ in range(3)}
        assert len(keys) == 1
        assert await store.delete(keys.pop())
        assert not await store.exists(key_of("body", b"again"))

    async def test_a_batch_answers_in_order(self, store: BlobStore) -> None:
        """Keys stand in the order of the contents, also with repetitions and with none at all."""
        contents = [b"%d" % (n % 150) for n in range(400)]
        assert await store.put_many(contents) == [key_of("body", content) for content in contents]
        assert [await store.get(key_of("body", b"%d" % n)) for n in (0, 149)] == [b"0", b"149"]
        assert await store.put_many([]) == []

    async def test_many_at_once(self, store: BlobStore) -> None:
        """Concurrent puts of equal and different content all succeed."""
        keys = await asyncio.gather(*(store.put(b"%d" % (n % 7)) for n in range(50)))
        assert len(set(keys)) == 7
        assert [await store.get(key) for key in keys[:7]] == [b"%d" % n for n in range(7)]

    async def test_another_process_sees_it(self, store: BlobStore, reopened: Callable[[], BlobStore]) -> None:
        """A second store on the same place reads, and puts the same without harm."""
        key = await store.put(b"shared")
        async with reopened() as other:
            assert await other.get(key) == b"shared"
            assert await other.put(b"shared") == key
            assert await other.delete(key)
        assert not await store.exists(key)
        assert await store.put(b"shared") == key
        assert await store.get(key) == b"shared"

    async def test_a_missing_blob_says_so(self, store: BlobStore) -> None:
        """An unknown key raises BlobMissing, and deleting it is no error."""
        key = key_of("body", b"never put")
        with pytest.raises(BlobMissing):
            await store.get(key)
        assert not await store.exists(key)
        assert not await store.delete(key)

    @pytest.mark.parametrize("key", NO_KEYS)
    async def test_what_is_no_key_is_refused(self, store: BlobStore, key: str) -> None:
        """Nothing that came from outside becomes part of a name."""
        for use in (store.get, store.exists, store.delete):
            with pytest.raises(UsageError):
                await use(key)

    @pytest.mark.parametrize("kind", ["", "../x", "Body", "a" * 17, "1x", "a b", "a\n"])
    async def test_what_is_no_kind_is_refused(self, store: BlobStore, kind: str) -> None:
        """Kinds are words of the program, and no others are stored."""
        with pytest.raises(UsageError):
            await store.put(b"x", kind)

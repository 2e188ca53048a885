"""The file backend keeps the contract of blob stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from gossamer.backends.files.blobs import FileBlobs
from gossamer.ports.blobs import BlobStore
from gossamer.testing.contracts.blobs import BlobStoreContract


class TestFileBlobs(BlobStoreContract):
    """Blobs in a temporary folder."""

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[BlobStore]:
        async with FileBlobs(tmp_path / "blobs") as opened:
            yield opened

    @pytest.fixture
    def reopened(self, tmp_path: Path) -> Callable[[], BlobStore]:
        return lambda: FileBlobs(tmp_path / "blobs")

"""The development cache gives back what it was given, and never stands in the way."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest

from gossamer.backends.files.cache import FileAnswerCache
from gossamer.model.errors import SettingsError
from gossamer.ports.transport import Answer

KEY, OTHER = b"\x00" * 16, b"\xff" * 16
ANSWER = Answer(
    200,
    [("Content-Type", "text/html"), ("X", "ü"), ("X", "2")],
    bytes(range(256)),
    1.5,
    0.1,
    0.2,
    256,
    "2",
    "192.0.2.1",
)


@pytest.fixture
def cache(tmp_path: Path) -> FileAnswerCache:
    return FileAnswerCache(tmp_path / "a" / "cache")


async def test_an_answer_comes_back_whole(cache: FileAnswerCache, tmp_path: Path):
    """Status, repeated headers and any bytes survive, also for the next process."""
    await cache.put(KEY, ANSWER)
    assert await cache.get(KEY) == ANSWER
    assert await FileAnswerCache(tmp_path / "a" / "cache").get(KEY) == ANSWER
    assert await cache.get(OTHER) is None


async def test_the_newer_answer_counts(cache: FileAnswerCache, tmp_path: Path):
    """Putting again replaces, and leaves one file."""
    await cache.put(KEY, ANSWER)
    await cache.put(KEY, Answer(404, [], b"", 0, 0, 0, 0, "1.1", ""))
    got = await cache.get(KEY)
    assert got is not None
    assert got.status == 404
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1


@pytest.mark.parametrize("damage", [b"", b"1", b"1\xc1", b"2\x90", b"\x80\x04K."])
async def test_a_file_that_cannot_be_read_is_none(cache: FileAnswerCache, tmp_path: Path, damage: bytes):
    """Cut, damaged, of another version or a pickle: fetched again."""
    await cache.put(KEY, ANSWER)
    [file] = [path for path in tmp_path.rglob("*") if path.is_file()]
    file.write_bytes(damage)
    assert await cache.get(KEY) is None


async def test_links_are_not_followed(cache: FileAnswerCache, tmp_path: Path):
    """A planted link is neither read nor written through."""
    await cache.put(OTHER, ANSWER)
    [real] = [path for path in tmp_path.rglob("*") if path.is_file()]
    place = cache._place(KEY)
    place.parent.mkdir()
    place.symlink_to(real)
    assert await cache.get(KEY) is None
    await cache.put(KEY, Answer(404, [], b"", 0, 0, 0, 0, "1.1", ""))
    assert await cache.get(OTHER) == ANSWER


async def test_a_full_disk_only_warns_once(
    cache: FileAnswerCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The crawl goes on without the cache, and the log is not flooded."""

    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "open", full)
    with caplog.at_level(logging.WARNING):
        await cache.put(KEY, ANSWER)
        await cache.put(OTHER, ANSWER)
    assert len(caplog.records) == 1


def test_a_folder_that_cannot_be_used_is_told_at_the_start(tmp_path: Path):
    """A file in the place of the folder is an error of the settings, with the setting's name."""
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cache"):
        FileAnswerCache(tmp_path / "file")

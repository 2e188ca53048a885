"""What only blobs in files can get wrong: links, damage, leftovers, full disks."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gossamer.backends.files import blobs
from gossamer.backends.files.blobs import FileBlobs
from gossamer.model.errors import StateError
from gossamer.ports.blobs import BlobMissing, key_of, parse_key


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "blobs"


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[FileBlobs]:
    async with FileBlobs(folder) as opened:
        yield opened


def place(folder: Path, content: bytes) -> Path:
    kind, digest = parse_key(key_of("body", content))
    return folder / kind / digest[:2] / digest[2:4] / digest


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() or path.is_symlink()]


async def test_a_blob_has_its_place_and_leaves_nothing_else(store: FileBlobs, folder: Path):
    """One file per content, under two levels of folders, and no temporary file stays."""
    await store.put_many([b"one", b"two", b"one"])
    assert sorted(files(folder)) == sorted([place(folder, b"one"), place(folder, b"two")])


async def test_content_and_names_are_synced_before_put_returns(
    store: FileBlobs, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The file is synced before it has its name, and its folder and the new folders above after that."""
    done: list[str] = []
    real_sync, real_rename = os.fsync, os.rename

    def fsync(file: int) -> None:
        done.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        real_sync(file)

    def rename(*args: object, **kwargs: object) -> None:
        done.append("rename")
        real_rename(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "rename", rename)
    await store.put(b"safe")
    where = place(folder, b"safe").parent
    assert done[0].startswith(str(folder / ".new"))
    assert done[1] == "rename"
    assert done[2:] == [str(path) for path in (where, where.parent, where.parent.parent, folder)]


async def test_known_content_is_not_written_again(store: FileBlobs, folder: Path):
    """The same content keeps the file it has."""
    await store.put(b"same")
    before = place(folder, b"same").stat()
    await store.put(b"same")
    after = place(folder, b"same").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


async def test_a_cut_file_is_written_anew(store: FileBlobs, folder: Path):
    """A file of the wrong size, as a broken disk leaves it, is replaced by the next put."""
    key = await store.put(b"whole")
    place(folder, b"whole").write_bytes(b"who")
    with pytest.raises(BlobMissing, match="damaged"):
        await store.get(key)
    await store.put(b"whole")
    assert await store.get(key) == b"whole"


async def test_a_changed_file_is_not_believed(store: FileBlobs, folder: Path):
    """Content that does not have the hash of its name raises."""
    key = await store.put(b"truth")
    place(folder, b"truth").write_bytes(b"false")
    with pytest.raises(BlobMissing, match="damaged"):
        await store.get(key)


async def test_a_planted_link_in_place_of_a_blob_is_replaced(store: FileBlobs, folder: Path, tmp_path: Path):
    """Putting replaces the link and leaves what it points to; getting does not follow it."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"bait")  # the same size as the content
    place(folder, b"evil").parent.mkdir(parents=True)
    place(folder, b"evil").symlink_to(victim)
    with pytest.raises(StateError, match="symbolic link"):
        await store.get(key_of("body", b"evil"))
    await store.put(b"evil")
    assert victim.read_bytes() == b"bait"
    assert not place(folder, b"evil").is_symlink()
    assert await store.get(key_of("body", b"evil")) == b"evil"


async def test_a_planted_link_in_place_of_a_folder_is_refused(store: FileBlobs, folder: Path, tmp_path: Path):
    """A link instead of a fan-out folder does not lead the blobs out of the tree."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder / "body").symlink_to(outside)
    with pytest.raises(StateError, match=r"link|no folder"):
        await store.put(b"x")
    assert list(outside.iterdir()) == []


async def test_a_planted_pipe_does_not_hang_a_reader(store: FileBlobs, folder: Path):
    """A named pipe in place of a blob is no blob."""
    place(folder, b"pipe").parent.mkdir(parents=True)
    os.mkfifo(place(folder, b"pipe"))
    assert not await store.exists(key_of("body", b"pipe"))
    with pytest.raises(BlobMissing):
        await store.get(key_of("body", b"pipe"))


async def test_a_full_disk_leaves_no_part_and_says_so(
    store: FileBlobs, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """The error tells what to do, nothing of the batch has a name, and later puts work."""
    real, written = os.write, 0

    def write(file: int, data: bytes) -> int:
        nonlocal written
        written += 1
        if written > 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data)

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(StateError, match="disk is full"):
            await store.put_many([b"1", b"2", b"3"])
    assert files(folder) == []
    assert await store.put_many([b"1", b"2", b"3"]) == [key_of("body", c) for c in (b"1", b"2", b"3")]


async def test_leftovers_of_a_crash_are_swept_when_they_are_old(folder: Path):
    """Opening removes old temporary files and leaves those that a living process may be writing."""
    async with FileBlobs(folder):
        pass
    old, young = folder / ".new" / "old", folder / ".new" / "young"
    old.touch()
    young.touch()
    os.utime(old, (1, 1))
    async with FileBlobs(folder):
        assert [path.name for path in (folder / ".new").iterdir()] == ["young"]


async def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path):
    """Opening says what is wrong and where."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="file"):
        async with FileBlobs(tmp_path / "file"):
            pass


async def test_a_closed_store_says_so(folder: Path):
    """Using a store that is not open is an error of its own, not an odd one of the system."""
    with pytest.raises(StateError, match="not open"):
        await FileBlobs(folder).put(b"x")


def test_temporary_files_are_bounded():
    """However large a batch is, only so many files are open at once."""
    assert blobs._TOGETHER <= 256

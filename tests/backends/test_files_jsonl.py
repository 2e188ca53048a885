"""What only a file can get wrong: strangers' files, links, locks, full disks, power cuts."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sys
from pathlib import Path

import pytest

from gossamer.backends.files.jsonl import JsonlSink, StdoutSink
from gossamer.model.errors import OutputError
from gossamer.model.record import LoggedItem

ITEMS = [LoggedItem(1, b'{"n":1}'), LoggedItem(2, b'{"n":2}')]
MORE = [LoggedItem(3, b'{"n":3}')]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "items.jsonl"


async def written(path: Path) -> bytes:
    """A file with two items, closed; its state."""
    sink = JsonlSink(path)
    await sink.open(0, b"")
    state = await sink.write(ITEMS)
    await sink.close()
    return state


async def refusal(path: Path, number: int = 0, state: bytes = b"") -> str:
    sink = JsonlSink(path)
    with pytest.raises(OutputError) as caught:
        await sink.open(number, state)
    await sink.close()
    return str(caught.value)


async def test_a_strangers_file_is_not_touched(path: Path):
    """A file that this crawl did not write stays as it is, and the user is told what to do."""
    path.write_text("my thesis\n")
    assert "--fresh" in await refusal(path)
    assert path.read_text() == "my thesis\n"


async def test_an_empty_file_may_be_used(path: Path):
    """A file made by `touch` or `mktemp` is nobody's data."""
    path.touch()
    await written(path)
    assert path.read_text() == '{"n":1}\n{"n":2}\n'


async def test_a_file_put_in_the_place_of_an_empty_beginning_is_not_cut(path: Path):
    """A run that died before its first item left no mark in the file; the file itself is recognised."""
    sink = JsonlSink(path)
    base = await sink.open(0, b"")
    await sink.close()
    path.rename(path.with_suffix(".old"))
    path.write_text("my thesis\n")
    await refusal(path, 0, base)
    assert path.read_text() == "my thesis\n"


async def test_a_shorter_file_is_refused(path: Path):
    """Lines that were removed are not silently missing."""
    state = await written(path)
    path.write_text('{"n":1}\n')
    assert "shorter" in await refusal(path, 2, state)


async def test_a_missing_file_is_refused(path: Path):
    """A file that was moved away is asked back, and not begun anew without its first lines."""
    state = await written(path)
    path.unlink()
    assert "gone" in await refusal(path, 2, state)
    assert not path.exists()


async def test_a_changed_file_is_refused_and_kept(path: Path):
    """A file that ends differently at the known length is another one: nothing is cut off it."""
    state = await written(path)
    path.write_text("x" * 100)
    assert "changed" in await refusal(path, 2, state)
    assert path.stat().st_size == 100


async def test_a_state_without_sense_is_refused(path: Path):
    """A broken cursor is told as such."""
    await written(path)
    assert "cannot be read" in await refusal(path, 2, b"?")
    assert "not known" in await refusal(path, 2, b"")


async def test_two_writers_are_refused(path: Path):
    """The second is told, the first goes on, and when the first is gone the second may."""
    first = JsonlSink(path)
    await first.open(0, b"")
    state = await first.write(ITEMS)
    assert "Another process" in await refusal(path, 2, state)
    state = await first.write(MORE)
    await first.close()
    second = JsonlSink(path)
    await second.open(3, state)
    await second.close()
    assert path.read_text() == '{"n":1}\n{"n":2}\n{"n":3}\n'


async def test_a_link_is_not_followed(path: Path, tmp_path: Path):
    """A symbolic link in the place of the output, planted or not, is refused; what it points to stays."""
    victim = tmp_path / "victim"
    victim.write_text("")
    path.symlink_to(victim)
    assert "symbolic link" in await refusal(path)
    path.unlink()
    path.symlink_to(tmp_path / "nowhere")
    assert "symbolic link" in await refusal(path)
    assert not (tmp_path / "nowhere").exists()


async def test_a_folder_is_refused(path: Path):
    """`--output results` where results is a folder."""
    path.mkdir()
    assert "it is a folder" in await refusal(path)


async def test_a_pipe_is_refused_at_once(path: Path):
    """A named pipe without a reader does not hang the crawl."""
    os.mkfifo(path)
    async with asyncio.timeout(2):
        message = await refusal(path)
    assert "regular file" in message or "pipe" in message


async def test_a_file_in_the_path_is_refused(path: Path):
    """`--output file/items.jsonl` where file is a file."""
    path.write_text("")
    assert "part of its path is a file" in await refusal(path / "items.jsonl")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
async def test_a_folder_without_rights_is_refused(path: Path):
    """An unwritable folder is told with what to do."""
    path.parent.chmod(0o500)
    try:
        assert "permissions" in await refusal(path)
    finally:
        path.parent.chmod(0o700)


async def test_rights_are_explained(path: Path, monkeypatch: pytest.MonkeyPatch):
    """EACCES becomes a sentence (also where the tests run as root and could not provoke it)."""

    def denied(*_: object, **__: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    sink = JsonlSink(path)
    with pytest.raises(OutputError, match="check its permissions"):
        await sink.open(0, b"")


async def test_a_full_disk_loses_and_doubles_nothing(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A write that stops half-way raises, and the same items written again are there once."""
    sink = JsonlSink(path)
    await sink.open(0, b"")
    await sink.write(ITEMS)
    real = os.pwrite

    def full(file: int, data: bytes, place: int) -> int:
        if place > 16:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(file, data[:3], place)

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        for _ in range(2):
            with pytest.raises(OutputError, match="disk is full"):
                await sink.write([LoggedItem(3, b'{"n":"a long one"}')])
    assert path.read_text() == '{"n":1}\n{"n":2}\n{"n'  # torn, as a kill would leave it
    await sink.write(MORE)
    await sink.close()
    assert path.read_text() == '{"n":1}\n{"n":2}\n{"n":3}\n'


async def test_a_failed_sync_is_written_again(path: Path, monkeypatch: pytest.MonkeyPatch):
    """When fsync fails nothing is known of the data: the batch is not acknowledged, and its repetition is there once."""
    sink = JsonlSink(path)
    await sink.open(0, b"")

    def broken(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", broken)
        with pytest.raises(OutputError):
            await sink.write(ITEMS)
    await sink.write(ITEMS)
    await sink.close()
    assert path.read_text() == '{"n":1}\n{"n":2}\n'


async def test_a_shorter_repetition_leaves_no_rest(path: Path, monkeypatch: pytest.MonkeyPatch):
    """What a failed write left behind the end of the next one is cut off."""
    sink = JsonlSink(path)
    await sink.open(0, b"")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: os.open("/nowhere/at/all", os.O_RDONLY))
        with pytest.raises(OutputError):
            await sink.write(ITEMS)
    await sink.write(ITEMS[:1])
    await sink.close()
    assert path.read_text() == '{"n":1}\n'


@pytest.mark.parametrize("harm", ["unlink", "truncate", "append"])
async def test_a_file_that_is_changed_meanwhile_stops_the_sink(path: Path, harm: str):
    """Items are not written into a file that is gone, shorter or longer than it was left."""
    sink = JsonlSink(path)
    await sink.open(0, b"")
    await sink.write(ITEMS)
    if harm == "unlink":
        path.unlink()
    else:
        with path.open("r+b") as file:
            file.truncate(3 if harm == "truncate" else 300)
    with pytest.raises(OutputError, match="removed or changed"):
        await sink.write(MORE)
    await sink.close()


async def test_data_and_name_are_synced(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A new file's name is made durable with its folder; each batch is synced once before it is acknowledged."""
    synced: list[str] = []
    real = os.fsync

    def fsync(file: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{file}").readlink()))
        real(file)

    monkeypatch.setattr(os, "fsync", fsync)
    sink = JsonlSink(path)
    await sink.open(0, b"")
    assert synced == [str(path), str(path.parent)]
    await sink.write(ITEMS)
    assert synced[2:] == [str(path)]
    await sink.close()


VICTIM = """
import asyncio, sys
from gossamer.backends.files.jsonl import JsonlSink
from gossamer.model.record import LoggedItem

async def main():
    sink = JsonlSink(sys.argv[1])
    state = await sink.open(0, b"")
    number = 0
    print(number, state.decode(), flush=True)
    while True:
        items = [LoggedItem(n, b'{"n":%d}' % n) for n in range(number + 1, number + 40)]
        state = await sink.write(items)
        number = items[-1].number
        print(number, state.decode(), flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("batches", [1, 2, 7])
async def test_a_killed_process_leaves_a_file_that_goes_on(path: Path, batches: int):
    """SIGKILL while writing: opened with any acknowledged state, the file ends exactly there, and its lock is gone."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, str(path), stdout=asyncio.subprocess.PIPE
    )
    assert child.stdout is not None
    for _ in range(batches):
        line = await child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    await child.communicate()
    number, state = line.split(b" ", 1)
    sink = JsonlSink(path)
    await sink.open(int(number), state.strip())
    await sink.write([LoggedItem(int(number) + 1, b'{"n":%d}' % (int(number) + 1))])
    await sink.close()
    assert path.read_bytes() == b"".join(b'{"n":%d}\n' % n for n in range(1, int(number) + 2))


async def test_a_broken_pipe_is_told():
    """`gossamer crawl … | head` ends with a sentence, not with a traceback."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as stream:
        sink = StdoutSink(stream)
        await sink.open(0, b"")
        with pytest.raises(OutputError, match="Nobody reads"):
            await sink.write(ITEMS)


async def test_a_reader_that_leaves_is_told_of_to_who_asked():
    """A command that pipes its items to `head` learns that it may end, before the sink is tried again."""
    reading, writing = os.pipe()
    os.close(reading)
    gone: list[bool] = []
    with os.fdopen(writing, "wb", buffering=0) as stream:
        sink = StdoutSink(stream, lambda: gone.append(True))
        with pytest.raises(OutputError):
            await sink.write(ITEMS)
    assert gone == [True]


class TestWhatStoodBehind:
    """What is cut off at the end of the file comes again from the log; what does not is kept beside it."""

    @pytest.fixture(params=["items.jsonl", "items.jsonl.gz"])
    def path(self, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
        return tmp_path / request.param

    def others(self, path: Path) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in path.parent.iterdir() if file != path}

    async def test_a_strangers_line_is_kept(self, path: Path, caplog: pytest.LogCaptureFixture):
        """A line that somebody appended after a clean stop is moved, not lost, and that is told once."""
        state = await written(path)
        with path.open("ab") as file:
            file.write(b"my own line\n")
        for _ in range(2):
            sink = JsonlSink(path)
            await sink.open(2, state)
            await sink.write(MORE)
            await sink.close()
            state = sink._state()
        assert self.others(path) == {f"{path.name}.removed": b"my own line\n"}
        assert [str(path) in line for line in caplog.messages] == [True]

    async def test_a_strangers_line_is_kept_where_nothing_is_written(self, path: Path):
        """Also by a run that has no item left to write."""
        state = await written(path)
        with path.open("ab") as file:
            file.write(b'{"n":3}\n')
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.close()
        assert self.others(path) == {f"{path.name}.removed": b'{"n":3}\n'}

    @pytest.mark.parametrize("torn", [0, 3])
    async def test_what_comes_again_is_not_kept(
        self, path: Path, torn: int, caplog: pytest.LogCaptureFixture
    ):
        """After a kill between the write and the cursor nothing is left over, and nothing is said, also of a torn end."""
        state = await written(path)
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.write(MORE)
        await sink.close()
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size - torn)
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.write([*MORE, LoggedItem(4, b'{"n":4}')])
        await sink.close()
        assert (self.others(path), caplog.messages) == ({}, [])

    async def test_it_may_come_again_in_pieces(self, path: Path, caplog: pytest.LogCaptureFixture):
        """Batches of another size are the same items all the same."""
        state = await written(path)
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.write([*MORE, LoggedItem(4, b'{"n":4}')])
        await sink.close()
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.write(MORE)
        await sink.write([LoggedItem(4, b'{"n":4}')])
        await sink.close()
        assert (self.others(path), caplog.messages) == ({}, [])

    async def test_a_kill_before_it_came_again_loses_nothing(self, path: Path):
        """The next run goes on waiting for what the killed one had cut off."""
        state = await written(path)
        with path.open("ab") as file:
            file.write(b"my own line\n")
        killed = JsonlSink(path)
        await killed.open(2, state)
        os.close(killed._file)  # what a kill does
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.write(MORE)
        await sink.close()
        assert self.others(path) == {f"{path.name}.removed": b"my own line\n"}

    async def test_killed_again_while_it_came_again(self, path: Path, caplog: pytest.LogCaptureFixture):
        """Two kills leave one tail, the longer one."""
        state = await written(path)
        for again in (MORE, [*MORE, LoggedItem(4, b'{"n":4}')]):
            sink = JsonlSink(path)
            await sink.open(2, state)
            if again is MORE:
                await sink.write(again)
            os.close(sink._file)
        sink = JsonlSink(path)
        await sink.open(2, state)
        await sink.write([*MORE, LoggedItem(4, b'{"n":4}')])
        await sink.close()
        assert (self.others(path), caplog.messages) == ({}, [])

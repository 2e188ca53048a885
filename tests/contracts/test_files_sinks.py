"""The file backend keeps the contract of sinks: plain, compressed, and (as far as a pipe can) standard output."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path

import pytest

from gossamer.backends.files.jsonl import JsonlSink, StdoutSink
from gossamer.ports.sinks import ItemSink
from gossamer.testing.contracts.sinks import ExactItemSinkContract, ItemSinkContract


class TestJsonlSink(ExactItemSinkContract):
    """Lines in a file."""

    @pytest.fixture
    def sink(self, tmp_path: Path) -> Callable[[], ItemSink]:
        return lambda: JsonlSink(tmp_path / "out" / "items.jsonl")

    @pytest.fixture
    def held(self, tmp_path: Path) -> Callable[[], list[bytes]]:
        return lambda: (tmp_path / "out" / "items.jsonl").read_bytes().split(b"\n")[:-1]


class TestGzippedJsonlSink(ExactItemSinkContract):
    """Lines in a file that is gzip: what any reader of gzip sees."""

    @pytest.fixture
    def sink(self, tmp_path: Path) -> Callable[[], ItemSink]:
        return lambda: JsonlSink(tmp_path / "items.jsonl.gz")

    @pytest.fixture
    def held(self, tmp_path: Path) -> Callable[[], list[bytes]]:
        return lambda: gzip.decompress((tmp_path / "items.jsonl.gz").read_bytes()).split(b"\n")[:-1]


class TestStdoutSink(ItemSinkContract):
    """Lines into a pipe, which cannot be cut back."""

    @pytest.fixture
    def stream(self) -> io.BytesIO:
        return io.BytesIO()

    @pytest.fixture
    def sink(self, stream: io.BytesIO) -> Callable[[], ItemSink]:
        return lambda: StdoutSink(stream)

    @pytest.fixture
    def held(self, stream: io.BytesIO) -> Callable[[], list[bytes]]:
        return lambda: stream.getvalue().split(b"\n")[:-1]

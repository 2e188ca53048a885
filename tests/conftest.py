"""What all suites share: real servers, each started once for the whole run, and only where a test asks for it."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from gossamer.testing.servers import RedisServer, ServerMissing


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A Redis that all tests share: each uses a namespace of its own."""
    try:
        server = RedisServer(tmp_path_factory.mktemp("redis"))
    except ServerMissing as missing:
        absent(missing)
    server.start()
    yield server
    server.stop()


def absent(missing: ServerMissing) -> None:
    """At a desk a reason to skip; in CI, where every server is to be there, a failure."""
    if os.environ.get("CI"):
        pytest.fail(str(missing))
    pytest.skip(str(missing))

"""libcurl keeps the promises of the transport port."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from gossamer.backends.curl import CurlTransport
from gossamer.ports.transport import Transport
from gossamer.testing.contracts.transport import TransportContract


class TestCurlTransport(TransportContract):
    @pytest.fixture
    async def transport(self) -> AsyncIterator[Transport]:
        async with CurlTransport() as transport:
            yield transport

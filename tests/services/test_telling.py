"""What is said while a crawl runs: once of a host that cannot be reached, a few times of what repeats itself."""

from __future__ import annotations

import contextlib
import io
import logging
from typing import Any

import pytest

from gossamer.ports.transport import Exchange, FetchError
from gossamer.services import strangers
from gossamer.services.progress import Silent
from gossamer.services.sparing import SparingHandler
from gossamer.services.strangers import Telling


class Failing:
    """A transport that fails so, or answers where there is no code."""

    code: Any = "dns"

    async def send(self, _: Exchange) -> Any:
        if self.code:
            raise FetchError(self.code)


async def ask(transport: Telling, *urls: str) -> None:
    for url in urls:
        with contextlib.suppress(FetchError):
            await transport.send(Exchange(url))


class TestHosts:
    """A typing error in a host is seen at once, not when the patience with it is over."""

    async def test_each_is_told_once(self, caplog: pytest.LogCaptureFixture):
        """With what is the matter, and for how long it is tried."""
        transport = Telling(Failing(), 1800.0)  # type: ignore[arg-type]
        await ask(transport, "https://a.example/1", "https://a.example/2", "http://b.example:81/")
        assert caplog.messages == [
            "a.example: the name of the host has no address; trying again for up to 1m 00s",
            "b.example:81: the name of the host has no address; trying again for up to 1m 00s",
        ]

    async def test_one_that_has_answered_is_not(self, caplog: pytest.LogCaptureFixture):
        """Trouble of a host that is known is its pace's affair, and so are faults that are no stranger's."""
        inner = Failing()
        transport = Telling(inner, 1800.0)  # type: ignore[arg-type]
        inner.code = ""
        await ask(transport, "https://a.example/")
        inner.code = "connect"
        await ask(transport, "https://a.example/")
        inner.code = "reset"
        await ask(transport, "https://b.example/")
        assert caplog.messages == []

    async def test_their_number_is_bounded(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ):
        """A crawl of a million dead hosts neither fills the memory nor the log."""
        monkeypatch.setattr(strangers, "MOST", 3)
        await ask(Telling(Failing(), 1.0), *(f"https://{n}.example/" for n in range(9)))  # type: ignore[arg-type]
        assert len(caplog.messages) == 3


def test_what_repeats_itself_is_told_a_few_times():
    """Five of a kind, then once that more are only counted; another kind is heard all the same."""
    stream = io.StringIO()
    log = logging.getLogger("sparing")
    log.addHandler(SparingHandler(Silent(stream)))
    log.setLevel(logging.INFO)
    for number in range(160):
        log.error("%s %s: %s", "handler_error", f"https://a.example/{number}", "broken")
        log.warning("the sink %s fails: %s", "jsonl:/x", "full")
        log.info("page %d", number)
    log.error("%s %s: %s", "handler_timeout", "https://a.example/", "slow")
    lines = stream.getvalue().splitlines()
    assert sum(line.startswith("handler_error") for line in lines) == 5
    assert sum(line.startswith("the sink") for line in lines) == 5
    assert sum(line.startswith("page") for line in lines) == 160
    assert sum("counted, not shown" in line for line in lines) == 2
    assert "… further handler_error: they are counted, not shown" in lines
    assert lines[-1].startswith("handler_timeout")

"""A sink and a store that has lost its end: both stand where they stood before, and nothing is there twice."""

from __future__ import annotations

from test_followers import Log, Sink

from gossamer.crawling.followers import SinkFollower
from gossamer.model.record import LoggedItem


async def test_a_sink_goes_back_with_a_store_that_has_lost_its_end() -> None:
    """The cursor stands where it stood before; the target is cut back to it, and what comes again is there once."""
    log, sink = Log(), Sink()
    log.settle(3)
    async with SinkFollower(log, sink, "t", "sink") as follower:
        await follower.drain()
        before = log.cursors["sink"]
        log.settle(2)
        await follower.drain()
        assert sink.held == [1, 2, 3, 4, 5]
        log.cursors["sink"] = before
        log.items[3:] = [LoggedItem(1_000_004, b"4"), LoggedItem(1_000_005, b"5")]
        await follower.drain()
    assert sink.held == [1, 2, 3, 1_000_004, 1_000_005]
    assert not sink.misused

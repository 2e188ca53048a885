"""What every frontier promises (`ports.frontier`), as tests against its Protocols alone.

A backend's test module inherits `FrontierContract` and gives it two fixtures: `frontier`, opened and empty, and
`elapse`, an async function that lets the store's time pass by so many seconds. A backend that outlives its process
inherits `DurabilityContract` as well and gives it `reopen`, an async function that closes the store and opens it again
on the same content. The subjects are in the modules beside this one, each test with one sentence of behaviour. The
random lives of `gossamer.testing.interleavings` find what nobody thought of; they belong to a backend's tests too.
"""

from __future__ import annotations

from gossamer.testing.contracts.frontier_durable import DurabilityContract
from gossamer.testing.contracts.frontier_items import ItemsContract
from gossamer.testing.contracts.frontier_late import LateContract
from gossamer.testing.contracts.frontier_limits import LimitsContract
from gossamer.testing.contracts.frontier_politeness import (
    PaceContract,
    RobotsContract,
    SlotsContract,
    TroubleContract,
)
from gossamer.testing.contracts.frontier_records import OrderContract, PushContract, WaitContract
from gossamer.testing.contracts.frontier_sessions import SessionsContract
from gossamer.testing.contracts.frontier_settling import CountersContract, SettleContract
from gossamer.testing.contracts.frontier_tasks import (
    CommandsContract,
    EndContract,
    OpeningContract,
    RetryFailedContract,
)

__all__ = ["DurabilityContract", "FrontierContract"]


class FrontierContract(
    PushContract,
    OrderContract,
    WaitContract,
    SettleContract,
    CountersContract,
    SlotsContract,
    PaceContract,
    RobotsContract,
    TroubleContract,
    SessionsContract,
    ItemsContract,
    LimitsContract,
    LateContract,
    OpeningContract,
    EndContract,
    CommandsContract,
    RetryFailedContract,
):
    """Inherit, and give the fixtures `frontier` and `elapse`."""

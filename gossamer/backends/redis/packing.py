"""How links and verdicts are packed for the script.

Redis unpacks the older MessagePack, which has one kind of string and no bytes: bytes are written as such a string.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from gossamer.model.host import HostOrder
from gossamer.model.record import Link, Outcome, Verdict
from gossamer.model.traps import budget_name

Raw = msgspec.Raw


def as_string(value: bytes) -> Raw:
    """Bytes, as a string of MessagePack."""
    return Raw(b"\xdb" + struct.pack(">I", len(value)) + value)


def link_row(link: Link, *, pattern: bool) -> tuple[Any, ...]:
    """In the order that the script knows; the pattern only where it counts."""
    row = (
        Raw(b"\xb0" + link.key), link.url, link.host, link.priority, link.depth, link.kind, link.hops,
        link.request.decode(), link.own_key, link.delay,
    )  # fmt: skip
    return (*row, budget_name(link.url)) if pattern else row


def order_row(order: HostOrder) -> dict[str, Any]:
    row = msgspec.structs.asdict(order)
    if order.robots is not None:
        row["robots"] = {
            "body": as_string(order.robots.body), "ttl": order.robots.ttl, "crawl_delay": order.robots.crawl_delay
        }  # fmt: skip
    return row


def outcome_row(outcome: Outcome, *, pattern: bool) -> dict[str, Any]:
    """What an outcome says; what it does not say is left out."""
    row: dict[str, Any] = {"number": outcome.number, "verdict": outcome.verdict, "task": outcome.task}
    if outcome.verdict is Verdict.RETRY:
        row |= {
            "burned": outcome.burned,
            "crashed": outcome.crashed,
            "delay": outcome.delay,
            "priority": outcome.priority,
        }
        if outcome.request is not None:
            row["request"] = outcome.request.decode()
    if outcome.code:
        row["code"] = outcome.code
    if outcome.links:
        row["links"] = [link_row(link, pattern=pattern) for link in outcome.links]
    if outcome.items:
        row["items"] = [
            {"data": as_string(item.data)}
            if item.key is None
            else {"data": as_string(item.data), "key": item.key}
            for item in outcome.items
        ]
    if outcome.body is not None:
        row["body"] = outcome.body
    if outcome.counts:
        row["counts"] = outcome.counts
    if outcome.samples:
        row["samples"] = outcome.samples
    if outcome.sent_ago is not None:
        row["sent_ago"] = outcome.sent_ago
    if outcome.host is not None:
        row["host"] = order_row(outcome.host)
    return row

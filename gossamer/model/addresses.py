"""Which addresses a crawl may dial.

The rule is an allow rule: globally routable unicast and nothing else. IPv6 has many ways to carry an IPv4 address
inside; they are unfolded first, for a kernel or a gateway would unfold them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Literal

AddressKind = Literal["public", "private", "denied", "metadata"]
Network = IPv4Network | IPv6Network

_METADATA = frozenset(
    ip_address(text)
    for text in (
        "169.254.169.254",  # most clouds
        "169.254.170.2",  # container credentials
        "169.254.170.23",
        "169.254.0.23",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",  # globally routable by number, yet answered by the virtual machine's own host
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd20:ce::254",
    )
)
"""Where clouds hand out credentials to whoever asks: no permission opens these."""

_PRIVATE = tuple(
    ip_network(text)
    for text in ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
"""What a person at the keyboard may open: the own machine and the own network."""

_DENIED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux dials itself
        "100.64.0.0/10",  # carrier-grade NAT
        "169.254.0.0/16",  # link-local
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # withdrawn 6to4 relays
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
_DENIED_V6 = tuple(
    IPv6Network(text)
    for text in (
        "2001::/23",  # protocol assignments, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "3fff::/20",
    )
)
_TEREDO = IPv6Network("2001::/32")
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TAIL_CARRIERS = tuple(
    IPv6Network(text)
    for text in (
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated
        "64:ff9b::/96",  # NAT64, well-known prefix
        "::/96",  # IPv4-compatible
    )
)
_LOCAL_NAT64 = IPv6Network("64:ff9b:1::/48")
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)
_WORD = 0xFFFF_FFFF


@lru_cache(maxsize=65_536)
def address_kind(ip: str) -> AddressKind:
    """Classify the text of an address; whatever is not an address, or has a zone, is denied."""
    try:
        address = ip_address(ip)
    except ValueError:
        return "denied"
    if isinstance(address, IPv4Address):
        return _kind_of_v4(address)
    return "denied" if address.scope_id is not None else _kind_of_v6(address)


def is_public(ip: str) -> bool:
    """Whether an address is globally routable unicast, also after unfolding what it carries inside."""
    return address_kind(ip) == "public"


def _kind_of_v4(address: IPv4Address) -> AddressKind:
    if address in _METADATA:
        return "metadata"
    if any(address in network for network in _PRIVATE if network.version == 4):
        return "private"
    return "denied" if any(address in network for network in _DENIED_V4) else "public"


def _kind_of_v6(address: IPv6Address) -> AddressKind:
    if address in _METADATA:
        return "metadata"
    if any(address in network for network in _PRIVATE if network.version == 6):
        return "private"
    carried = {_kind_of_v4(inner) for inner in _carried(address)}
    for kind in ("metadata", "denied", "private"):
        if kind in carried:
            return kind
    if address in _LOCAL_NAT64:
        return "denied"  # where its gateway leads is known to its network alone
    if carried:
        return "public"
    routable = address in _GLOBAL_V6 and not any(address in network for network in _DENIED_V6)
    return "public" if routable else "denied"


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """The IPv4 addresses inside an IPv6 one."""
    bits = int(address)
    if address in _TEREDO:
        yield IPv4Address(bits >> 64 & _WORD)
        yield IPv4Address(~bits & _WORD)
    elif address in _SIX_TO_FOUR:
        yield IPv4Address(bits >> 80 & _WORD)
    elif address in _LOCAL_NAT64:
        yield IPv4Address(bits & _WORD)
        yield IPv4Address((bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF)
    elif any(address in network for network in _TAIL_CARRIERS) or bits >> 32 & _WORD in _ISATAP:
        yield IPv4Address(bits & _WORD)


class AddressGuard:
    """Decides on each address just before it is dialled.

    `allow_net` opens networks for every exchange; a single exchange may be allowed the private ones. The metadata
    services of clouds stay closed whatever is allowed.
    """

    def __init__(self, allow_net: Iterable[str | Network] = ()) -> None:
        self._open = tuple(ip_network(net) if isinstance(net, str) else net for net in allow_net)

    def permits(self, ip: str, *, allow_private: bool = False) -> bool:
        kind = address_kind(ip)
        if kind == "public":
            return True
        if kind == "metadata":
            return False
        if kind == "private" and allow_private:
            return True
        return bool(self._open) and self._opened(ip)

    def _opened(self, ip: str) -> bool:
        try:
            address = ip_address(ip)
        except ValueError:
            return False
        if isinstance(address, IPv6Address):
            if address.scope_id is not None:
                return False
            if address.ipv4_mapped is not None:
                address = address.ipv4_mapped
        return any(address in network for network in self._open)

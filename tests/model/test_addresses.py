"""Which addresses a crawl may dial."""

from __future__ import annotations

import ipaddress

import pytest

from gossamer.model.addresses import AddressGuard, address_kind, is_public

PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "198.17.255.255",
]
PUBLIC += [
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2002:808:808::1",
    "223.255.255.255",
]
PRIVATE = [
    "10.0.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "::1",
    "fc00::1",
    "fdff::1",
]
PRIVATE += [
    "::ffff:127.0.0.1",
    "::ffff:10.1.2.3",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::7f00:1",
    "::ffff:0:10.0.0.1",
]
DENIED = [
    "0.0.0.0",
    "0.1.2.3",
    "100.64.0.1",
    "169.254.1.1",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
]
DENIED += [
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "fe80::1",
    "ff02::1",
]
DENIED += [
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
    "2001:2::1",
    "2001:20::1",
    "100::1",
    "5f00::1",
    "64:ff9b:1::808:808",
    "4000::1",
]
DENIED += [
    "fe80::1%eth0",
    "2606:4700::1111%1",
    "not an address",
    "",
    "1.2.3",
    "0x7f.1",
    "2130706433",
    "::ffff:0.0.0.0",
]
METADATA = [
    "169.254.169.254",
    "fd00:ec2::254",
    "100.100.100.200",
    "::ffff:169.254.169.254",
    "64:ff9b::a9fe:a9fe",
]
METADATA += [
    "2002:a9fe:a9fe::",
    "::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "168.63.129.16",
    "2a00::5efe:169.254.169.254",
]


@pytest.mark.parametrize("ip", PUBLIC)
def test_global_unicast_is_public(ip: str) -> None:
    """An address that the whole internet can route is public, also when IPv6 carries it."""
    assert is_public(ip)


@pytest.mark.parametrize("ip", PRIVATE)
def test_private_addresses_open_by_permission(ip: str) -> None:
    """Loopback and private networks are refused, and open for a host named at the keyboard."""
    assert address_kind(ip) == "private"
    assert not AddressGuard().permits(ip)
    assert AddressGuard().permits(ip, allow_private=True)


@pytest.mark.parametrize("ip", DENIED)
def test_special_addresses_stay_closed(ip: str) -> None:
    """What is neither global nor private is refused even with permission, and so is what is no address."""
    assert address_kind(ip) == "denied"
    assert not AddressGuard().permits(ip, allow_private=True)


@pytest.mark.parametrize("ip", METADATA)
def test_metadata_services_never_open(ip: str) -> None:
    """Nothing opens the addresses where clouds hand out credentials, in whatever form they are written."""
    everything = AddressGuard(allow_net=["0.0.0.0/0", "::/0"])
    assert address_kind(ip) == "metadata"
    assert not everything.permits(ip, allow_private=True)


def test_teredo_is_unfolded_on_both_ends() -> None:
    """A Teredo address is judged by its server and by its inverted client."""
    server, client = int(ipaddress.IPv4Address("8.8.8.8")), int(ipaddress.IPv4Address("127.0.0.1"))
    inside = ipaddress.IPv6Address((0x20010000 << 96) | (server << 64) | (client ^ 0xFFFFFFFF))
    outside = ipaddress.IPv6Address((0x20010000 << 96) | (server << 64) | (server ^ 0xFFFFFFFF))
    assert address_kind(str(inside)) == "private"
    assert address_kind(str(outside)) == "public"


def test_allow_net_opens_what_it_names() -> None:
    """A network named in the settings opens, mapped into IPv6 or not, and its neighbours do not."""
    guard = AddressGuard(allow_net=["10.1.0.0/16", ipaddress.ip_network("100.64.0.0/10"), "fd12::/32"])
    assert guard.permits("10.1.2.3")
    assert guard.permits("::ffff:10.1.2.3")
    assert guard.permits("100.64.0.1")
    assert guard.permits("fd12::1")
    assert not guard.permits("10.2.0.1")
    assert not guard.permits("fd13::1")
    assert not guard.permits("fd12::1%eth0")
    assert not guard.permits("100.100.100.200")


def test_a_wrong_network_is_an_error_at_once() -> None:
    """A misspelt network is not ignored."""
    with pytest.raises(ValueError):
        AddressGuard(allow_net=["10.1.2.3/8"])

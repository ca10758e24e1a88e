"""Which addresses an HTTP store may be at: none that reaches into a private network unless it is declared so."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address

_NEVER: Final = tuple(
    map(
        ip_network,
        (
            *("0.0.0.0/8", "192.0.0.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            *("::/128", "fec0::/10", "ff00::/8"),
            # Where clouds hand out credentials to whoever asks; most of them are link-local.
            *("169.254.0.0/16", "fe80::/10", "168.63.129.16/32", "100.100.100.200/32"),
            *("fd00:ec2::254/128", "fd20:ce::254/128"),
        ),
    )
)
"""Addresses that are no server's, or that no store is ever at."""

_PRIVATE: Final = tuple(
    map(
        ip_network,
        ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"),
    )
)
"""This machine, private networks, and the addresses that carriers share out."""

_TRANSLATED: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")


def refusal(text: str, *, private: bool) -> str:
    """Why a store may not be at an address; "" where it may."""
    return next((why for face in _faces(ip_address(text)) if (why := _refusal(face, private=private))), "")


def _refusal(address: Address, *, private: bool) -> str:
    if _is_in(address, _NEVER):
        return "an address that no API is at"
    if _is_in(address, _PRIVATE):
        return "" if private else "a private address; say `private: true` if the store is meant to be there"
    return "" if address.is_global else "a reserved address"


def _is_in(address: Address, networks: tuple[object, ...]) -> bool:
    return any(address in network for network in networks)  # type: ignore[operator]


def _faces(address: Address) -> Iterator[Address]:
    """The addresses that one stands for: within many of version 6 lies one of version 4, where it leads to."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    yield IPv6Address(int(address))  # without the name of an interface
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if address in _TRANSLATED or (address in _COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFF_FFFF)

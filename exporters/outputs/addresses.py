"""Which network addresses are public: an output calls no other unless its settings allow it."""

import ipaddress
from typing import Final

_NAT64: Final = ipaddress.ip_network("64:ff9b::/96")
"""Addresses of IPv4 hosts behind a translator (RFC 6052)."""


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet; false for a name.

    Looks through the ways of writing an IPv4 address as an IPv6 address.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is None and parsed in _NAT64:
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        if inner is not None:
            parsed = inner
    return parsed.is_global and not parsed.is_multicast

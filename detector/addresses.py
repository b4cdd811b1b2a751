"""Addresses in settings: what only this machine reaches, and what names a server and no more."""

import ipaddress
from typing import Final
from urllib.parse import urlsplit

SCHEMES: Final = ("http", "https")


def is_loopback(host: str) -> bool:
    """True for names and addresses that only this machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def base_address(value: str) -> str:
    """Return an address of scheme, host and port; raises ValueError for one that holds more.

    A user name may hide a secret, which would be shown with the address.
    """
    try:
        parts = urlsplit(value)
        named = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        named = False
    if not named or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError("must be http:// or https://, a host and a port, and nothing else")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or a password: they belong in a file")
    return value

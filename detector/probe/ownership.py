"""Whom a probe may be pointed at: this machine, or what its user says is his own."""

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from pydantic import ValidationError

from detector.errors import InputError, UsageError
from ingest.scrape.settings import TargetSettings


def check_owned(urls: Iterable[str], *, is_owned: bool) -> None:
    """Raise UsageError for what is no address, or is neither loopback nor said to be one's own.

    A name counts as loopback if every address that it stands for is; InputError if it has none.
    """
    for url in urls:
        try:
            TargetSettings(url=url)
        except ValidationError:
            raise UsageError(
                "no address of an endpoint",
                where=url.rpartition("@")[2][:80],
                hint="scheme, host and port alone, such as http://127.0.0.1:8000",
            ) from None
        if not is_owned and not _is_loopback(urlsplit(url).hostname or ""):
            raise UsageError(
                "this is another machine, and a probe fills its memory and breaks its limits",
                where=url,
                hint="if it is yours to test, say so with --i-own-this-endpoint",
            )


def _is_loopback(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        raise InputError(
            "this name has no address", where=host[:80], hint="check the name, or give an address"
        ) from None
    return all(ipaddress.ip_address(one[4][0]).is_loopback for one in found)

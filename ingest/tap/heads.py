"""Headers on their way through a proxy: what concerns one connection only stays there."""

from collections.abc import Iterable, Sequence
from typing import Final

HeaderList = list[tuple[bytes, bytes]]

_ONE_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
"""RFC 9110, section 7.6.1, and what older proxies named."""


def first(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> bytes:
    """Return the value of a header, empty if there is none; `name` in lower case."""
    return next((value for key, value in headers if key.lower() == name), b"")


def passed_on(headers: Sequence[tuple[bytes, bytes]]) -> HeaderList:
    """Return what goes on to the other side: neither of one hop, nor named by Connection."""
    named = {
        token.strip().lower()
        for key, value in headers
        if key.lower() == b"connection"
        for token in value.split(b",")
    }
    dropped = _ONE_HOP | named
    return [(key, value) for key, value in headers if key.lower() not in dropped]


def to_engine(
    headers: Sequence[tuple[bytes, bytes]], *, length: int | None, asks_plain: bool
) -> HeaderList:
    """Return the head of a request to the engine.

    `length` is that of a body we hold; None: the body passes as it comes, in as many bytes as the
    client said, or in chunks. With `asks_plain` the answer is to come uncompressed.
    """
    is_chunked = bool(first(headers, b"transfer-encoding"))
    dropped = {b"expect"}  # the server has answered it
    if length is not None or is_chunked:
        dropped.add(b"content-length")
    if asks_plain:
        dropped.add(b"accept-encoding")
    made = [(key, value) for key, value in passed_on(headers) if key.lower() not in dropped]
    if length is not None:
        made.append((b"content-length", b"%d" % length))
    if asks_plain:
        made.append((b"accept-encoding", b"identity"))
    return made


def with_length(headers: HeaderList, length: int) -> HeaderList:
    """Return a head whose length, where it tells one, is this one."""
    return [
        (key, b"%d" % length if key.lower() == b"content-length" else value)
        for key, value in headers
    ]

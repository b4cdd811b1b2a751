"""The one way by which outputs call others over HTTP: bounded in time and size, no redirects.

The name of a host is resolved here and the connection goes to an address that was checked, so a
name that changes its address in between leads nowhere else. Proxies of the environment are not
used: they would resolve the name again.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Final

import httpx

from detector.errors import SettingsError
from exporters.outputs.addresses import is_public
from exporters.outputs.contract import Delivered, Outcome, Rejected, Retry

MOST_READ_BYTES: Final = 64 * 1024
"""Of an answer's body, which is not used: receivers answer with a few words."""

MOST_ADDRESSES: Final = 4
"""Of a host, tried one after the other within the time-out."""

LONGEST_WAIT_MS: Final = 3_600_000
"""The most that a Retry-After is followed: an hour, as nobody wants an alert of yesterday."""

GONE: Final = 410

FINAL: Final = {400, 413, 422}
"""Statuses about the body, which would be the same the next time. Others, such as 401 or 404, go
away when somebody mends the receiver or the settings."""


class HttpDoor:
    """Posts to one receiver. `ca_file` is a PEM file of authorities in place of the system's.

    Raises SettingsError, placed at `where`, for authorities that cannot be read.
    """

    def __init__(
        self, *, timeout_ms: int, allow_private: bool, ca_file: str | None, where: str
    ) -> None:
        self._timeout_s = timeout_ms / 1000
        self._allow_private = allow_private
        for library in ("httpx", "httpcore"):  # their lines quote URLs, which may be secrets
            logging.getLogger(library).setLevel(logging.WARNING)
        self._ca_file = ca_file
        self._where = where
        self._tls: ssl.SSLContext | None = self._authorities() if ca_file is not None else None

    def post(self, url: str, body: bytes, headers: Mapping[str, str], *, at_ms: int) -> Outcome:
        """Post and say what came of it, within the time-out whatever the receiver does.

        2xx is delivered, 410 and statuses about the body are rejected, everything else is to be
        tried again: errors, redirects, and answers that break off.
        """
        try:
            target = httpx.URL(url)
            return asyncio.run(self._post(target, self._context(target), body, headers, at_ms))
        except TimeoutError:
            return Retry("timed out")
        except httpx.HTTPError as error:
            return Retry(_fault(error))
        except (OSError, httpx.InvalidURL, ValueError):
            return Retry("no such address")

    async def _post(
        self,
        target: httpx.URL,
        tls: ssl.SSLContext,
        body: bytes,
        headers: Mapping[str, str],
        at_ms: int,
    ) -> Outcome:
        async with asyncio.timeout(self._timeout_s):
            addresses = await _resolve(target)
            if not self._allow_private and not all(is_public(one) for one in addresses):
                return Retry("private address refused")
            # an address that does not answer leaves time for the next
            limits = httpx.Timeout(self._timeout_s, connect=self._timeout_s / len(addresses))
            transport = httpx.AsyncHTTPTransport(verify=tls, trust_env=False)
            async with httpx.AsyncClient(transport=transport, timeout=limits) as client:
                answer = await _first_answer(client, target, addresses, body, headers)
                await _read_some(answer)
                return _outcome(answer, at_ms)

    def _context(self, target: httpx.URL) -> ssl.SSLContext:
        """Return what decides whom to trust; loaded once, when it is needed."""
        if target.scheme != "https":
            return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody, and is not asked
        if self._tls is None:
            self._tls = self._authorities()
        return self._tls

    def _authorities(self) -> ssl.SSLContext:
        try:
            return ssl.create_default_context(cafile=self._ca_file)
        except OSError as error:
            raise SettingsError(
                f"the authorities cannot be read: {(error.strerror or 'not PEM').lower()}",
                where=f"{self._where}.ca_file",
                hint="name a PEM file of certificates that this user may read",
            ) from None


async def _resolve(target: httpx.URL) -> list[str]:
    """Return the addresses of a host, the best first."""
    port = target.port or (443 if target.scheme == "https" else 80)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(target.host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found][:MOST_ADDRESSES]


async def _first_answer(
    client: httpx.AsyncClient,
    target: httpx.URL,
    addresses: list[str],
    body: bytes,
    headers: Mapping[str, str],
) -> httpx.Response:
    """Post to the first address that takes a connection."""
    for number, address in enumerate(addresses, start=1):
        request = client.build_request(
            "POST",
            target.copy_with(host=address),
            content=body,
            headers={"user-agent": "bleedwatch", **headers, "host": _authority(target)},
            extensions={"sni_hostname": target.host},
        )
        try:
            return await client.send(request, stream=True, follow_redirects=False)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            if number == len(addresses):
                raise
    raise httpx.ConnectError("the host has no address")


def _authority(target: httpx.URL) -> str:
    return target.netloc.decode("ascii").rpartition("@")[2]


async def _read_some(answer: httpx.Response) -> None:
    """Read the body to its end, so that one which breaks off is noticed, or to the bound."""
    read = 0
    async for chunk in answer.aiter_raw():
        read += len(chunk)
        if read > MOST_READ_BYTES:
            break
    await answer.aclose()


def _outcome(answer: httpx.Response, at_ms: int) -> Outcome:
    said = str(answer.status_code)
    if answer.is_success:
        return Delivered(said)
    if answer.status_code == GONE:
        return Rejected(said, gone=True)
    if answer.status_code in FINAL:
        return Rejected(said)
    if answer.is_redirect:
        return Retry(f"{said}: redirects are not followed")
    return Retry(said, retry_after_ms(answer.headers.get("retry-after"), at_ms))


def retry_after_ms(header: str | None, at_ms: int) -> int | None:
    """Return how long a `Retry-After` asks to wait: seconds or a date (RFC 9110), None if neither.

    At least 0, at most an hour.
    """
    if header is None:
        return None
    try:
        if header.strip().isascii() and header.strip().isdigit():
            wait_ms = int(header) * 1000
        else:
            wait_ms = int(parsedate_to_datetime(header).timestamp() * 1000) - at_ms
    except (ValueError, OverflowError):
        return None
    return min(max(wait_ms, 0), LONGEST_WAIT_MS)


def _fault(error: httpx.HTTPError) -> str:
    """Return fixed words for what a network did."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return "TLS failed"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.TimeoutException):
        return "timed out"
    if isinstance(error, httpx.ConnectError):
        return "no connection"
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError):
        return "the answer broke off"
    return "the connection broke off"

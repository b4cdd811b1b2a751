"""Signatures of Standard Webhooks: HMAC-SHA256 over id, time and body, one for each secret."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final

from detector.errors import SettingsError
from exporters.secret_file import Hidden, read_lines

PREFIX: Final = "whsec_"

MIN_BYTES: Final = 24
MAX_BYTES: Final = 64
"""Bounds of a secret in bytes, as Standard Webhooks states them."""


def sign(body: bytes, *, message_id: str, at_ms: int, secrets: Sequence[bytes]) -> dict[str, str]:
    """Return the headers that receivers verify, with a signature for every secret.

    While a secret is replaced both are given, and each receiver verifies with the one it has.
    """
    seconds = str(at_ms // 1000)
    headers = {"webhook-id": message_id, "webhook-timestamp": seconds}
    signed = b".".join((message_id.encode(), seconds.encode(), body))
    digests = [hmac.new(secret, signed, hashlib.sha256).digest() for secret in secrets]
    if digests:
        headers["webhook-signature"] = " ".join(
            f"v1,{base64.b64encode(digest).decode()}" for digest in digests
        )
    return headers


def read_secrets(path: str, *, where: str) -> list[bytes]:
    """Return the secrets of a file, one on each line, newest first.

    Raises SettingsError, which shows neither the secrets nor their lines.
    """
    return [_decode(line, where) for line in read_lines(path, where=where)]


def _decode(line: Hidden, where: str) -> bytes:
    secret = b""
    if line.startswith(PREFIX):
        try:
            secret = base64.b64decode(line.removeprefix(PREFIX) + "==")
        except (binascii.Error, ValueError):
            secret = b""
    if not MIN_BYTES <= len(secret) <= MAX_BYTES:
        raise SettingsError(
            f"the file holds a line that is no secret of {MIN_BYTES} to {MAX_BYTES} bytes",
            where=where,
            hint=f"write {PREFIX} and the base64 of random bytes, as in "
            "`echo whsec_$(openssl rand -base64 32)`",
        )
    return secret

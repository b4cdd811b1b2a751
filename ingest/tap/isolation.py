"""A tag that keeps the cached KV memory of tenants apart: only the secret can make it."""

import hashlib
from typing import Final

_TAG_BYTES: Final = 32
"""256 bits, as vLLM advises for its salts."""


def isolation_tag(tag_key: bytes, tenant: str, given: str | None) -> str:
    """Return the tag of a tenant; what the client gave itself still keeps its requests apart."""
    value = f"{len(tenant)}:{tenant}{given or ''}".encode(errors="surrogatepass")
    return hashlib.blake2b(
        value, key=tag_key, digest_size=_TAG_BYTES, person=b"tap isolation"
    ).hexdigest()

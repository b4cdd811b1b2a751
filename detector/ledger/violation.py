"""What may go wrong with who owns KV memory, as the ledger tells it."""

import enum
from typing import NamedTuple


class Breach(enum.StrEnum):
    """What was violated. The first two of each group are about a foreign tenant's memory."""

    TRANSFER_OTHER_TENANT = "transfer_other_tenant"
    TRANSFER_UNLABELLED = "transfer_unlabelled"
    REUSE_OTHER_TENANT = "reuse_other_tenant"
    REUSE_AFTER_RELEASE = "reuse_after_release"
    REUSE_NOT_APPROVED = "reuse_not_approved"
    REUSE_PAST_TTL = "reuse_past_ttl"
    NOT_RELEASED = "not_released"


class Holder(NamedTuple):
    """A request as events name it; what one does not say is None."""

    tenant: str | None
    request_id: str | None
    created_at_ms: int | None


class Violation(NamedTuple):
    """One violation. `holder` did it or got it, `origin` is whose memory it was, if known.

    `block` is a keyed tag. `numbers` are what it rests on.
    """

    breach: Breach
    at_ms: int
    kv_pool: str
    engine: str
    holder: Holder
    origin: Holder | None
    block: str | None
    numbers: dict[str, int]

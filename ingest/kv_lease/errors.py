"""What a KV lease raises; each says why in one fixed word, and never names a tenant.

Standard library only, as everything in this folder: it may be copied into a runtime as it is.
"""


class KvLeaseError(Exception):
    """Base. `reason` is a word of a fixed vocabulary, fit for a counter's label."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason = reason
        super().__init__(what)


class BlockTakenError(KvLeaseError):
    """The block is held by a request, or could not be invalidated: it must not be handed out."""


class LeaseEndedError(KvLeaseError):
    """The lease is over, by its deadline or before: the KV under it must not be used."""


class ReuseRefusedError(KvLeaseError):
    """A cached block may not be reused by this request: compute the prefix anew.

    Reasons: unknown, not_approved, past_ttl, tenant_differs.
    """


class KvRefusedError(KvLeaseError):
    """KV that came does not belong to the request: it is discarded and the request rejected.

    Reasons: no_tenant, no_request_id, no_creation_time, tenant_differs, request_id_differs,
    creation_time_differs, lease_expired.
    """

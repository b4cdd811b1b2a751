"""The gate of the decode side: KV is used only with the label of the request that waits for it."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from .book import Book
from .errors import KvRefusedError
from .lease import End, Lease

_FIELDS: Final = (
    ("tenant", str, "no_tenant", "tenant_differs"),
    ("request_id", str, "no_request_id", "request_id_differs"),
    ("created_at_ms", int, "no_creation_time", "creation_time_differs"),
)
"""What a label holds, its type, and the reasons to refuse one without or with another."""

DETAIL: Final = "kv_mismatch"
"""Detail of the rejection of a request whose KV was not its own."""


class Gate:
    """Compares labels with leases. `mismatches` counts what was refused, by reason."""

    def __init__(self, book: Book) -> None:
        self.mismatches: Counter[str] = Counter()
        self._book = book

    def admit(self, lease: Lease, label: Mapping[str, object] | None) -> None:
        """Take the KV that has come into the block of a lease, whose owner waits for it.

        If its label lacks or contradicts tenant, request id or creation time, or its sender may
        have freed it, the block is invalidated, the request rejected, and KvRefusedError raised.
        """
        lease.check()
        given = {} if label is None else label
        reason = self._fault(lease, given)
        if reason is None:
            self._book.transferred(lease, detail="received")
            return
        self.mismatches[reason] += 1
        self._book.mismatched(lease, reason, other_tenant=_other_tenant(lease, given))
        self._book.end(lease, End.REJECTED, detail=DETAIL)
        raise KvRefusedError(
            reason, f"KV for request {lease.owner.request_id} was refused: {reason}"
        )

    def _fault(self, lease: Lease, label: Mapping[str, object]) -> str | None:
        for name, kind, absent, differs in _FIELDS:
            value = label.get(name)
            if type(value) is not kind or not value:
                return absent
            if value != getattr(lease.owner, name):
                return differs
        expires = label.get("expires_at_ms")
        if isinstance(expires, int) and self._book.now_ms() >= expires:
            return "lease_expired"
        return None


def _other_tenant(lease: Lease, label: Mapping[str, object]) -> str | None:
    """Return the tenant that a label names, if a record can hold it and it is not the lease's."""
    tenant = label.get("tenant")
    if not isinstance(tenant, str) or tenant == lease.owner.tenant:
        return None
    return tenant if 0 < len(tenant) <= 512 and tenant.isprintable() else None

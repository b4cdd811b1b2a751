"""A lease: one request's hold on one KV block, which ends by invalidating it whatever happens."""

import enum
from types import TracebackType
from typing import Protocol, Self

from .errors import LeaseEndedError
from .events import Label, Owner


class End(enum.StrEnum):
    """How a lease ended; the word is the detail of the release."""

    FINISHED = "finished"
    REJECTED = "rejected"
    TIMED_OUT = "timed_out"
    CANCELLED = "cancelled"
    EXCEPTION = "exception"


class Keeper(Protocol):
    """Who keeps account of leases."""

    def now_ms(self) -> int:
        """Return the time, in ms since 1970."""
        ...

    def transferred(self, lease: "Lease", *, detail: str | None = None) -> None:
        """Write down that the KV under a lease is handed over or has come."""
        ...

    def end(self, lease: "Lease", how: End, *, detail: str | None = None) -> None:
        """End a lease; nothing if it is over."""
        ...


class Lease:
    """Use it in a `with` statement. Its block is invalidated when the statement is left.

    That is so after an exception, a cancellation or a time-out, and after `reject`. Left in order,
    it is kept instead if `keep` was called. Any method raises LeaseEndedError once it is over.
    """

    def __init__(
        self, keeper: Keeper, owner: Owner, block: str, *, expires_at_ms: int, is_reuse: bool
    ) -> None:
        self.owner = owner
        self.block = block
        self.expires_at_ms = expires_at_ms
        self.is_reuse = is_reuse
        self.ended: End | None = None
        self.keep_ms: int | None = None
        self._keeper = keeper

    def __enter__(self) -> Self:
        self.check()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self._leave()
        elif issubclass(kind, TimeoutError):
            self._keeper.end(self, End.TIMED_OUT)
        elif issubclass(kind, Exception):
            self._keeper.end(self, End.EXCEPTION)
        else:  # a cancelled task, a generator that is closed, an interrupt
            self._keeper.end(self, End.CANCELLED)

    def check(self) -> None:
        """Raise LeaseEndedError if the lease is over; past its deadline it ends here."""
        if self.ended is None and self._keeper.now_ms() >= self.expires_at_ms:
            self._keeper.end(self, End.TIMED_OUT)
        if self.ended is not None:
            raise LeaseEndedError(self.ended.value, f"the KV lease is over: {self.ended.value}")

    def transfer(self) -> Label:
        """Write down that the KV is sent; return the label to send with it."""
        self.check()
        self._keeper.transferred(self)
        return Label(
            tenant=self.owner.tenant,
            request_id=self.owner.request_id,
            created_at_ms=self.owner.created_at_ms,
            expires_at_ms=self.expires_at_ms,
        )

    def keep(self, ttl_ms: int) -> None:
        """Approve that requests of the same tenant reuse the block for so long after its end."""
        self.check()
        if ttl_ms <= 0:
            raise ValueError("a block is kept for a time above 0 ms")
        self.keep_ms = ttl_ms

    def reject(self) -> None:
        """The request is rejected: its KV is invalidated now."""
        self.check()
        self._keeper.end(self, End.REJECTED)

    def _leave(self) -> None:
        """End in order. What was rejected meanwhile is over; what is overdue may not be used."""
        if self.ended is End.REJECTED:
            return
        self.check()
        self._keeper.end(self, End.FINISHED)

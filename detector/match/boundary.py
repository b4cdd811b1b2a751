"""Which party inside the isolation boundary a sequence belongs to."""

from typing import Literal

from detector.model import Sequence

Boundary = Literal["account", "tenant", "end_user", "session"]


def party_name(sequence: Sequence, boundary: Boundary) -> str:
    """Return the name of the party that a sequence is of: equal names may share content.

    A sequence without the inner name that the boundary asks for is its tenant's as a whole.
    """
    inner = None if boundary == "tenant" else getattr(sequence, boundary)
    if boundary == "account":
        return f"account\0{inner}" if inner else sequence.tenant
    return f"{sequence.tenant}\0{inner}" if inner else sequence.tenant

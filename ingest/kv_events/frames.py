"""Messages of a publisher of KV events, in their order."""

from collections import Counter
from typing import NamedTuple, Protocol


class Frame(NamedTuple):
    """One message in its place. `is_after_loss` says that what was known before is out of date."""

    payload: bytes
    is_after_loss: bool = False


class Frames(Protocol):
    """Where messages come from."""

    counts: Counter[str]
    """Messages by what became of them."""

    def poll(self, now_s: float) -> list[Frame]:
        """Return the messages that have come, in order; never waits."""
        ...

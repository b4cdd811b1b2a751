"""How much may be sent and not yet acknowledged: a bound that makes senders wait."""

import threading
from typing import Final

MESSAGE_BYTES: Final = 1024
"""What a message under way costs beside its own bytes: its future, its callbacks, its headers."""


class InFlight:
    """Counts bytes under way, up to `most`; for any number of threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used = 0
        self._changed = threading.Condition()

    @property
    def used(self) -> int:
        """Bytes under way now, with what each message costs."""
        return self._used

    def enter(self, size: int) -> None:
        """Wait for room and take it. What is larger than the bound goes when nothing else is."""
        cost = size + MESSAGE_BYTES
        with self._changed:
            self._changed.wait_for(lambda: not self._used or self._used + cost <= self._most)
            self._used += cost

    def leave(self, size: int) -> None:
        """Give back what a message of `size` bytes took."""
        with self._changed:
            self._used -= size + MESSAGE_BYTES
            self._changed.notify_all()

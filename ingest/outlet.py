"""Where a sidecar's messages go: the contract of an outlet, which a publisher alone fulfils too.

A message is safe once the broker has acknowledged it, or once it lies on a disk that a crash does
not empty. What the sidecar may forget of its input depends on nothing else.
"""

from concurrent.futures import Future
from typing import Final, Protocol

from ingest.broker import Message

SPOOLED: Final = -1
"""What the future of a message gives in place of an offset when it is safe on disk only."""


class Outlet(Protocol):
    """Takes messages in order for each key; bounded in what it holds. Any thread may send."""

    def send(self, message: Message) -> "Future[int]":
        """Take a message; the future gives its offset, or SPOOLED, once it is safe.

        It raises BrokerError when the message is not safe: it was refused, or there was no room.
        Whoever sent it keeps it then and sends it again, or counts it as lost. An outlet that waits
        for a broker in here says so in its own contract; the sidecar reads nothing meanwhile.
        """
        ...

    def flush(self, timeout_s: float) -> None:
        """Wait until everything sent is safe; raises BrokerError if it is not in time."""
        ...

    def close(self) -> None:
        """Send what can be sent within a few seconds, and let go of files and connections."""
        ...

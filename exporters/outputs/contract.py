"""What every output promises: one call sends one notification, and one of three answers comes back.

    Delivered   the receiver has it: never sent again
    Retry       it may not have arrived: sent again under the same id
    Rejected    the receiver will never take it: not sent again, and told

`answer` is for the journal: a status code or fixed words, never what the receiver wrote.
"""

from typing import NamedTuple, Protocol

from exporters.outputs.notification import Notification


class Delivered(NamedTuple):
    """The receiver has acknowledged the notification."""

    answer: str


class Retry(NamedTuple):
    """The receiver may not have it. `after_ms` is how long it asked not to be called, if it did."""

    answer: str
    after_ms: int | None = None


class Rejected(NamedTuple):
    """The receiver refuses it for good. `gone`: it wants nothing any more, as 410 says."""

    answer: str
    gone: bool = False


Outcome = Delivered | Retry | Rejected


class Output(Protocol):
    """A destination of notifications. One thread at a time uses it."""

    @property
    def name(self) -> str:
        """The name that the settings give it; unique."""
        ...

    @property
    def resend_ms(self) -> int | None:
        """How often it must be told again what is still open; None if once is enough."""
        ...

    def send(self, notification: Notification, *, at_ms: int) -> Outcome:
        """Send it and say how that went; never raises for what a receiver or a network does.

        Takes no longer than the output's time-out. `at_ms` is the time of sending.
        """
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...

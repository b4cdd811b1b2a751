"""A publisher that may be away: made in the background, given up when it fails, made again."""

import threading
import time
from collections.abc import Callable
from typing import Final

from detector.errors import BleedwatchError, BrokerError
from ingest.broker import Publisher

FIRST_WAIT_S: Final = 1.0
LONGEST_WAIT_S: Final = 15.0
"""A broker that is back is used after this at the latest, and after the time to connect."""

CLOSE_S: Final = 10.0
"""How long closing waits for an attempt that is being made: a publisher needs 5 s to close."""


class Connection:
    """Gives the publisher while there is one. Never waits; `on_change` is told of news.

    Attempts run in threads of their own, one at a time; the publisher before is closed first, so
    two never send at once. Waits double from 1 s to 15 s while attempts fail.
    """

    def __init__(
        self,
        connect: Callable[[], Publisher],
        *,
        on_change: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._connect = connect
        self._on_change = on_change
        self._clock = clock
        self._lock = threading.Lock()
        self._publisher: Publisher | None = None
        self._attempt: threading.Thread | None = None
        self._wait_s = FIRST_WAIT_S
        self._next_s = clock()
        self._is_closed = False
        self.problem: BleedwatchError | None = None
        """Why there is none; None once a message has been acknowledged."""
        self.fatal: BleedwatchError | None = None
        """What no waiting helps against, such as a wrong setting."""

    def publisher(self) -> Publisher | None:
        """Return the publisher, or None; begins an attempt if it is time."""
        with self._lock:
            if self._publisher is None and self._is_due():
                self._begin(None)
            return self._publisher

    def works(self) -> None:
        """Hear that a message was acknowledged."""
        self.problem = None
        self._wait_s = FIRST_WAIT_S

    def lost(self, error: BleedwatchError) -> None:
        """Give the publisher up: it has failed a message."""
        with self._lock:
            self.problem = error
            self._next_s = self._clock() + self._wait_s
            self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
            publisher, self._publisher = self._publisher, None
            if publisher is not None:
                self._begin(publisher)

    def close(self) -> None:
        """Close the publisher; what it has not sent within a few seconds fails its futures."""
        with self._lock:
            self._is_closed = True
            attempt, publisher, self._publisher = self._attempt, self._publisher, None
        if publisher is not None:
            publisher.close()
        if attempt is not None:
            attempt.join(CLOSE_S)

    def _is_due(self) -> bool:
        return (
            self._attempt is None
            and not self._is_closed
            and self.fatal is None
            and self._clock() >= self._next_s
        )

    def _begin(self, before: Publisher | None) -> None:
        self._attempt = threading.Thread(
            target=self._try, args=(before,), name="connect", daemon=True
        )
        self._attempt.start()

    def _try(self, before: Publisher | None) -> None:
        """Close the publisher before, or make one."""
        made: Publisher | None = None
        try:
            if before is not None:
                before.close()
            else:
                made = self._connect()
        except BrokerError as error:
            self.problem = error
            self._next_s = self._clock() + self._wait_s
            self._wait_s = min(2 * self._wait_s, LONGEST_WAIT_S)
        except BleedwatchError as error:
            self.problem = self.fatal = error
        finally:
            with self._lock:
                self._attempt = None
                is_late = self._is_closed
                self._publisher = None if is_late else made
            if made is not None and is_late:
                made.close()
            self._on_change()

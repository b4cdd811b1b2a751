"""When a failed notification is tried again: exponential backoff with jitter."""

from typing import Final

FIRST_MS: Final = 1_000
LONGEST_MS: Final = 60_000
"""An alert is to arrive within seconds of its receiver's return, and a request a minute for each
incident burdens no receiver; the circuit breaker bounds them all together."""

_MOST_DOUBLINGS: Final = 16


def backoff_ms(attempts: int, chance: float) -> int:
    """Return how long to wait after so many failed attempts, 1 or more.

    `chance` is 0 to 1, drawn anew each time: the wait is between a half and the whole of what
    doubling gives, so that those which failed together do not come back together.
    """
    doubled = FIRST_MS * 2 ** min(attempts - 1, _MOST_DOUBLINGS)
    return int(min(doubled, LONGEST_MS) * (0.5 + chance / 2))

"""How much all requests may hold together: taken before it is used, given back when it is not."""

import threading


class Room:
    """Counts bytes up to `most`. Any thread may take and give."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._taken = 0

    @property
    def taken(self) -> int:
        """Bytes that are taken now."""
        return self._taken

    def take(self, size: int) -> bool:
        """Take so much, or nothing if there is not so much left; return which."""
        with self._lock:
            if self._taken + size > self._most:
                return False
            self._taken += size
            return True

    def give(self, size: int) -> None:
        """Give back so much."""
        with self._lock:
            self._taken -= size

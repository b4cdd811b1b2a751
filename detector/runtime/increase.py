"""Counters of engines read as increases: a counter that falls was started anew."""


class Increase:
    """One counter. Give its values in the order of time; None is a value that was not told."""

    def __init__(self) -> None:
        self._last: int | None = None

    def add(self, value: int | None) -> int:
        """Return by how much it has grown since the last known value, 0 for the first.

        What was counted before we looked is old. A counter below its last value began at zero when
        the engine restarted, so all that it shows is new.
        """
        if value is None:
            return 0
        last, self._last = self._last, value
        if last is None:
            return 0
        return value - last if value >= last else value

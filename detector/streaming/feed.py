"""Records as a log is written: read in a thread, with a moment to breathe when none come."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

READ_AHEAD: Final = 256
"""Records that are read before they are asked for: a few messages' worth."""


class _End:
    """The input has ended."""


_R = TypeVar("_R")


def followed(
    records: Iterable[_R], *, tick_s: float, stopped: Callable[[], bool]
) -> Iterator[_R | None]:
    """Yield records as they are read, and None whenever none came for `tick_s`.

    They are read in a thread of their own, which is left behind if `stopped` says to stop while it
    waits for input. Raises what reading raises.
    """
    waiting: queue.Queue[_R | BaseException | _End] = queue.Queue(READ_AHEAD)
    threading.Thread(target=_read, args=(records, waiting), daemon=True).start()
    left: int | None = None
    while left != 0:
        if left is None and stopped():
            left = waiting.qsize()  # what was read by then is given, nothing that comes later
            continue
        try:
            item = waiting.get(timeout=tick_s)
        except queue.Empty:
            yield None
            continue
        left = None if left is None else left - 1
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, _End):
            return
        yield item


def _read(records: Iterable[_R], waiting: "queue.Queue[_R | BaseException | _End]") -> None:
    try:
        for record in records:
            waiting.put(record)
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        waiting.put(error)
    else:
        waiting.put(_End())

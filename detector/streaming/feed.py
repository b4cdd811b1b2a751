"""Sequences as a log is written: read in a thread, with a moment to breathe when none come."""

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from detector.model import Sequence

READ_AHEAD: Final = 256
"""Sequences that are read before they are asked for: a few messages' worth."""


class _End:
    """The input has ended."""


_Item = Sequence | BaseException | _End


def followed(
    sequences: Iterable[Sequence], *, tick_s: float, stopped: Callable[[], bool]
) -> Iterator[Sequence | None]:
    """Yield sequences as they are read, and None whenever none came for `tick_s`.

    They are read in a thread of their own, which is left behind if `stopped` says to stop while it
    waits for input. Raises what reading raises.
    """
    waiting: queue.Queue[_Item] = queue.Queue(READ_AHEAD)
    threading.Thread(target=_read, args=(sequences, waiting), daemon=True).start()
    while not stopped():
        try:
            item = waiting.get(timeout=tick_s)
        except queue.Empty:
            yield None
            continue
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, _End):
            return
        yield item


def _read(sequences: Iterable[Sequence], waiting: "queue.Queue[_Item]") -> None:
    try:
        for sequence in sequences:
            waiting.put(sequence)
    except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
        waiting.put(error)
    else:
        waiting.put(_End())

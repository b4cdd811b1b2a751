"""A first signal to stop is noted and obeyed in order; a second one ends the program as usual."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Which signal has asked to stop, None while none has."""

    def __init__(self) -> None:
        self.signal: int | None = None

    def __call__(self) -> bool:
        """True once a signal has come."""
        return self.signal is not None

    @property
    def exit_code(self) -> int | None:
        """What the program ends with because of the signal, None without one."""
        return None if self.signal is None else 128 + self.signal


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Note the first signal instead of ending at once; what was in force before comes back.

    A signal that is ignored, as SIGHUP is under nohup, stays ignored. Outside the main thread,
    which gets no signals, nothing changes.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = {number: signal.getsignal(number) for number in SIGNALS}

    def note(number: int, _frame: FrameType | None) -> None:
        stop.signal = number
        restore()

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield stop
    finally:
        restore()

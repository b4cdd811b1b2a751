"""A live input that is told to stop still gives what it has read."""

import threading
from collections.abc import Iterator

from detector.streaming.feed import followed


def test_what_was_read_before_the_stop_is_given() -> None:
    read_all, never = threading.Event(), threading.Event()

    def records() -> Iterator[int]:
        yield from range(100)
        read_all.set()
        never.wait()  # an input that is still open

    seen = []
    for record in followed(records(), tick_s=0.05, stopped=read_all.is_set):
        if record is not None:
            seen.append(record)
            read_all.wait(5)
    never.set()
    assert seen == list(range(100))

"""Messages for a spool, and what lies in it."""

from pathlib import Path
from typing import Any

from ingest.broker import Message
from ingest.record_headers import EventTimes, headers
from ingest.spool import Spool
from ingest.spool_settings import SpoolSettings

TOPIC = "sequences"


def message(number: int, *, size: int = 1_000, topic: str = TOPIC) -> Message:
    """Return a message that is told apart by its number; its event time is the number, too."""
    value = number.to_bytes(8, "big").ljust(size, b"\x5a")
    stated = headers("application/msgpack", "sequence-batch/1", EventTimes(number, number + 1))
    return Message(topic, value, key=b"pool-%d" % (number % 3), headers=stated)


def number_of(given: Message) -> int:
    """Return the number of a message."""
    assert given.value is not None
    return int.from_bytes(given.value[:8], "big")


def opened(folder: Path, **settings: Any) -> Spool:
    """Open the spool of a folder; it does not wait for the disk unless told to."""
    return Spool(str(folder), SpoolSettings(**{"sync": False, **settings}))


def filled(folder: Path, numbers: range, **settings: Any) -> Spool:
    """Open a spool and put messages into it."""
    spool = opened(folder, **settings)
    for number in numbers:
        spool.append(message(number))
    spool.sync()
    return spool


def read(spool: Spool) -> list[int]:
    """Read to the end; nothing is acknowledged."""
    found = []
    while (given := spool.next()) is not None:
        found.append(number_of(given))
    return found

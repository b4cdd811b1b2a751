"""What Kafka's client libraries log, fit to be read: no secrets, no floods, no tracebacks.

At debug level kafka-python logs SASL answers, aiokafka and Faust whole records. Whoever makes a
client calls `hold_client_logs` before.
"""

import logging
import math
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Final

LIBRARIES: Final = ("kafka", "aiokafka", "faust", "mode")
"""The loggers at the root of each library."""

_log = logging.getLogger(__name__)

FLOOR: Final = logging.INFO
"""The lowest level that holds neither secrets nor records."""


def hold_client_logs() -> None:
    """Raise every logger of the libraries to INFO, those below the roots too; higher ones stay.

    Holds whatever level the process has or gets later, unless somebody sets one of these loggers.
    """
    for name in LIBRARIES:
        root = logging.getLogger(name)
        root.setLevel(max(root.getEffectiveLevel(), FLOOR))
    for name in list(logging.root.manager.loggerDict):
        logger = logging.getLogger(name)
        if name.partition(".")[0] in LIBRARIES and logging.NOTSET < logger.level < FLOOR:
            logger.setLevel(FLOOR)


def keep_to_errors(library: str) -> None:
    """Let a library's log lines go no further than to who listens to its errors: they come as ours.

    Its level stays, since `ingest.kafka_errors` learns from these lines why a connection failed.
    """
    logger = logging.getLogger(library)
    logger.propagate = False
    if not any(isinstance(one, logging.NullHandler) for one in logger.handlers):
        logger.addHandler(logging.NullHandler())


REPEAT_S: Final = 30.0
"""How long a repeated line of a library is held back: a broker that is away gives 80 a second."""

COMING: Final = "CoordinatorNotAvailable"
"""What clients say until a new cluster has made its topic of offsets: no fault for REPEAT_S."""


class Seldom(logging.Filter):
    """Passes a line of a client library once in REPEAT_S, by where it is written, and no traceback.

    A cluster's coordinator may be absent for the first REPEAT_S. Lines of ours always pass, whole.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._told: dict[tuple[str, int], float] = {}
        self._began_s = clock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a line is to be written."""
        if record.name.partition(".")[0] not in (*LIBRARIES, "asyncio"):
            return True
        at, now_s = (record.pathname, record.lineno), self._clock()
        if now_s - self._told.get(at, -math.inf) < REPEAT_S:
            return False
        if now_s - self._began_s < REPEAT_S and COMING in record.getMessage():
            return False
        self._told[at] = now_s
        record.exc_info = record.exc_text = None
        return True


def brief_logs() -> None:
    """Log warnings to stderr for people: neither floods nor tracebacks of client libraries."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.addFilter(Seldom())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    threading.excepthook = _told
    sys.unraisablehook = _told


def _told(error: "threading.ExceptHookArgs | sys.UnraisableHookArgs") -> None:
    """Log what ended a thread, or could not be let go of: the kind and the place, no values."""
    frames = traceback.extract_tb(error.exc_traceback)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    _log.warning("a thread or the end of an object failed: %s%s", error.exc_type.__name__, place)

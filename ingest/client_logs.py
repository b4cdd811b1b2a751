"""Keeps what Kafka's client libraries log at debug level out of every log: passwords and records.

kafka-python logs SASL answers, aiokafka and Faust whole records. Whoever makes a client calls
`hold_client_logs` before.
"""

import logging
from typing import Final

LIBRARIES: Final = ("kafka", "aiokafka", "faust", "mode")
"""The loggers at the root of each library."""

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

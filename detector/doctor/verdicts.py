"""What a check says: of what, how bad, what was found, and the next step."""

import enum
from typing import NamedTuple


class Level(enum.StrEnum):
    """How bad it is. `unknown`: it could not be looked at, which the finding explains."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    ERROR = "error"


class Verdict(NamedTuple):
    """One answer of a check. Neither text may hold token ids, text of a log or secrets."""

    level: Level
    subject: str
    found: str
    next_step: str = ""

"""What a pattern file holds: log messages that are events, as data that is checked when read.

A message is compared from its start, never searched for: prompts stand in logs, and a prompt that
quotes an engine must not be an event.
"""

import re
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from detector.settings import Section
from ingest.safe_pattern import compile_safe
from ingest.schema_records import EventKind

HEAD_CHARS: Final = 4
"""Messages are told apart by so many first characters; the shortest start is `req `."""

GROUPS: Final = frozenset({"request_id", "prompt_tokens", "limit_tokens"})
"""What a pattern may take out of a message: fields of an event."""

_WORD: Final = "^[a-z][a-z0-9_]{0,63}$"


class SignalPattern(Section):
    """One message of an engine and the event that it stands for.

    A message is meant if it begins with `start`, holds `contains` and matches `match` from its
    start; the source file or logger that wrote it has `place` in its name. With `exception` the
    message may also stand behind the name of an exception, as a traceback ends.
    """

    name: Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,63}$", description="Unique.")]
    kind: EventKind
    detail: Annotated[str, Field(pattern=_WORD)] | None = None
    start: Annotated[str, Field(min_length=HEAD_CHARS, max_length=256)]
    contains: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    match: str | None = None
    place: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    exception: bool = False

    @field_validator("start", "contains", "place")
    @classmethod
    def _is_ascii(cls, text: str | None) -> str | None:
        if text is not None and not (text.isascii() and text.isprintable()):
            raise ValueError("must be printable ASCII")
        return text

    @field_validator("match")
    @classmethod
    def _is_safe(cls, pattern: str | None) -> str | None:
        if pattern is not None:
            unknown = compile_safe(pattern).groupindex.keys() - GROUPS
            if unknown:
                known = ", ".join(sorted(GROUPS))
                raise ValueError(f"may have the groups {known}, not {', '.join(sorted(unknown))}")
        return pattern

    @property
    def compiled(self) -> re.Pattern[str] | None:
        """The regular expression, which must match from the start of the message."""
        return None if self.match is None else compile_safe(self.match)


class PatternFile(Section):
    """The patterns of one engine, in the order in which they are tried."""

    version: Literal[1]
    engine: Annotated[str, Field(pattern=_WORD)]
    patterns: Annotated[tuple[SignalPattern, ...], Field(max_length=512)]

    @model_validator(mode="after")
    def _has_unique_names(self) -> Self:
        if not self.patterns:
            raise ValueError("`patterns` must not be empty")
        names = [one.name for one in self.patterns]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"has patterns of the same name: {', '.join(twice)}")
        return self

"""What every reader yields: one request with its raw token ids, before anything is hashed.

Raw ids live only between a reader and the door (`ingest/door.py`), which hashes them. Nothing here
prints, logs or stores them: the repr shows lengths only.
"""

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest log line read whole: a 2-million-token record is about 14 MB of decimal ids."""


class Loss(enum.StrEnum):
    """Why the ids of one side of a request are missing or incomplete."""

    NOT_LOGGED = "not_logged"
    TRUNCATED = "truncated"
    DELTAS_LOST = "deltas_lost"
    NO_OUTPUT_LINE = "no_output_line"
    NEVER_FINISHED = "never_finished"
    TEXT_ONLY = "text_only"


@dataclass(slots=True, kw_only=True)
class RawRequest:
    """One request as an engine or a gateway logged it.

    `prompt_ids`/`response_ids` are None when the log holds none; a set `*_loss` says why they are
    missing or incomplete. Times are milliseconds since the epoch (or of the file's own event
    time); `ended_at_ms` is None when the log never said. `identity` holds what tenant rules may
    look at, by lower-case name: "header:x-tenant-id", "user", "cache_salt", "session_id",
    "extra_key", "api_key_hash", "tenant", or any mapped field. `first_line` and `last_line` are the
    numbers of the first and the last line that tell of it; a body line that came ahead counts.
    `roles` are those of the messages that the prompt was made of, where the source has them.
    """

    request_id: str
    started_at_ms: int
    ended_at_ms: int | None = None
    prompt_ids: list[int] | None = None
    response_ids: list[int] | None = None
    prompt_loss: Loss | None = None
    response_loss: Loss | None = None
    engine: str | None = None
    kv_pool: str | None = None
    model: str | None = None
    account: str | None = None
    parent_id: str | None = None
    session: str | None = None
    end_user: str | None = None
    finish_reason: str | None = None
    status: int | None = None
    reported_prompt_tokens: int | None = None
    gateway_cache_hit: bool = False
    identity: dict[str, str] = field(default_factory=dict)
    roles: tuple[str, ...] | None = None
    first_line: int = 0
    last_line: int = 0

    def __repr__(self) -> str:
        """Lengths only: raw ids must not reach a log or a traceback."""
        prompt = "none" if self.prompt_ids is None else len(self.prompt_ids)
        response = "none" if self.response_ids is None else len(self.response_ids)
        return f"RawRequest({self.request_id!r}, prompt={prompt}, response={response})"


class CoverageSink(Protocol):
    """Where readers and the door count what they saw; the counts must add up.

    A reader counts every record of its input exactly once: `read` when it yields the request,
    `broken` when the record fails a bound, `ignored` when it is none of ours (a health check, a
    log line of another kind). The door counts each request it was given at most once more:
    `unmapped`, or `broken` without a line. Reasons are fixed words, used as counter labels.
    """

    lines: int
    """Lines that a reader was given."""

    def read(self, request: RawRequest) -> None:
        """Count a request that is about to be yielded, with its losses; keeps no ids."""
        ...

    def broken(self, reason: str, line: int | None = None) -> None:
        """Count a record that fails a bound; `line` is its 1-based line, None when unknown."""
        ...

    def ignored(self, reason: str) -> None:
        """Count a record that was understood and is of no interest."""
        ...

    def unmapped(self) -> None:
        """Count a request that no tenant rule matched; it is dropped."""
        ...


class Source(Protocol):
    """A reader over one file or stream: iterate it once, then read its coverage.

    Or hand it line after line yourself, as somebody does who follows a file that grows.
    """

    def __iter__(self) -> Iterator[RawRequest]:
        """Yield requests roughly in the order they ended; never raises for a bad record."""
        ...

    def take(self, number: int, raw: bytes) -> Iterable[RawRequest]:
        """Read one line; yield the requests that it ends. Numbers go up, by any steps."""
        ...

    def end(self, *, is_read_again: bool = False) -> Iterator[RawRequest]:
        """Yield what is still unfinished: no line comes any more.

        `is_read_again` says that somebody reads on later from the oldest line that is needed:
        then nothing is lost with what is given up here.
        """
        ...

    def oldest_line(self) -> int | None:
        """Return the number of the first line that is still needed, None when none is.

        Whoever reads again from there on, and passes over requests that it has had, misses none.
        """
        ...

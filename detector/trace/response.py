"""The response to trace: found by its request id, its parts put together, its own prompt beside."""

from typing import Final, NamedTuple

import numpy as np

from detector.errors import InputError, UsageError
from detector.index.sequences import RequestKey, request_key
from detector.model import PART_OVERLAP, Hashes, Kind, Sequence

MAX_SAME_ID: Final = 64
"""Requests of one id that are held: the latest. Engines accept repeated ids."""


class Wanted(NamedTuple):
    """Which request to trace; `tenant` and `kv_pool` tell requests of one id apart."""

    request_id: str
    tenant: str | None = None
    kv_pool: str | None = None


class Response(NamedTuple):
    """A response as a whole. `first` is its first part, which has the names and times of all."""

    first: Sequence
    tokens: Hashes
    prompt: tuple[Sequence, ...]

    def __repr__(self) -> str:
        """Metadata only, as of a sequence."""
        return f"Response({self.first!r}, tokens={len(self.tokens)})"


class Gathering:
    """Collects the parts of the wanted request from sequences in any order."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._requests: dict[RequestKey, list[Sequence]] = {}

    def is_wanted(self, tenant: str, request_id: str, kv_pool: str) -> bool:
        """Tell whether a sequence with these names belongs to the request."""
        wanted = self._wanted
        return (
            request_id == wanted.request_id
            and wanted.tenant in (None, tenant)
            and wanted.kv_pool in (None, kv_pool)
        )

    def add(self, sequence: Sequence) -> None:
        """Take a sequence, whosever it is."""
        if not self.is_wanted(sequence.tenant, sequence.request_id, sequence.kv_pool):
            return
        parts = self._requests.setdefault(request_key(sequence), [])
        if not any(one.kind is sequence.kind and one.part == sequence.part for one in parts):
            parts.append(sequence)
        if len(self._requests) > MAX_SAME_ID:
            self._requests.pop(min(self._requests, key=lambda key: key[2]))

    def response(self) -> Response:
        """Return the response, of several with one tenant and id the latest.

        Raises InputError when there is none with token ids, UsageError when tenants or pools share
        the id.
        """
        answered = [
            parts for parts in self._requests.values() if any(map(_is_response_text, parts))
        ]
        if not answered:
            raise self._missing()
        self._check_one_owner(answered)
        parts = max(answered, key=lambda each: each[0].started_at_ms)
        texts = sorted(filter(_is_response_text, parts), key=lambda one: one.part)
        if [one.part for one in texts] != list(range(texts[0].parts)):
            raise InputError(
                f"only {len(texts)} of the {texts[0].parts} parts of the response are kept",
                where=f"request {self._wanted.request_id}",
                hint="raise --since if its beginning is older",
            )
        pieces = [texts[0].token_hashes, *(one.token_hashes[PART_OVERLAP:] for one in texts[1:])]
        prompt = tuple(one for one in parts if one.kind is Kind.PROMPT)
        return Response(texts[0], np.concatenate(pieces), prompt)

    def _missing(self) -> InputError:
        where = f"request {self._wanted.request_id}"
        if self._requests:
            return InputError(
                "the request was seen, but no token ids of its response",
                where=where,
                hint="bleedwatch doctor sidecar names the flag that logs them",
            )
        return InputError(
            "no such request in what is retained",
            where=where,
            hint="check the id, --tenant and --kv-pool, and how far back --since reaches",
        )

    def _check_one_owner(self, answered: list[list[Sequence]]) -> None:
        for what, flag in (("tenant", "--tenant"), ("kv_pool", "--kv-pool")):
            names = sorted({getattr(parts[0], what) for parts in answered})
            if len(names) > 1:
                raise UsageError(
                    f"{len(names)} responses have this id, each with another {what}",
                    where=f"request {self._wanted.request_id}",
                    hint=f"name one with {flag}: {', '.join(names[:8])}",
                )


def _is_response_text(sequence: Sequence) -> bool:
    return sequence.kind is Kind.RESPONSE and len(sequence.token_hashes) > 0

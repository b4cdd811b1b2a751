"""Says which ten-token runs of the traffic only one tenant has: planted truth is then certain."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from detector.model import TenantId
from detector.sample.language import Ids
from detector.sample.traffic import SampleRequest

RUN = 10
"""Tokens of the shortest run that counts as content."""

MIN_DISTINCT = 6
"""A run with fewer distinct tokens is low complexity: a detector may mask it."""

_SHARED = -1
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9)


class Sharing:
    """The owner of every ten-token run in some requests, prompts and answers alike."""

    def __init__(self, requests: Iterable[SampleRequest]) -> None:
        self._tenants: dict[TenantId, int] = {}
        digests: list[NDArray[np.uint64]] = []
        owners: list[NDArray[np.int32]] = []
        for request in requests:
            owner = self._tenants.setdefault(request.tenant, len(self._tenants))
            for ids in (request.prompt_ids, request.response_ids):
                found = np.unique(_digests(ids))
                digests.append(found)
                owners.append(np.full(len(found), owner, dtype=np.int32))
        every, owner_of = np.concatenate(digests), np.concatenate(owners)
        order = np.argsort(every, kind="stable")
        every, owner_of = every[order], owner_of[order]
        firsts = np.flatnonzero(np.concatenate(([True], every[1:] != every[:-1])))
        lowest = np.minimum.reduceat(owner_of, firsts)
        highest = np.maximum.reduceat(owner_of, firsts)
        self._digests = every[firsts]
        self._owners = np.where(lowest == highest, lowest, _SHARED)

    def unshared_starts(self, tenant: TenantId, ids: Ids, length: int) -> list[int]:
        """Where in `ids`, a piece of `tenant`'s own traffic, a run of `length` tokens may be taken.

        Every ten tokens of such a run occur with no other tenant and have `MIN_DISTINCT`
        distinct ids; so a detector can find all of it and nothing else explains it.
        """
        if len(ids) < length or length < RUN:
            return []
        digests = _digests(ids)
        places = np.minimum(np.searchsorted(self._digests, digests), len(self._digests) - 1)
        own = self._owners[places] == self._tenants.get(tenant, _SHARED - 1)
        good = (self._digests[places] == digests) & own & (_distinct(ids) >= MIN_DISTINCT)
        totals = np.concatenate(([0], np.cumsum(good)))
        windows = length - RUN + 1
        full = totals[windows:] - totals[:-windows] == windows
        return [int(start) for start in np.flatnonzero(full)]


def _digests(ids: Ids) -> NDArray[np.uint64]:
    """One 64-bit value for every `RUN` consecutive ids; empty for a shorter sequence."""
    mixed = (np.asarray(ids, dtype=np.uint64) + np.uint64(1)) * _BASE
    mixed ^= mixed >> np.uint64(29)
    mixed *= _MIX
    count = max(0, len(ids) - RUN + 1)
    total = np.zeros(count, dtype=np.uint64)
    for offset in range(RUN):
        total = total * _BASE + mixed[offset : offset + count]
    return total ^ (total >> np.uint64(31))


def _distinct(ids: Ids) -> NDArray[np.int64]:
    """Distinct ids in every `RUN` consecutive ones."""
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(ids), RUN)
    ordered = np.sort(windows, axis=1)
    changes: NDArray[np.int64] = np.sum(ordered[:, 1:] != ordered[:, :-1], axis=1, dtype=np.int64)
    return changes + 1

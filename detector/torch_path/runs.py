"""The window's fingerprints on a device, as sorted runs that are searched in bulk.

A batch is sorted once and becomes a run; runs of like size are merged, so that n entries lie in
about log2(n / batch) runs. Expired entries go with their whole run or at the next merge; until then
no match reports them.
"""

from typing import NamedTuple

import torch


class Matches(NamedTuple):
    """Pairs of equal keys: `query` is the position in the batch asked for, `entry` its number."""

    query: torch.Tensor
    entry: torch.Tensor


class _Run(NamedTuple):
    keys: torch.Tensor
    entries: torch.Tensor
    times: torch.Tensor
    newest_ms: int


class WindowRuns:
    """Keys of the window with a number each, for matching a batch against all of them at once."""

    def __init__(self) -> None:
        self._runs: list[_Run] = []
        self._since_ms: int | None = None

    def __len__(self) -> int:
        return sum(len(run.keys) for run in self._runs)

    def insert(
        self, keys: torch.Tensor, entries: torch.Tensor, times_ms: torch.Tensor, *, newest_ms: int
    ) -> None:
        """Add keys with the number and the event time of each, all int64 of one shape.

        `newest_ms` is the latest of the times.
        """
        run = _sorted(keys, entries, times_ms, newest_ms)
        while self._runs and len(self._runs[-1].keys) <= 2 * len(run.keys):
            run = self._merged(self._runs.pop(), run)
        self._runs.append(run)

    def expire(self, before_ms: int) -> None:
        """Forget the entries older than an instant, which only moves on."""
        self._since_ms = before_ms
        self._runs = [run for run in self._runs if run.newest_ms >= before_ms]

    def match(self, keys: torch.Tensor) -> Matches:
        """Return every pair of a key and an entry of that key that has not expired.

        Pairs come run by run, in ascending order of `query` within a run.
        """
        found = [_matches(run, keys, self._since_ms) for run in self._runs]
        if not found:
            none = torch.zeros(0, dtype=torch.int64, device=keys.device)
            return Matches(none, none)
        return Matches(*(torch.cat(parts) for parts in zip(*found, strict=True)))

    def _merged(self, first: _Run, second: _Run) -> _Run:
        keys = torch.cat([first.keys, second.keys])
        entries = torch.cat([first.entries, second.entries])
        times = torch.cat([first.times, second.times])
        if self._since_ms is not None:
            live = times >= self._since_ms
            keys, entries, times = keys[live], entries[live], times[live]
        return _sorted(keys, entries, times, max(first.newest_ms, second.newest_ms))


def _sorted(keys: torch.Tensor, entries: torch.Tensor, times: torch.Tensor, newest_ms: int) -> _Run:
    keys, order = keys.sort(stable=True)
    return _Run(keys, entries[order], times[order], newest_ms)


def _matches(run: _Run, keys: torch.Tensor, since_ms: int | None) -> Matches:
    low = torch.searchsorted(run.keys, keys)
    counts = torch.searchsorted(run.keys, keys, right=True) - low
    total = int(counts.sum())
    queries = torch.arange(len(keys), device=keys.device)
    query = torch.repeat_interleave(queries, counts, output_size=total)
    before = counts.cumsum(0) - counts
    at = torch.arange(total, device=keys.device) + (low - before)[query]
    if since_ms is None:
        return Matches(query, run.entries[at])
    live = run.times[at] >= since_ms
    return Matches(query[live], run.entries[at[live]])

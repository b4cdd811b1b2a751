"""Winnowing and the low-complexity mask on a device, in the steps of `detector/sketch/flat.py`."""

from collections.abc import Callable

import torch

from detector.sketch.flat import LEAST
from detector.sketch.shingle import SHINGLE_TOKENS

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def repetitive(hashes: torch.Tensor, picks: torch.Tensor, min_distinct: int) -> torch.Tensor:
    """Tell which picks have a shingle with fewer than `min_distinct` distinct ones.

    `hashes` have shape (n,), `picks` are positions of shingles; only the picks are looked at.
    """
    offsets = torch.arange(SHINGLE_TOKENS, device=hashes.device)
    return few_distinct(hashes[picks + offsets[:, None]], min_distinct)


def few_distinct(shingle: torch.Tensor, min_distinct: int) -> torch.Tensor:
    """Tell which columns of shape (10, n) hold fewer than `min_distinct` distinct hashes."""
    new = torch.ones_like(shingle, dtype=torch.bool)
    for lag in range(1, SHINGLE_TOKENS):
        new[lag:].logical_and_(shingle[lag:] != shingle[:-lag])
    return new.sum(dim=0) < min_distinct


def flat_winnow(
    keys: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, window: int
) -> torch.Tensor:
    """Return the positions in `keys` that `winnow` picks in each range starts[i]..ends[i].

    The ranges are disjoint and ascending; keys between them are ignored.
    """
    if len(keys) < window:
        return _short(keys, starts, ends, window)
    minima = _sliding(keys, window, torch.minimum)
    minima.masked_fill_(~_inside(len(minima), starts, ends, window), LEAST)
    padded = torch.nn.functional.pad(minima, (window - 1, window - 1), value=LEAST)
    picks = (_sliding(padded, window, torch.maximum) == keys).nonzero().squeeze(1)
    place = torch.searchsorted(starts, picks, right=True) - 1
    first, behind = starts[place], ends[place]
    real = (place >= 0) & (picks < behind) & (behind - first >= window)
    picks = _without_left_of_tie(keys, minima, picks[real], first[real], window)
    short = _short(keys, starts, ends, window)
    return torch.cat([picks, short]).sort().values if len(short) else picks


def _inside(count: int, starts: torch.Tensor, ends: torch.Tensor, window: int) -> torch.Tensor:
    """Tell which of the windows that begin at 0..count lie in one range."""
    whole = (ends - starts >= window).to(torch.int32)
    marks = torch.zeros(count + 1, dtype=torch.int32, device=starts.device)
    marks.scatter_add_(0, starts.clamp(max=count), whole)
    marks.scatter_add_(0, (ends - window + 1).clamp(0, count), -whole)
    return marks[:count].cumsum(0, dtype=torch.int32) > 0


def _without_left_of_tie(
    keys: torch.Tensor, minima: torch.Tensor, picks: torch.Tensor, first: torch.Tensor, window: int
) -> torch.Tensor:
    left, right = picks[:-1], picks[1:]
    key = keys[left]
    tied = (keys[right] == key) & (right - left < window) & (left >= first[1:])
    begins = right - window
    kept = (begins >= first[1:]) & (minima[begins.clamp(min=0)] == key)
    stays = torch.nn.functional.pad(~tied | kept, (0, 1), value=True)
    return picks[stays[: len(picks)]]


def _short(
    keys: torch.Tensor, starts: torch.Tensor, ends: torch.Tensor, window: int
) -> torch.Tensor:
    """Return the rightmost minimum of each range that holds fewer keys than one window."""
    counts = ends - starts
    short = (counts > 0) & (counts < window)
    starts, counts = starts[short], counts[short]
    total = int(counts.sum())
    if not total:
        return starts[:0]
    place = torch.repeat_interleave(
        torch.arange(len(starts), device=keys.device), counts, output_size=total
    )
    begins = counts.cumsum(0) - counts
    at = torch.arange(total, device=keys.device) + (starts - begins)[place]
    least = torch.full_like(starts, -1 - LEAST).scatter_reduce_(0, place, keys[at], "amin")
    rightmost = torch.where(keys[at] == least[place], at, -1)
    return torch.full_like(starts, -1).scatter_reduce_(0, place, rightmost, "amax")


def _sliding(values: torch.Tensor, window: int, step: Step) -> torch.Tensor:
    """Return the minimum or maximum of every `window` neighbours, by doubling, as a new tensor."""
    values, width = values.clone() if window == 1 else values, 1
    while width < window:
        shift = min(width, window - width)
        values = step(values[: len(values) - shift], values[shift:])
        width += shift
    return values

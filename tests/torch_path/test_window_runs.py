"""Matching a batch against the window's sorted runs finds what a dictionary finds."""

from collections import defaultdict

import numpy as np
import torch

from detector.torch_path.backend import has_cuda
from detector.torch_path.runs import WindowRuns

DEVICE = "cuda" if has_cuda() else "cpu"


def test_matches_are_those_of_a_dictionary() -> None:
    draw = np.random.default_rng(1)
    runs, known = WindowRuns(), defaultdict[int, list[tuple[int, int]]](list)
    entries = 0
    for step in range(120):
        keys = draw.integers(-200, 200, draw.integers(0, 60))
        since = step - 20
        runs.expire(since)
        found = runs.match(torch.tensor(keys, device=DEVICE))
        pairs = sorted(zip(found.query.tolist(), found.entry.tolist(), strict=True))
        assert pairs == sorted(
            (query, entry)
            for query, key in enumerate(keys.tolist())
            for entry, time in known[key]
            if time >= since
        )
        times = step + draw.integers(-5, 1, len(keys))
        numbers = np.arange(entries, entries + len(keys))
        if len(keys):
            columns = [torch.tensor(each, device=DEVICE) for each in (keys, numbers, times)]
            runs.insert(*columns, newest_ms=int(times.max()))
        for key, number, time in zip(keys.tolist(), numbers.tolist(), times.tolist(), strict=True):
            known[key].append((number, time))
        entries += len(keys)
    assert len(runs) < entries / 2


def test_an_empty_window_matches_nothing() -> None:
    found = WindowRuns().match(torch.tensor([1, 2], device=DEVICE))
    assert not len(found.query)
    assert not len(found.entry)

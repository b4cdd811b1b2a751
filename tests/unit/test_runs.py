"""Runs: extension, chaining and tie search against naive Python on small alphabets."""

import itertools
from operator import eq

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from detector.kernels.runs import diagonal_runs, extend, holding, longest_chain
from detector.model import Hashes

FIXED = settings(deadline=None, derandomize=True, max_examples=400)

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=40)
drops = st.integers(0, 5)


def hashes(values: list[int]) -> Hashes:
    return np.array(values, np.uint32)


def reach(equal: list[bool], drop: int) -> int:
    """Return the length of the best beginning, before the score fell by more than `drop`."""
    scores = [0, *itertools.accumulate(1 if same else -1 for same in equal)]
    best = list(itertools.accumulate(scores, max))
    stop = next((i for i, score in enumerate(scores) if score < best[i] - drop), len(scores))
    return scores.index(max(scores[:stop]))


def naive_extend(
    source: list[int], sink: list[int], source_at: int, sink_at: int, drop: int
) -> tuple[int, int]:
    pairs = zip(source[source_at:], sink[sink_at:], strict=False)
    right = [a == b for a, b in pairs]
    pairs = zip(reversed(source[:source_at]), reversed(sink[:sink_at]), strict=False)
    left = [a == b for a, b in pairs]
    return sink_at - reach(left, drop), sink_at + reach(right, drop)


@FIXED
@given(tokens, tokens, st.data(), drops)
def test_extension_is_the_best_beginning_on_each_side(
    source: list[int], sink: list[int], data: st.DataObject, drop: int
) -> None:
    source_at = data.draw(st.integers(0, len(source) - 1))
    sink_at = data.draw(st.integers(0, len(sink) - 1))
    got = extend(hashes(source), hashes(sink), source_at, sink_at, drop)
    assert got == naive_extend(source, sink, source_at, sink_at, drop)


@FIXED
@given(tokens, tokens, st.data())
def test_without_drop_a_run_is_maximal_and_exact(
    source: list[int], sink: list[int], data: st.DataObject
) -> None:
    source_at = data.draw(st.integers(0, len(source) - 1))
    sink_at = data.draw(st.integers(0, len(sink) - 1))
    assume(source[source_at] == sink[sink_at])
    shift = source_at - sink_at
    begin, end = extend(hashes(source), hashes(sink), source_at, sink_at, 0)
    assert begin <= sink_at < end
    assert source[begin + shift : end + shift] == sink[begin:end]
    if begin and begin + shift:
        assert source[begin + shift - 1] != sink[begin - 1]
    if end < len(sink) and end + shift < len(source):
        assert source[end + shift] != sink[end]


@pytest.mark.parametrize(("gap", "after", "end"), [(4, 5, 19), (4, 4, 10), (5, 30, 10), (1, 2, 13)])
def test_a_gap_is_bridged_when_more_matches_follow(gap: int, after: int, end: int) -> None:
    source = list(range(100, 110 + gap + after))
    sink = [*source[:10], *[1] * gap, *source[10 + gap :]]
    assert extend(hashes(source), hashes(sink), 0, 0, 4) == (0, end)
    size = len(sink)
    backwards = extend(hashes(source[::-1]), hashes(sink[::-1]), size - 1, size - 1, 4)
    assert backwards == (size - end, size)


def naive_chain(counts: list[bool], bridge: int) -> tuple[int, int, int]:
    """Return (tokens, begin, end) of the first longest chain."""
    chains: list[list[int]] = []
    for at in (i for i, counting in enumerate(counts) if counting):
        if chains and at - chains[-1][-1] - 1 <= bridge:
            chains[-1].append(at)
        else:
            chains.append([at])
    best = max(chains, key=len, default=[])
    return (len(best), best[0], best[-1] + 1) if best else (0, 0, 0)


@FIXED
@given(st.lists(st.booleans(), max_size=60), st.integers(0, 6))
def test_the_longest_chain_bridges_gaps_without_counting_them(
    counts: list[bool], bridge: int
) -> None:
    assert longest_chain(np.array(counts, np.bool_), bridge) == naive_chain(counts, bridge)


@FIXED
@given(
    st.lists(st.lists(st.integers(0, 2), max_size=40), min_size=1, max_size=4),
    st.lists(st.integers(0, 2), min_size=3, max_size=12),
    st.integers(1, 12),
)
def test_every_place_of_the_anchor_is_tried_in_every_text(
    texts: list[list[int]], wanted: list[int], least: int
) -> None:
    def most(text: list[int]) -> int:
        places = (at for at in range(len(text) - 2) if text[at : at + 3] == wanted[:3])
        return max((sum(map(eq, text[at:], wanted)) for at in places), default=0)

    ends = np.cumsum([len(text) for text in texts])
    got = holding(hashes([*itertools.chain(*texts)]), ends, hashes(wanted), 3, least)
    assert got.tolist() == [most(text) >= least for text in texts]


@FIXED
@given(tokens, tokens, drops)
def test_hits_inside_a_run_of_their_diagonal_are_not_extended_again(
    source: list[int], sink: list[int], drop: int
) -> None:
    hits = [
        (i - j, j)
        for i in range(len(source))
        for j in range(len(sink))
        if source[i : i + 3] == sink[j : j + 3] and max(i + 3 - len(source), j + 3 - len(sink)) <= 0
    ]
    hits.sort()
    wanted: list[tuple[int, int, int]] = []
    for diagonal, at in hits:
        if wanted and wanted[-1][2] == diagonal and at < wanted[-1][1]:
            continue
        wanted.append((*naive_extend(source, sink, at + diagonal, at, drop), diagonal))
    hits.reverse()  # in which order they come does not matter
    sink_at = np.array([at for _, at in hits], np.int64)
    source_at = sink_at + np.array([diagonal for diagonal, _ in hits], np.int64)
    got = diagonal_runs(hashes(source), hashes(sink), source_at, sink_at, drop)
    assert [tuple(run) for run in got.tolist()] == wanted


def test_no_hits_give_no_runs() -> None:
    none = np.empty(0, np.int64)
    assert diagonal_runs(hashes([1]), hashes([1]), none, none, 4).shape == (0, 3)

"""Bottom-k sketches against the sets themselves."""

import numpy as np
import pytest

from detector.sketch.bottom_k import Values, high_halves, sample, smaller_containment

K = 128


def drawn(name: int, count: int) -> Values:
    tags = np.random.default_rng(name).integers(-(2**63), 2**63 - 1, count)
    return np.unique(high_halves(tags))


def exact(first: Values, second: Values) -> float:
    return len(np.intersect1d(first, second)) / len(np.union1d(first, second))


@pytest.mark.parametrize("shared", [0, 500, 1_000, 1_900, 2_000])
def test_the_estimate_errs_by_the_stated_deviation(shared: int) -> None:
    errors = []
    for name in range(60):
        words = np.random.default_rng(name).permutation(drawn(name, 4_000 - shared))
        both, mine, theirs = np.split(words, [shared, 2_000])
        first, second = np.union1d(both, mine), np.union1d(both, theirs)
        truth = exact(first, second)
        errors.append(sample(first[:K], second[:K], K).jaccard - truth)
    deviation = max((truth * (1 - truth) / K) ** 0.5, 1e-9)
    assert np.std(errors) < 1.35 * deviation
    assert abs(float(np.mean(errors))) < 0.5 * deviation + 1e-9


def test_small_sets_are_compared_exactly() -> None:
    first = drawn(1, 60)
    second = np.union1d(first[:30], drawn(2, 20))
    assert sample(first, second, K).jaccard == exact(first, second)


def test_what_is_explained_counts_on_neither_side() -> None:
    quoted, own = drawn(1, 1_000), drawn(2, 1_000)
    first, second = np.union1d(quoted, own), np.union1d(quoted, drawn(3, 1_000))
    both = sample(first[:K], second[:K], K)
    assert both.jaccard == pytest.approx(1 / 3, abs=0.13)
    assert both.without(np.intersect1d(second[:K], quoted)).jaccard == 0.0


def test_containment_is_of_the_second_and_of_the_smaller() -> None:
    large = drawn(1, 4_000)
    small = np.sort(np.random.default_rng(5).permutation(large)[:1_000])
    assert sample(large[:K], small[:K], K).containment == 1.0
    assert sample(small[:K], large[:K], K).containment == pytest.approx(0.25, abs=0.12)
    found = smaller_containment(small[:K], large[:K], K, sizes=(len(small), len(large)))
    assert found == pytest.approx(1.0, abs=0.35)
    assert smaller_containment(small[:0], large[:K], K, sizes=(0, 4_000)) == 0.0

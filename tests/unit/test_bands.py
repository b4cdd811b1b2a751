"""The band index has datasketch's shapes and datasketch's candidates, and forgets by event time."""

from collections.abc import Iterator

import datasketch
import numpy as np
import pytest
from datasketch.lsh import _optimal_param
from numpy.typing import NDArray

from detector.errors import SettingsError, SketchError, UsageError
from detector.index.bands import BandIndex
from detector.kernels import minhash as kernel
from detector.model import Hashes
from detector.sketch.batch import offsets_of
from detector.sketch.bigrams import sampled_sketch
from detector.sketch.header import SketchHeader
from detector.sketch.lsh import BandShape, best_shape
from detector.sketch.minhash import Sketches, permutations

HEADER = SketchHeader()


def near_copies(count: int, *, seed: int) -> NDArray[np.uint32]:
    """Return sketches of random sets, half of them edited copies of earlier ones."""
    draw = np.random.default_rng(seed)
    sets: list[NDArray[np.int64]] = []
    for _ in range(count):
        if sets and draw.random() < 0.5:
            copy = sets[draw.integers(len(sets))].copy()
            edited = draw.random(len(copy)) < draw.choice([0.02, 0.1, 0.3, 0.5])
            copy[edited] = draw.integers(-(1 << 63), (1 << 63) - 1, int(edited.sum()))
            sets.append(copy)
        else:
            sets.append(draw.integers(-(1 << 63), (1 << 63) - 1, draw.integers(0, 200)))
    offsets = offsets_of(np.array([len(each) for each in sets]))
    return kernel.signatures(np.concatenate(sets), offsets, HEADER)


def edited_texts(count: int, *, seed: int) -> Iterator[Hashes]:
    """Yield random texts, half of them edited copies of earlier ones."""
    draw = np.random.default_rng(seed)
    texts: list[Hashes] = []
    for _ in range(count):
        tokens = draw.integers(0, 1 << 32, draw.integers(0, 600), dtype=np.uint32)
        if texts and draw.random() < 0.5:
            copied = texts[draw.integers(len(texts))]
            kept = draw.random(len(copied)) > draw.choice([0.02, 0.1, 0.2, 0.3])
            tokens = np.where(kept, copied, np.resize(tokens, len(copied)))
        texts.append(tokens)
        yield tokens


def one(values: NDArray[np.uint32]) -> Sketches:
    return Sketches(HEADER, values[None])


@pytest.mark.parametrize("threshold", [0.05, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("num_perm", [64, 128])
def test_shapes_are_those_of_datasketch(threshold: float, num_perm: int) -> None:
    shape = best_shape(threshold, num_perm)
    assert (shape.bands, shape.rows) == _optimal_param(threshold, num_perm, 0.5, 0.5)


def test_weighted_shapes_are_those_of_datasketch() -> None:
    shape = best_shape(0.5, 128, false_positive_weight=0.2)
    assert (shape.bands, shape.rows) == _optimal_param(0.5, 128, 0.2, 0.8)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_a_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(SettingsError, match="threshold"):
        best_shape(threshold, 128)


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_candidates_and_estimates_are_those_of_datasketch(threshold: float) -> None:
    values = near_copies(900, seed=5)
    a, b = permutations(HEADER)
    lsh = datasketch.MinHashLSH(threshold=threshold, num_perm=128)
    index = BandIndex(HEADER, best_shape(threshold, 128))
    met = 0
    for at, row in enumerate(values):
        sketch = datasketch.MinHash(
            hashvalues=row, permutations=np.array([a, b]), scheme="affine32", seed=1
        )
        expected = sorted(lsh.query(sketch))
        assert index.candidates(one(row)).tolist() == expected
        met += len(expected)
        lsh.insert(at, sketch)
        assert index.insert(one(row), np.array([at])) == at
        if at >= 300:
            lsh.remove(at - 300)
            index.expire(at - 299)
    assert met > 100


def test_expired_documents_are_no_candidates_whatever_their_order() -> None:
    draw = np.random.default_rng(6)
    values = near_copies(40, seed=7)
    index = BandIndex(HEADER, BandShape(bands=25, rows=5))
    times: list[int] = []
    for step in range(600):
        rows = values[draw.integers(0, 40, 3)]
        new = step * 10 + draw.integers(-50, 50, 3)
        first = index.insert(Sketches(HEADER, rows), new)
        assert first == len(times)
        times += new.tolist()
        index.expire(step * 10 - 800)
        found = index.similar(one(rows[0]), at_least=1.0)
        assert first in found.numbers
        assert (found.similarity == 1.0).all()
        assert all(times[number] >= step * 10 - 800 for number in found.numbers)
    assert len(index) < 300


def test_memory_stays_bounded_while_the_window_slides() -> None:
    draw = np.random.default_rng(8)
    index = BandIndex(HEADER, BandShape(bands=25, rows=5))
    sizes = []
    for step in range(40):
        values = draw.integers(0, 1 << 32, (500, 128), dtype=np.uint32)
        index.insert(Sketches(HEADER, values), np.full(500, step))
        index.expire(step - 3)
        sizes.append(index.nbytes)
    assert len(index) == 2000
    assert max(sizes[10:]) == sizes[-1]
    assert sizes[-1] / len(index) < 3000


def test_a_query_stops_at_the_most_candidates_and_says_so() -> None:
    row = np.arange(128, dtype=np.uint32)
    index = BandIndex(HEADER, BandShape(bands=25, rows=5), most_candidates=10)
    for _ in range(30):
        index.insert(one(row), np.array([0]))
    assert index.candidates(one(row)).tolist() == list(range(20, 30))
    assert index.capped == 1


def test_foreign_sketches_and_impossible_shapes_are_refused() -> None:
    index = BandIndex(HEADER, BandShape(bands=25, rows=5))
    foreign = Sketches(SketchHeader(key_id="00ff"), np.zeros((1, 128), np.uint32))
    with pytest.raises(SketchError, match="key_id"):
        index.candidates(foreign)
    with pytest.raises(SketchError, match="key_id"):
        index.insert(foreign, np.array([0]))
    with pytest.raises(UsageError, match="26 bands of 5 rows"):
        BandIndex(HEADER, BandShape(bands=26, rows=5))


def test_recall_follows_the_s_curve() -> None:
    draw = np.random.default_rng(9)
    shape = best_shape(0.5, 128)
    members = draw.integers(-(1 << 63), (1 << 63) - 1, (500, 400))
    for edited in (0.1, 0.3, 0.45):
        copies = members.copy()
        fresh = int(400 * edited)
        copies[:, :fresh] = draw.integers(-(1 << 63), (1 << 63) - 1, (500, fresh))
        similarity = (400 - fresh) / (400 + fresh)
        offsets = np.arange(0, 500 * 400 + 1, 400)
        index = BandIndex(HEADER, shape)
        index.insert(
            Sketches(HEADER, kernel.signatures(members.ravel(), offsets, HEADER)),
            np.zeros(500, np.int64),
        )
        queries = kernel.signatures(copies.ravel(), offsets, HEADER)
        found = sum(at in index.candidates(one(row)) for at, row in enumerate(queries))
        assert found / 500 == pytest.approx(shape.probability(similarity), abs=0.04)


def test_meeting_is_asking_and_then_inserting() -> None:
    salt = np.uint32(7)
    slow, fast = (BandIndex(HEADER, best_shape(0.5, 128), most_candidates=20) for _ in range(2))
    met = 0
    for at, tokens in enumerate(edited_texts(400, seed=10)):
        sketch = one(sampled_sketch(tokens, salt, HEADER))
        expected = slow.similar(sketch, at_least=0.4).numbers
        slow.insert(sketch, np.array([at]))
        found = fast.meet(tokens, salt, at, at_least=0.4)
        np.testing.assert_array_equal(found, expected)
        met += len(found)
        for index in (slow, fast):
            index.expire(at - 150)
    assert met > 50
    assert slow.capped == fast.capped
    assert slow.nbytes == fast.nbytes


def test_the_oldest_documents_can_be_given_up() -> None:
    rows = np.arange(3 * 128, dtype=np.uint32).reshape(3, 128)
    index = BandIndex(HEADER, BandShape(bands=25, rows=5))
    index.insert(Sketches(HEADER, rows), np.zeros(3, np.int64))
    assert index.forget(2) == 2
    assert (len(index), index.oldest) == (1, 2)
    assert [index.candidates(one(row)).tolist() for row in rows] == [[], [], [2]]
    assert index.forget(9) == 1
    assert len(index) == 0

"""Tags are SipHash-2-4: the published vectors, the numpy reference and the kernel agree."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.kernels import siphash as kernel
from detector.sketch import siphash
from detector.sketch.shingle import Keys
from detector.sketch.tag_keys import PARTY_BITS, TagKeys
from tests.reference.siphash import siphash as oracle

KEY = bytes(range(16))
PUBLISHED = [
    "310e0edd47db6f72", "fd67dc93c539f874", "5a4fa9d909806c0d", "2d7efbd796666785",
    "b7877127e09427cf", "8da699cd64557618", "cee3fe586e46c9cb", "37d1018bf50002ab",
    "6224939a79f5f593", "b0e4a90bdf82009e", "f3b9dd94c5bb5d7a", "a7ad6b22462fb3f4",
    "fbe50e86bc8f1e75", "903d84c02756ea14", "eef27a8e90ca23f7", "e545be4961ca29a1",
]  # fmt: skip
"""Of messages 00, 00 01, 00 01 02 ... under KEY: the reference implementation's first 16."""

WORDS = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40)


def words(values: list[int]) -> Keys:
    return np.array(values, np.int64)


def message(word: int) -> bytes:
    return word.to_bytes(8, "little", signed=True)


@pytest.mark.parametrize("length", range(len(PUBLISHED)))
def test_the_oracle_gives_the_published_vectors(length: int) -> None:
    assert oracle(KEY, bytes(range(length))).to_bytes(8, "little").hex() == PUBLISHED[length]


def test_both_give_the_published_vector_of_eight_bytes() -> None:
    given_words = words([int.from_bytes(bytes(range(8)), "little")])
    state = siphash.initial_state(KEY)
    for made in (siphash.tags(KEY, given_words), kernel.tags(state, given_words)):
        assert made.tobytes().hex() == PUBLISHED[8]


@settings(deadline=None, derandomize=True)
@given(key=st.binary(min_size=16, max_size=16), values=WORDS)
def test_both_agree_with_the_oracle(key: bytes, values: list[int]) -> None:
    expected = [oracle(key, message(value)) for value in values]
    state = siphash.initial_state(key)
    for made in (siphash.tags(key, words(values)), kernel.tags(state, words(values))):
        assert made.view(np.uint64).tolist() == expected


def test_every_purpose_has_a_key_of_its_own() -> None:
    keys, others = TagKeys(bytes(32)), TagKeys(bytes(31) + b"\1")
    made = {keys.shingles, keys.bands, others.shingles, others.bands}
    assert len(made) == 4
    assert keys.party("a") != others.party("a")
    assert keys.party("a") == TagKeys(bytes(32)).party("a")


def test_parties_fill_their_numbers_evenly_and_fit_a_mark() -> None:
    keys = TagKeys(bytes(32))
    numbers = np.array([keys.party(f"tenant-{number}") for number in range(20_000)])
    assert numbers.min() >= 1
    assert numbers.max() < (1 << PARTY_BITS) - 1
    assert len(np.unique(numbers)) >= len(numbers) - 2
    quarters = np.bincount(numbers >> PARTY_BITS - 2, minlength=4)
    assert (abs(quarters - 5_000) < 300).all()


def test_nothing_shows_a_key() -> None:
    keys = TagKeys(bytes(range(32)))
    assert keys.shingles.hex() not in repr(keys)
    assert repr(keys) == "TagKeys(hidden)"

"""The token table: keyed, prefix-stable, one gather, and silent about ids and keys."""

import hashlib
import traceback

import numpy as np
import pytest

from detector.errors import KeyFileError, RecordError
from detector.sketch.token_table import FIRST_ENTRIES, MAX_TOKEN_ID, Secret, TokenTable, checked_ids

SECRET = Secret(bytes(range(32)))


def test_entry_i_is_word_i_of_the_shake_stream_whatever_was_hashed_before() -> None:
    key = SECRET.keys().hash_key
    stream = np.frombuffer(hashlib.shake_256(key).digest(4 * 300_000), dtype="<u4")
    ids = [0, 1, 151_645, 262_143]
    grown, fresh = TokenTable(key), TokenTable(key)
    before = grown.hash(ids)
    grown.hash([MAX_TOKEN_ID])
    assert before.dtype == np.uint32
    assert before.tolist() == stream[ids].tolist()
    assert grown.hash(ids).tolist() == before.tolist()
    assert fresh.hash([*ids, 262_144])[-1] == stream[262_144]


def test_keys_differ_by_purpose_and_are_stable() -> None:
    keys = SECRET.keys()
    assert len({keys.hash_key, keys.seal_key, keys.tag_key, bytes(range(32))}) == 4
    assert keys == Secret(bytes(range(32))).keys()
    assert len(keys.key_id) == 8
    assert keys.key_id not in keys.hash_key.hex()


def test_different_secrets_never_meet() -> None:
    ids = list(range(1000))
    one = TokenTable(SECRET.keys().hash_key).hash(ids)
    other = TokenTable(Secret(bytes(range(1, 33))).keys().hash_key).hash(ids)
    assert not np.intersect1d(one, other).size > 2


def test_reprs_hide_everything() -> None:
    keys = SECRET.keys()
    table = TokenTable(keys.hash_key, key_id=keys.key_id)
    for shown in (repr(SECRET), str(SECRET), repr(keys), str(keys), repr(table)):
        assert keys.hash_key.hex() not in shown
        assert repr(keys.hash_key) not in shown
        assert bytes(range(32)).hex() not in shown


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_secret_has_32_bytes(length: int) -> None:
    with pytest.raises(KeyFileError):
        Secret(bytes(length))


@pytest.mark.parametrize(
    "ids",
    [
        [1, -7_654_321],
        [MAX_TOKEN_ID + 1],
        [2**31 + 7_654_321],
        [2**64 + 7_654_321],
        [7_654_321.5],
        [1.0],
        [True],
        ["7654321"],
        [None],
        [[7_654_321]],
        np.array([-7_654_321]),
        np.array([7_654_321.0]),
        np.array([[1, 2]]),
        np.array([True]),
        np.array([2**40 + 7_654_321], dtype=np.uint64),
        np.array([7_654_321], dtype=np.uint32),
    ],
)
def test_what_is_no_token_id_is_refused_without_showing_it(ids: list[int]) -> None:
    table = TokenTable(SECRET.keys().hash_key)
    with pytest.raises(RecordError) as caught:
        table.hash(ids)
    assert caught.value.reason == "token_id_range"
    shown = "".join(traceback.format_exception(caught.value))
    assert "7654321" not in shown
    assert "7_654_321" not in str(caught.value)


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint32", "uint16", ">i8"])
def test_integer_arrays_hash_as_lists_do(dtype: str) -> None:
    table = TokenTable(SECRET.keys().hash_key)
    ids = [0, 5, 65_535]
    assert table.hash(np.array(ids, dtype=dtype)).tolist() == table.hash(ids).tolist()


def test_no_ids_make_no_hashes_and_no_table() -> None:
    table = TokenTable(SECRET.keys().hash_key)
    assert table.hash([]).shape == (0,)
    assert table.hash(np.empty(0, dtype=np.int64)).dtype == np.uint32
    assert "entries=0" in repr(table)


def test_the_table_grows_by_doubling() -> None:
    table = TokenTable(SECRET.keys().hash_key)
    table.hash([3])
    assert f"entries={FIRST_ENTRIES}" in repr(table)
    table.hash([FIRST_ENTRIES])
    assert f"entries={2 * FIRST_ENTRIES}" in repr(table)


def test_checked_ids_keep_order_and_value() -> None:
    assert checked_ids([5, 0, MAX_TOKEN_ID]).tolist() == [5, 0, MAX_TOKEN_ID]

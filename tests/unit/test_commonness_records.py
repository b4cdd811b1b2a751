"""Records about shingles: what is told comes out again, what is broken is refused with a reason."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.errors import RecordError
from detector.index.showings import Showings, Taint
from detector.index.tenant_table import mark_of
from ingest.commonness_records import (
    MAX_TAGS,
    SHARED,
    SHOWN,
    TAINTED,
    decode,
    encode_showings,
    encode_taints,
)

KEY_ID = "0badc0de"
INT64 = st.integers(-(2**63), 2**63 - 1)
PARTIES = st.integers(1, 2**30 - 2)
TIMES_MS = st.integers(-(10**13), 10**14)
SHOWINGS = st.lists(st.tuples(INT64, PARTIES, st.integers(-(2**32), 2**32 - 1)), max_size=30)
TAINTS = st.lists(
    st.tuples(st.lists(INT64, max_size=5), PARTIES, PARTIES, TIMES_MS, TIMES_MS), min_size=1,
    max_size=6,
)  # fmt: skip
FIXED = settings(deadline=None, derandomize=True)


def showings(given_showings: list[tuple[int, int, int]]) -> Showings:
    tags = np.array([tag for tag, _, _ in given_showings], np.int64)
    marks = [mark_of(party, second * 1000) for _, party, second in given_showings]
    return Showings(tags, np.array(marks, np.int64))


SOME = showings([(1, 7, 10), (2, 7, 10), (3, 8, 11)])


@FIXED
@given(SHOWINGS, TIMES_MS, st.integers(0, 2**62), st.sampled_from([SHOWN, SHARED]))
def test_showings_come_out_again(
    shown: list[tuple[int, int, int]], now_ms: int, upto: int, kind: bytes
) -> None:
    told = showings(shown)
    record = encode_showings(kind, told, key_id=KEY_ID, now_ms=now_ms, upto=upto)
    read = decode(record, key_id=KEY_ID)
    assert read.showings.tags.tolist() == told.tags.tolist()
    assert read.showings.marks.tolist() == told.marks.tolist()
    assert (read.kind, read.now_ms, read.upto, read.taints) == (kind, now_ms, upto, ())


@FIXED
@given(TAINTS, TIMES_MS)
def test_taints_come_out_again(
    tainted: list[tuple[list[int], int, int, int, int]], now_ms: int
) -> None:
    taints = [Taint(np.array(tags, np.int64), *rest) for tags, *rest in tainted]
    read = decode(encode_taints(taints, key_id=KEY_ID, now_ms=now_ms), key_id=KEY_ID)
    assert read.kind == TAINTED
    assert [(one.tags.tolist(), *one[1:]) for one in read.taints] == [
        (one.tags.tolist(), *one[1:]) for one in taints
    ]


def test_a_sequence_costs_eight_bytes_a_shingle() -> None:
    shown = Showings(np.arange(1_000), np.full(1_000, mark_of(7, 0)))
    assert len(encode_showings(SHOWN, shown, key_id=KEY_ID, now_ms=0)) < 8 * 1_000 + 64


@FIXED
@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_reason(value: bytes) -> None:
    with pytest.raises(RecordError) as raised:
        decode(b"BWc1" + value, key_id=KEY_ID)
    assert raised.value.reason in ("malformed", "unknown_key")


@FIXED
@given(at=st.integers(0, 4), data=st.data())
def test_a_broken_record_is_refused_or_decodes_within_bounds(at: int, data: st.DataObject) -> None:
    record = bytearray(
        encode_taints([Taint(SOME.tags, 1, 2, 3, 4)], key_id=KEY_ID, now_ms=0)
        if at == 0
        else encode_showings(SHOWN, SOME, key_id=KEY_ID, now_ms=0)
    )
    for _ in range(at):
        record[data.draw(st.integers(0, len(record) - 1))] ^= data.draw(st.integers(1, 255))
    value = bytes(record[: data.draw(st.integers(0, len(record)))])
    with contextlib.suppress(RecordError):
        told = decode(value, key_id=KEY_ID)
        assert len(told.showings.tags) == len(told.showings.marks) <= MAX_TAGS
        assert (told.showings.marks >> 33 > 1).all()


@pytest.mark.parametrize("kind", [b"X", b"\0"])
def test_an_unknown_kind_is_malformed(kind: bytes) -> None:
    record = encode_showings(kind, SOME, key_id=KEY_ID, now_ms=0)
    with pytest.raises(RecordError, match="kind"):
        decode(record, key_id=KEY_ID)


def test_another_key_is_told_apart_from_a_broken_record() -> None:
    record = encode_showings(SHOWN, SOME, key_id="00000001", now_ms=0)
    with pytest.raises(RecordError) as raised:
        decode(record, key_id=KEY_ID)
    assert raised.value.reason == "unknown_key"
    with pytest.raises(RecordError) as raised:
        decode(None, key_id=KEY_ID)
    assert raised.value.reason == "malformed"


@pytest.mark.parametrize("party", [0, 2**30 - 1, 2**32 - 1])
def test_a_party_that_no_mark_can_hold_is_refused(party: int) -> None:
    record = bytearray(encode_taints([Taint(SOME.tags, 1, 2, 3, 4)], key_id=KEY_ID, now_ms=0))
    struct.pack_into("<I", record, 36, party)
    with pytest.raises(RecordError, match="party"):
        decode(bytes(record), key_id=KEY_ID)

"""A record about shingles that contradicts itself is refused, and says what is wrong with it."""

import struct

import numpy as np
import pytest

from detector.errors import RecordError
from detector.index.showings import Showings, Taint
from detector.index.tenant_table import mark_of
from detector.sketch.tag_keys import PARTY_BITS
from ingest.commonness_records import SHOWN, decode, encode_showings, encode_taints
from ingest.limits import MAX_TIME_MS

KEY_ID = "0badc0de"
TAGS = np.array([1, 2, 3], np.int64)
SHOWINGS = Showings(TAGS, np.full(3, mark_of(7, 10_000)))
KIND_AT, ROWS_AT, NOW_AT, UPTO_AT, ROW_AT = 4, 12, 20, 28, 36
"""Offsets of what is changed: kind, number of rows, the two numbers of the head, the first row."""


def shown(at: int, changed: bytes) -> bytes:
    record = bytearray(encode_showings(SHOWN, SHOWINGS, key_id=KEY_ID, now_ms=0))
    record[at : at + len(changed)] = changed
    return bytes(record)


def tainted(origin: int = 1, receiver: int = 2, since_ms: int = 0, at_ms: int = 0) -> bytes:
    taint = Taint(TAGS, origin, receiver, since_ms, at_ms)
    return encode_taints([taint], key_id=KEY_ID, now_ms=0)


LAST_PARTY = (1 << PARTY_BITS) - 2


@pytest.mark.parametrize(
    ("record", "what"),
    [
        (shown(KIND_AT, b"X"), "its kind is unknown"),
        (shown(ROWS_AT, struct.pack("<I", 2)), "its length is not what its head says"),
        (shown(NOW_AT, struct.pack("<q", MAX_TIME_MS + 1)), "a time lies outside"),
        (shown(NOW_AT, struct.pack("<q", -MAX_TIME_MS - 1)), "a time lies outside"),
        (shown(UPTO_AT, struct.pack("<q", -1)), "a time lies outside"),
        (shown(ROW_AT, struct.pack("<q", 0)), "a party number is out of range"),
        (shown(ROW_AT + 8, struct.pack("<I", 2)), "its rows do not cover its tags"),
        (tainted(origin=0), "a party number is out of range"),
        (tainted(receiver=LAST_PARTY + 1), "a party number is out of range"),
        (tainted(since_ms=-MAX_TIME_MS - 1), "a time lies outside"),
        (tainted(at_ms=MAX_TIME_MS + 1), "a time lies outside"),
    ],
)
def test_a_contradiction_is_named(record: bytes, what: str) -> None:
    with pytest.raises(RecordError, match=what) as raised:
        decode(record, key_id=KEY_ID)
    assert raised.value.reason == "malformed"


def test_the_bounds_themselves_are_allowed() -> None:
    (taint,) = decode(
        tainted(origin=1, receiver=LAST_PARTY, since_ms=-MAX_TIME_MS, at_ms=MAX_TIME_MS),
        key_id=KEY_ID,
    ).taints
    assert (taint.origin, taint.receiver) == (1, LAST_PARTY)
    assert (taint.since_ms, taint.at_ms) == (-MAX_TIME_MS, MAX_TIME_MS)


def test_tags_under_another_secret_are_told_apart() -> None:
    with pytest.raises(RecordError) as raised:
        decode(shown(KIND_AT, SHOWN), key_id="00000000")
    assert raised.value.reason == "unknown_key"

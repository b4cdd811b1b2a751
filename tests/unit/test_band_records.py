"""The records of responses: sealed, bound to their partition, and bounded in what they may hold."""

from typing import Any

import msgspec
import numpy as np
import pytest

from detector.errors import RecordError
from detector.index.response_sketch import ResponseSketch
from detector.index.showings import ranges_of
from detector.kernels.bigrams import bigram_keys
from detector.match.response_sketches import ResponseSketches
from detector.pipeline import Detector
from detector.sketch.tag_keys import TagKeys
from ingest.band_records import BandsTold, decode, encode
from ingest.sealing import KeyRing
from tests.unit.sequences import SETTINGS, response, text
from tests.unit.wire import OLD_SECRET, RING, SECRET

RANGES = 4
TOKENS = text(1, 300)


def sketched(**more: Any) -> ResponseSketch:
    """Return what a worker tells of one response."""
    sketches = ResponseSketches(SETTINGS.copies, TagKeys(SECRET.keys().tag_key))
    Detector(SETTINGS, sketches=sketches).observe(response("acme", "r-1", 0, TOKENS, **more))
    (one,) = sketches.take()
    return one


def of_range(sketch: ResponseSketch, partition: int) -> ResponseSketch:
    """Return the sketch with its bands of one range."""
    tags = sketch.band_tags()
    mine = tags[ranges_of(tags, RANGES) == partition]
    return msgspec.structs.replace(sketch, bands=mine.astype("<i8").tobytes())


def read(value: bytes | None, *, ring: KeyRing = RING, partition: int = 0) -> BandsTold:
    return decode(value, ring=ring, partition=partition, ranges=RANGES)


def sealed(told: BandsTold, *, ring: KeyRing = RING) -> bytes:
    return encode(told, ring=ring, partition=0, ranges=RANGES)


def test_it_comes_back_as_it_was() -> None:
    told = BandsTold((of_range(sketched(session="s"), 0),), sent_upto=7)
    again = read(sealed(told))
    assert msgspec.structs.astuple(again.sketches[0]) == msgspec.structs.astuple(told.sketches[0])
    assert again.sent_upto == 7


def test_an_earlier_secret_opens_what_it_sealed() -> None:
    value = sealed(BandsTold(), ring=KeyRing.of(OLD_SECRET))
    assert read(value, ring=KeyRing.of(SECRET, OLD_SECRET)) == BandsTold()
    with pytest.raises(RecordError) as refused:
        read(value)
    assert refused.value.reason == "unknown_key"


def test_a_reader_without_the_secret_learns_no_name() -> None:
    value = sealed(BandsTold((of_range(sketched(), 0),)))
    assert b"acme" not in value
    assert b"r-1" not in value


def test_what_is_sealed_holds_neither_token_hashes_nor_unkeyed_bigrams() -> None:
    """Also who opens it sees only tags: those of another secret are others."""
    one = sketched()
    plain = msgspec.msgpack.encode(one)
    keys = bigram_keys(TOKENS)
    unkeyed = {*TOKENS.tolist(), *keys.astype(np.uint32).tolist()}
    unkeyed |= set((keys.view(np.uint64) >> np.uint64(32)).tolist())
    for offset in range(4):
        words = np.frombuffer(plain[offset:], "<u4", (len(plain) - offset) // 4)
        assert not unkeyed & set(words.tolist())
    other = ResponseSketches(SETTINGS.copies, TagKeys(OLD_SECRET.keys().tag_key))
    Detector(SETTINGS, sketches=other).observe(response("acme", "r-1", 0, TOKENS))
    (under_another,) = other.take()
    assert not set(under_another.band_tags().tolist()) & set(one.band_tags().tolist())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "malformed"),
        (b"", "malformed"),
        (b"\xc1" * 90, "malformed"),
        (bytes(2**20 + 1), "malformed"),
        (msgspec.msgpack.encode(["bands/1", "nonsense", b"", b"", b""]), "malformed"),
    ],
)
def test_what_no_worker_makes_is_refused(value: bytes | None, reason: str) -> None:
    with pytest.raises(RecordError) as refused:
        read(value)
    assert refused.value.reason == reason


def test_a_record_cannot_be_changed_or_moved() -> None:
    value = sealed(BandsTold((of_range(sketched(), 0),)))
    for bad, partition in ((value[:-1] + b"?", 0), (value, 1)):
        with pytest.raises(RecordError) as refused:
            read(bad, partition=partition)
        assert refused.value.reason == "seal_broken"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"values": b"odd"}, "malformed"),
        ({"values": bytes(4 * 129)}, "malformed"),
        ({"party": -1}, "malformed"),
        ({"started_at_ms": 2**60}, "malformed"),
        ({"bands": (1 << 31).to_bytes(8, "little")}, "wrong_range"),
    ],
)
def test_a_sketch_out_of_bounds_is_refused(change: dict[str, Any], reason: str) -> None:
    bad = msgspec.structs.replace(of_range(sketched(), 0), **change)
    with pytest.raises(RecordError) as refused:
        read(sealed(BandsTold((bad,))))
    assert refused.value.reason == reason

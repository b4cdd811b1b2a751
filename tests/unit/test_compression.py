"""Compressed hashes: round trips, and frames that ask for more memory than they state."""

import tracemalloc

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from detector.errors import RecordError
from ingest.compression import compress, decompress
from ingest.envelope import unpack
from ingest.schema_batches import MAX_BATCH_TOKENS, Frame
from tests.unit.wire import RING, hashes, record, sealed_by_hand

GIGABYTE = zstandard.compress(bytes(1 << 30), level=1)
"""Some 100 KB that unpack to a gigabyte."""

STRETCHES = st.lists(
    st.tuples(
        st.sampled_from(["acme", "globex", "initech"]),
        st.binary(max_size=80).map(lambda raw: raw[: len(raw) // 4 * 4]),
    ),
    max_size=12,
)


@given(STRETCHES)
def test_every_stretch_is_found_where_its_start_says(stretches: list[tuple[str, bytes]]) -> None:
    packed = compress(stretches)
    plain = decompress(packed.data, packed.frames)
    assert len(plain) == sum(len(own) for _, own in stretches)
    for (_, own), start in zip(stretches, packed.starts, strict=True):
        assert plain[4 * start : 4 * start + len(own)] == own


def test_a_tenants_stretches_share_a_frame_and_empty_ones_have_none() -> None:
    one, other = hashes(1, 9), hashes(2, 4)
    packed = compress([("acme", one), ("globex", other), ("acme", b""), ("acme", other)])
    assert [frame.tokens for frame in packed.frames] == [13, 4]
    assert packed.starts == [0, 13, 9, 9]
    assert compress([("acme", b"")]).frames == []


@pytest.mark.parametrize("tokens", [0, 1, MAX_BATCH_TOKENS])
def test_a_bomb_is_refused_before_anything_is_allocated(tokens: int) -> None:
    tracemalloc.start()
    with pytest.raises(RecordError) as caught:
        decompress(GIGABYTE, [Frame(len(GIGABYTE), tokens)])
    assert caught.value.reason == "frame_broken"
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    data = sealed_by_hand([record()], data=GIGABYTE, frames=[Frame(len(GIGABYTE), tokens)])
    assert [error.reason for error in unpack(data, RING).rejected] == ["frame_broken"]


def _without_size() -> bytes:
    return zstandard.ZstdCompressor(write_content_size=False).compress(bytes(40))


@pytest.mark.parametrize(
    ("reason", "data", "frames"),
    [
        ("frame_broken", _without_size(), [Frame(len(_without_size()), 10)]),
        ("frame_broken", zstandard.compress(bytes(40)) + b"x", [Frame(18, 10)]),
        ("frame_broken", zstandard.compress(bytes(40))[:-1], [Frame(16, 10)]),
        ("frame_broken", b"", [Frame(0, 10)]),
        ("frame_broken", b"nothing of zstd", [Frame(15, 10)]),
        ("frame_range", zstandard.compress(bytes(40)), [Frame(16, 10)]),
        ("frame_range", zstandard.compress(bytes(40)), []),
        ("frame_range", b"", [Frame(0, MAX_BATCH_TOKENS), Frame(0, 1)]),
    ],
)
def test_a_frame_that_is_not_as_stated_is_refused(
    reason: str, data: bytes, frames: list[Frame]
) -> None:
    assert len(zstandard.compress(bytes(40))) == 17
    with pytest.raises(RecordError) as caught:
        decompress(data, frames)
    assert caught.value.reason == reason

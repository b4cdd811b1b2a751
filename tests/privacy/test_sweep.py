"""The sweep itself finds a canary in every encoding, packed or not, and nothing where none is."""

import base64
import gzip
import json
import struct
from collections.abc import Callable

import msgspec
import numpy as np
import pytest
import zstandard

from tests.privacy.canary import IDS, TEXT, WORDS
from tests.privacy.sweep import Secrets, Sweep

KEY = bytes(range(100, 132))
HASHES = tuple(int(one) for one in np.random.default_rng(4).integers(2**31, 2**32, 20))

SWEEP = Sweep(Secrets(words=WORDS, ids=(IDS,), hashes=(HASHES,), keys=(KEY,)))

WRITTEN: dict[str, bytes] = {
    "text as utf-8": TEXT.encode(),
    "text as utf-16-le": TEXT.encode("utf-16-le"),
    "text as utf-16-be": TEXT.encode("utf-16-be"),
    "ids as decimals": json.dumps({"ids": IDS[7:11]}).encode(),
    "ids as msgpack": msgspec.msgpack.encode(IDS),
    "ids as <u16": struct.pack("<5H", *IDS[3:8]),
    "ids as >u16": struct.pack(">5H", *IDS[3:8]),
    "ids as <u32": struct.pack("<5I", *IDS[3:8]),
    "ids as >u32": struct.pack(">5I", *IDS[3:8]),
    "ids as <u64": struct.pack("<5Q", *IDS[3:8]),
    "ids as >u64": struct.pack(">5Q", *IDS[3:8]),
    "hashes as <u32": np.array(HASHES, "<u4").tobytes(),
    "hashes as >u32": np.array(HASHES, ">u4").tobytes(),
    "hashes as decimals": str(HASHES).encode(),
    "keys": KEY,
}


def unfinished(data: bytes) -> bytes:
    """Return a zstd stream whose writer was stopped after the data."""
    stream = zstandard.ZstdCompressor().compressobj()
    return stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "zstd": zstandard.compress,
    "gzip": gzip.compress,
    "base64": base64.b64encode,
    "hex": lambda data: data.hex().encode(),
    "unfinished zstd": unfinished,
    "base64 of gzip": lambda data: base64.b64encode(gzip.compress(data)),
}


@pytest.mark.parametrize("packing", PACKED)
@pytest.mark.parametrize("encoding", WRITTEN)
def test_every_encoding_is_found(encoding: str, packing: str) -> None:
    data = b'{"a": "' + PACKED[packing](WRITTEN[encoding]) + b'"}\n'
    assert encoding in SWEEP.bytes(data)


@pytest.mark.parametrize("form", ["{0} {1} {2}", "{0}\n{1}\n{2}", "{0}, {1}, {2}", "a{0}b{1}c{2}d"])
def test_decimals_are_found_however_they_are_set(form: str) -> None:
    assert SWEEP.bytes(form.format(*IDS[:3]).encode()) == {"ids as decimals"}


def test_nothing_is_found_where_nothing_is() -> None:
    noise = np.random.default_rng(9).bytes(1 << 20)
    assert not SWEEP.bytes(noise)
    assert not SWEEP.bytes(json.dumps({"ids": IDS[:2], "more": IDS[10:12]}).encode())
    assert not SWEEP.bytes(f"{IDS[0]}0 {IDS[1]} {IDS[2]}".encode())

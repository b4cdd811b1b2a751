"""The sweep: looks through bytes for text, raw token ids in any encoding, hashes and keys.

Ids count as found when three in a row stand there (hashes: two), so that chance finds none. Also
looks inside zstd and gzip streams, base64 and hex, wherever in the bytes they begin.
"""

import base64
import binascii
import re
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import zstandard

IDS_IN_A_ROW = 3
HASHES_IN_A_ROW = 2
LEAST = 256
"""Smaller numbers are too frequent: in one byte each they are plain ASCII text."""

DEEPEST = 4
MOST_UNPACKED = 64 * 1024 * 1024

_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{8,}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){8,}")


@dataclass(frozen=True, kw_only=True)
class Secrets:
    """What must not be found: words, runs of ids, their keyed hashes, and key bytes."""

    words: Sequence[str] = ()
    ids: Sequence[Sequence[int]] = ()
    hashes: Sequence[Sequence[int]] = ()
    keys: Sequence[bytes] = ()


class Sweep:
    """Looks for the secrets; each kind of find has a name, such as `ids as <u32`."""

    def __init__(self, secrets: Secrets) -> None:
        self._needles = dict(_needles(secrets))

    def file(self, path: Path) -> set[str]:
        """Return what was found in a file or in its name."""
        return self.bytes(path.read_bytes()) | self.bytes(path.name.encode())

    def tree(self, folder: Path, *, leave_out: Sequence[Path] = ()) -> dict[str, set[str]]:
        """Return what was found in any file below `folder`, by file."""
        files = [path for path in folder.rglob("*") if path.is_file() and path not in leave_out]
        found = {str(path): self.file(path) for path in files}
        return {name: finds for name, finds in found.items() if finds}

    def bytes(self, data: bytes, depth: int = 0) -> set[str]:
        """Return what was found in `data` and in what is packed in it."""
        found = {name for name, needle in self._needles.items() if needle.search(data)}
        if depth < DEEPEST:
            for inner in unpacked(data):
                found |= self.bytes(inner, depth + 1)
        return found


def unpacked(data: bytes) -> Iterator[bytes]:
    """Yield what zstd, gzip, base64 and hex in `data` hold; broken ones as far as they go."""
    for at in _places(data, b"\x28\xb5\x2f\xfd"):
        yield _unzstd(data[at:])
    for at in _places(data, b"\x1f\x8b\x08"):
        try:
            yield zlib.decompressobj(31).decompress(data[at:], MOST_UNPACKED)
        except zlib.error:
            continue
    for run in _BASE64.findall(data):
        whole = run[: len(run) // 4 * 4] if len(run) % 4 == 1 else run + b"=" * (-len(run) % 4)
        yield base64.urlsafe_b64decode(whole.translate(bytes.maketrans(b"+/", b"-_")))
    for run in _HEX.findall(data):
        yield binascii.unhexlify(run)


def _unzstd(data: bytes) -> bytes:
    pieces = []
    frame = zstandard.ZstdDecompressor(max_window_size=2**27).decompressobj()
    try:
        for at in range(0, len(data), 4096):
            pieces.append(frame.decompress(data[at : at + 4096]))
            if frame.eof or sum(map(len, pieces)) > MOST_UNPACKED:
                break
    except zstandard.ZstdError:
        pass
    return b"".join(pieces)


def _places(data: bytes, magic: bytes) -> Iterator[int]:
    at = data.find(magic)
    while at >= 0:
        yield at
        at = data.find(magic, at + 1)


def _needles(secrets: Secrets) -> Iterator[tuple[str, re.Pattern[bytes]]]:
    words = secrets.words
    if words:
        for name in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
            yield f"text as {name}", _any_of([word.encode(name) for word in words], re.IGNORECASE)
    for name, runs, length in (
        ("ids", secrets.ids, IDS_IN_A_ROW),
        ("hashes", secrets.hashes, HASHES_IN_A_ROW),
    ):
        windows = list(_windows(runs, length))
        if windows:
            yield from _number_needles(name, windows)
    if secrets.keys:
        yield "keys", _any_of(list(secrets.keys))


def _windows(runs: Sequence[Sequence[int]], length: int) -> Iterator[Sequence[int]]:
    for run in runs:
        for at in range(len(run) - length + 1):
            window = run[at : at + length]
            if min(window) >= LEAST:
                yield window


def _number_needles(
    name: str, windows: Sequence[Sequence[int]]
) -> Iterator[tuple[str, re.Pattern[bytes]]]:
    decimal = [rb"\D{1,12}".join(str(one).encode() for one in window) for window in windows]
    yield f"{name} as decimals", re.compile(rb"(?<!\d)(?:" + b"|".join(decimal) + rb")(?!\d)")
    packed = [b"".join(map(msgspec.msgpack.encode, window)) for window in windows]
    yield f"{name} as msgpack", _any_of(packed)
    largest = max(max(window) for window in windows)
    for bits, code in ((16, "H"), (32, "I"), (64, "Q")):
        if largest >= 2**bits:
            continue
        for order in "<>":
            layout = f"{order}{len(windows[0])}{code}"
            yield (
                f"{name} as {order}u{bits}",
                _any_of([struct.pack(layout, *window) for window in windows]),
            )


def _any_of(needles: Sequence[bytes], flags: int = 0) -> re.Pattern[bytes]:
    return re.compile(b"|".join(map(re.escape, needles)), flags)

"""Unpack zstd and gzip streams piece by piece, so that no input can ask for unbounded memory."""

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

import zstandard

from detector.errors import InputError

MAX_ZSTD_WINDOW: Final = 2**27
"""Largest zstd window accepted (128 MiB, `zstd --long=27`): what the decoder must hold."""

ZSTD_STEP_BYTES: Final = 512
"""Compressed bytes fed at once. A 4-byte block can stand for 128 KiB, so a step makes at most
16 MiB; at real ratios the calls cost less than 1 % of reading."""

GIVEN_BYTES: Final = 128 * 1024
"""Unpacked bytes given at once: cut into empty lines, they take a hundred times as much."""

_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_SKIP_MAGIC: Final = b"\x2a\x4d\x18"  # after one byte 0x50..0x5f: a frame to skip
_ZSTD_SKIP_HIGH: Final = 5
_GZIP_MAGIC: Final = b"\x1f\x8b"
_MAGIC_BYTES: Final = 4
_GZIP_WBITS: Final = 31  # zlib: 15 bits of window, 16 for the gzip header


class CorruptStreamError(Exception):
    """The compressed stream breaks off, is damaged or is followed by something else."""


def unpack(blocks: Iterable[bytes], *, name: str) -> Iterator[bytes]:
    """Yield the unpacked bytes of a zstd, gzip or plain stream, all frames and members of it.

    Raises CorruptStreamError after the last good byte, InputError when a zstd window is too large.
    """
    source = iter(blocks)
    start = b""
    while len(start) < _MAGIC_BYTES and (block := next(source, b"")):
        start += block
    whole = chain([start], source)
    if _is_zstd(start):
        return _zstd(whole, name)
    return _gzip(whole) if start.startswith(_GZIP_MAGIC) else whole


def is_packed(start: bytes) -> bool:
    """Tell from its first 4 bytes whether a stream is compressed."""
    return _is_zstd(start) or start.startswith(_GZIP_MAGIC)


def _is_zstd(start: bytes) -> bool:
    skippable = start[1:_MAGIC_BYTES] == _ZSTD_SKIP_MAGIC and start[0] >> 4 == _ZSTD_SKIP_HIGH
    return start.startswith(_ZSTD_MAGIC) or skippable


def _zstd(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    decoder = zstandard.ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
    frame = None
    for block in blocks:
        for start in range(0, len(block), ZSTD_STEP_BYTES):
            piece = block[start : start + ZSTD_STEP_BYTES]
            while piece:
                frame = frame or decoder.decompressobj()
                try:
                    made = frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise _zstd_fault(error, name) from None
                yield from (made[at : at + GIVEN_BYTES] for at in range(0, len(made), GIVEN_BYTES))
                if not frame.eof:
                    break
                piece = frame.unused_data
                frame = None
    if frame is not None:
        raise CorruptStreamError


def _zstd_fault(error: Exception, name: str) -> Exception:
    if "too much memory" not in str(error):
        return CorruptStreamError()
    return InputError(
        f"the zstd window is larger than {MAX_ZSTD_WINDOW // 2**20} MiB",
        where=name,
        hint="compress again with --long=27 or less, or pipe it: zstd -dc --long=31 FILE | ... -",
    )


def _gzip(blocks: Iterable[bytes]) -> Iterator[bytes]:
    member = None
    for block in blocks:
        rest = block
        while rest:
            if member is None:
                rest = rest.lstrip(b"\0")  # gzip(1) allows padding between and after members
                if not rest:
                    break
                member = zlib.decompressobj(_GZIP_WBITS)
            try:
                yield member.decompress(rest, GIVEN_BYTES)
            except zlib.error:
                raise CorruptStreamError from None
            rest = member.unused_data if member.eof else member.unconsumed_tail
            if member.eof:
                member = None
    if member is not None:
        raise CorruptStreamError

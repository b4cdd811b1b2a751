"""What workers tell each other about shingles, as bytes: keyed tags, party numbers and times only.

A record is a fixed head, rows that say who and when, and one 64-bit tag for each shingle: 8 bytes a
shingle and 12 for each sequence of it. All numbers are little-endian. Neither tokens, token hashes
nor names are in it, and without the deployment's key a tag cannot be made or tested.
"""

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from detector.errors import RecordError
from detector.index.showings import Showings, Taint
from detector.sketch.tag_keys import PARTY_BITS
from ingest.limits import MAX_TIME_MS

SHOWN: Final = b"S"
"""First showings, on their way to the owner of their range."""

SHARED: Final = b"P"
"""Marks of shingles that several parties have shown, from the owner to everybody."""

TAINTED: Final = b"T"
"""Shingles that nobody may learn, from whoever has found them to everybody."""

MAX_TAGS: Final = 32_768
"""Tags of one record at most: 256 KB, the size that records of sequences aim at too."""

_MAGIC: Final = b"BWc1"
_HEAD: Final = struct.Struct("<4s c B 2x 4s I I q q")
"""Magic, kind, window, key id, rows, tags, event time now (ms), offset up to which all is told."""

_SHOWN_ROW: Final = np.dtype([("mark", "<i8"), ("tags", "<u4")])
_TAINT_ROW: Final = np.dtype(
    [("origin", "<u4"), ("receiver", "<u4"), ("since", "<i8"), ("at", "<i8"), ("tags", "<u4")]
)

_TIME_BITS: Final = 33
"""Bits of a mark below the party, as the tables of the memory pack it."""

_HINT: Final = "check who else writes to this topic, and that all workers have one version"


class Told(NamedTuple):
    """One decoded record; `showings` is empty for taints, `taints` for the rest."""

    kind: bytes
    showings: Showings
    taints: tuple[Taint, ...]
    now_ms: int
    upto: int
    """Offset in the range's own topic below which everything shared has been told (SHARED)."""
    window: int
    """Of which window the teller remembers a sample, 0 for every shingle."""


def pieces(shown: Showings) -> Iterator[Showings]:
    """Yield showings in parts that fit a record each."""
    for at in range(0, len(shown.tags), MAX_TAGS):
        yield Showings(shown.tags[at : at + MAX_TAGS], shown.marks[at : at + MAX_TAGS])


def encode_showings(
    kind: bytes, shown: Showings, *, key_id: str, now_ms: int, upto: int = 0, window: int = 0
) -> bytes:
    """Return a record of at most MAX_TAGS showings; neighbours with one mark share a row.

    `window` says what the teller remembers a sample of, 0 that it remembers every shingle.
    """
    marks = shown.marks
    begins = np.flatnonzero(np.concatenate([[True], marks[1:] != marks[:-1]])[: len(marks)])
    rows = np.empty(len(begins), _SHOWN_ROW)
    rows["mark"] = marks[begins]
    rows["tags"] = np.diff(np.append(begins, len(marks)))
    head = _HEAD.pack(
        _MAGIC, kind, window, bytes.fromhex(key_id), len(rows), len(marks), now_ms, upto
    )
    return b"".join((head, rows.tobytes(), shown.tags.astype("<i8", copy=False).tobytes()))


def encode_taints(taints: list[Taint], *, key_id: str, now_ms: int) -> bytes:
    """Return a record of taints that hold at most MAX_TAGS tags together."""
    rows = np.array(
        [(one.origin, one.receiver, one.since_ms, one.at_ms, len(one.tags)) for one in taints],
        _TAINT_ROW,
    )
    tags = np.concatenate([one.tags for one in taints])
    head = _HEAD.pack(_MAGIC, TAINTED, 0, bytes.fromhex(key_id), len(rows), len(tags), now_ms, 0)
    return b"".join((head, rows.tobytes(), tags.astype("<i8", copy=False).tobytes()))


def decode(value: bytes | None, *, key_id: str) -> Told:
    """Return what a record says.

    Raises RecordError("malformed") for bytes that no writer of this version makes, and
    RecordError("unknown_key") for tags under another secret: they could never match.
    """
    if value is None or len(value) < _HEAD.size or not value.startswith(_MAGIC):
        raise _malformed("it has no head of this version")
    _, kind, window, under, rows, tags, now_ms, upto = _HEAD.unpack_from(value)
    if under.hex() != key_id:
        raise RecordError(
            "unknown_key",
            "tags of shingles were made under another secret",
            hint="give all workers the same key file",
        )
    if kind not in (SHOWN, SHARED, TAINTED):
        raise _malformed("its kind is unknown")
    row = _TAINT_ROW if kind == TAINTED else _SHOWN_ROW
    if tags > MAX_TAGS or len(value) != _HEAD.size + rows * row.itemsize + tags * 8:
        raise _malformed("its length is not what its head says")
    if abs(now_ms) > MAX_TIME_MS or upto < 0:
        raise _malformed("a time lies outside the years 1 to 9999")
    table = np.frombuffer(value, row, rows, _HEAD.size)
    at = np.frombuffer(value, "<i8", tags, _HEAD.size + rows * row.itemsize).astype(np.int64)
    if int(table["tags"].sum(dtype=np.int64)) != tags:
        raise _malformed("its rows do not cover its tags")
    if kind == TAINTED:
        return Told(kind, _NONE, _taints(table, at), now_ms, upto, window)
    return Told(kind, _showings(table, at), (), now_ms, upto, window)


_NONE: Final = Showings(np.empty(0, np.int64), np.empty(0, np.int64))


def _showings(rows: NDArray[np.void], tags: NDArray[np.int64]) -> Showings:
    marks = rows["mark"].astype(np.int64)
    if len(marks) and int(marks.min()) >> _TIME_BITS < _FIRST_PARTY + 1:
        raise _malformed("a party number is out of range")
    return Showings(tags, np.repeat(marks, rows["tags"]))


_FIRST_PARTY: Final = 1
"""Parties count from 1; a mark holds the number plus one."""


def _taints(rows: NDArray[np.void], tags: NDArray[np.int64]) -> tuple[Taint, ...]:
    if len(rows):
        parties = np.concatenate([rows["origin"], rows["receiver"]])
        if int(parties.min()) < _FIRST_PARTY or int(parties.max()) >= (1 << PARTY_BITS) - 1:
            raise _malformed("a party number is out of range")
        times = np.concatenate([rows["since"], rows["at"]])
        if int(times.min()) < -MAX_TIME_MS or int(times.max()) > MAX_TIME_MS:
            raise _malformed("a time lies outside the years 1 to 9999")
    ends = np.cumsum(rows["tags"], dtype=np.int64).tolist()
    begins = [0, *ends[:-1]]
    return tuple(
        Taint(tags[begin:end], origin, receiver, since_ms, at_ms)
        for begin, end, (origin, receiver, since_ms, at_ms, _) in zip(
            begins, ends, rows.tolist(), strict=False
        )
    )


def _malformed(what: str) -> RecordError:
    return RecordError("malformed", f"a record about shingles cannot be read: {what}", hint=_HINT)

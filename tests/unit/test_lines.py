"""Lines: unpacked by content, numbered, bounded in memory, and counted when lost."""

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import zstandard

from detector.errors import InputError
from ingest.coverage import Coverage
from ingest.sources.lines import Lines, open_lines

TEXT = b"one\ntwo\r\n\nfour"
EXPECTED = [(1, b"one"), (2, b"two\r"), (3, b""), (4, b"four")]


def _zstd(data: bytes, *, window_log: int = 20) -> bytes:
    parameters = zstandard.ZstdCompressionParameters(window_log=window_log)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return bytes(packer.compress(data) + packer.flush())


def _read(data: bytes, limit: int = 1000) -> tuple[list[tuple[int, bytes]], Coverage]:
    coverage = Coverage()
    return list(Lines(io.BytesIO(data), coverage=coverage, max_line_bytes=limit)), coverage


@pytest.mark.parametrize(
    "data",
    [
        TEXT,
        b"\xef\xbb\xbf" + TEXT,
        _zstd(TEXT),
        _zstd(TEXT[:5]) + _zstd(TEXT[5:]),
        b"\x5a\x2a\x4d\x18\x03\x00\x00\x00abc" + _zstd(TEXT),
        _zstd(TEXT, window_log=27),
        gzip.compress(TEXT, mtime=0),
        gzip.compress(TEXT[:5], mtime=0) + bytes(7) + gzip.compress(TEXT[5:], mtime=0) + bytes(512),
    ],
)
def test_plain_and_packed_streams_give_the_same_lines(data: bytes) -> None:
    lines, coverage = _read(data)
    assert lines == EXPECTED
    assert not coverage.broken_by_reason


class _OneByteStream(io.RawIOBase):
    """A pipe that hands over one byte at a time."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, _size: int = -1) -> bytes:
        return self._data.read(1)


@pytest.mark.parametrize("data", [TEXT, _zstd(TEXT), gzip.compress(TEXT, mtime=0)])
def test_the_size_of_reads_does_not_matter(data: bytes) -> None:
    stream: io.RawIOBase = _OneByteStream(data)
    assert list(Lines(stream, coverage=Coverage())) == EXPECTED  # type: ignore[arg-type]


def test_a_long_line_is_skipped_and_counted_with_its_number() -> None:
    lines, coverage = _read(b"a\n" + b"x" * 300_000 + b"\nb\n" + b"y" * 1001, limit=1000)
    assert lines == [(1, b"a"), (3, b"b")]
    assert coverage.broken_by_reason == {"line_too_long": 2}
    assert [sample.line for sample in coverage.broken_samples] == [2, 4]


def test_a_line_of_exactly_the_limit_is_kept() -> None:
    lines, coverage = _read(b"x" * 1000 + b"\n", limit=1000)
    assert len(lines) == 1
    assert not coverage.broken_by_reason


@pytest.mark.parametrize("pack", [_zstd, gzip.compress])
@pytest.mark.parametrize("cut", [5, 20, -1])
def test_a_stream_that_breaks_off_is_counted_once(pack: type[bytes], cut: int) -> None:
    whole = pack(b"".join(b"line %d\n" % number for number in range(5000)))
    lines, coverage = _read(whole[:cut])
    assert coverage.broken_by_reason == {"truncated_stream": 1}
    assert lines == [(number + 1, b"line %d" % number) for number in range(len(lines))]


@pytest.mark.parametrize("pack", [_zstd, gzip.compress])
def test_damage_and_trailing_rubbish_are_counted(pack: type[bytes]) -> None:
    good = pack(TEXT)
    for data in (good + b"rubbish", good[:8] + b"\xff" * 20 + good[28:]):
        lines, coverage = _read(data)
        assert coverage.broken_by_reason == {"truncated_stream": 1}
        assert len(lines) <= 4


def test_a_window_beyond_the_limit_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(InputError, match=r"128 MiB.*--long=27"):
        _read(_zstd(b"x", window_log=28))


@pytest.mark.parametrize("data", [TEXT, TEXT + b"\n"])
def test_a_last_line_without_a_line_feed_is_told_once_it_has_come(data: bytes) -> None:
    lines = Lines(io.BytesIO(data), coverage=Coverage())
    told = [lines.is_cut_off for _ in lines]
    assert told == [False, False, False, not data.endswith(b"\n")]


def test_head_does_not_use_lines_up() -> None:
    lines = Lines(io.BytesIO(TEXT), coverage=Coverage())
    assert lines.head(2) == [b"one", b"two\r"]
    assert lines.head(1) == [b"one"]
    assert lines.head(9) == [line for _, line in EXPECTED]
    assert list(lines) == EXPECTED


def test_progress_counts_packed_bytes_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"  # the name says nothing
    path.write_bytes(_zstd(TEXT * 1000))
    with open_lines(path, coverage=Coverage()) as lines:
        assert lines.total_bytes == path.stat().st_size
        list(lines)
        assert lines.bytes_read == lines.total_bytes


def test_what_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent: cannot be read: No such file"):
        open_lines(tmp_path / "absent", coverage=Coverage())
    with pytest.raises(InputError, match="directory"):
        open_lines(tmp_path, coverage=Coverage())
    with pytest.raises(InputError):
        open_lines("a\0b", coverage=Coverage())


class _FailingStream(io.RawIOBase):
    def read(self, _size: int = -1) -> bytes:
        raise OSError(5, "Input/output error")


def test_a_disk_that_fails_is_an_input_error() -> None:
    stream: io.RawIOBase = _FailingStream()
    with pytest.raises(InputError, match="Input/output error"):
        list(Lines(stream, coverage=Coverage(), name="disk"))  # type: ignore[arg-type]


def test_a_fifo_has_no_total(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
    writer.start()
    with open_lines(path, coverage=Coverage()) as lines:
        assert lines.total_bytes is None
        assert list(lines) == EXPECTED
    writer.join()


_STDIN = """
from ingest.coverage import Coverage
from ingest.sources.lines import open_lines
with open_lines("-", coverage=Coverage()) as lines:
    print(list(lines))
"""


def test_standard_input_is_read_and_unpacked() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _STDIN], input=_zstd(TEXT), capture_output=True, check=True
    )
    assert done.stdout.decode().strip() == str(EXPECTED)


_GIGABYTE = """
import resource, sys
from ingest.coverage import Coverage
from ingest.sources.lines import open_lines
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
coverage = Coverage()
with open_lines(sys.argv[1], coverage=coverage) as lines:
    assert list(lines) == [(2, b"last")]
assert coverage.broken_by_reason == {"line_too_long": 1}
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.parametrize("form", ["plain", "zstd", "gzip"])
def test_a_gigabyte_on_one_line_stays_below_two_longest_lines(tmp_path: Path, form: str) -> None:
    path = tmp_path / "log"
    block = bytes(2**26)
    if form == "plain":
        with path.open("wb") as file:
            file.truncate(2**30)
            file.seek(2**30)
            file.write(b"\nlast\n")
    elif form == "zstd":
        with zstandard.open(path, "wb") as packed:
            for _ in range(16):
                packed.write(block)
            packed.write(b"\nlast\n")
    else:
        with gzip.open(path, "wb", compresslevel=1) as packed:
            for _ in range(16):
                packed.write(block)
            packed.write(b"\nlast\n")
    done = subprocess.run(
        [sys.executable, "-c", _GIGABYTE, str(path)], capture_output=True, check=True
    )
    assert int(done.stdout) * 1024 < 2 * 64 * 2**20

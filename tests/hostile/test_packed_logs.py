"""Compressed logs made to fill memory: whoever reads them holds a block at a time."""

import gzip
import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, write_config, write_jsonl, write_sglang
from tests.unit.growing_log import Follower
from tests.unit.sidecars import Station

UNPACKED = 96 * 2**20
"""What a bomb becomes: 95 KB as gzip, 3 KB as zstd; a line may have 64 MiB."""

MOST_HELD = 2 * 64 * 2**20
"""A line of 64 MiB while it is put together, and the block behind it."""

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, 9),
    ".zst": lambda data: zstandard.compress(data, 3),
}

EMPTY_LINES = 2**21

MOST_HELD_OF_LINES = 32 * 2**20
"""A block of them, each with its place in the log."""

FILLS = {"one line": b"x", "lines": b"x" * 65_535 + b"\n", "NUL": b"\0"}


def _bomb(fill: bytes, pack: Callable[[bytes], bytes]) -> bytes:
    return pack(fill * (UNPACKED // len(fill)) + b"\n")


def _most_held(follower: Follower) -> int:
    """Follow a log to its end; return the bytes that were held at the most."""
    tracemalloc.start()
    try:
        while follower.log.is_behind:
            follower.log.poll(0.0)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        follower.log.close()


@pytest.mark.parametrize("suffix", PACKERS)
@pytest.mark.parametrize("fill", FILLS)
def test_a_bomb_in_a_folder_of_logs_is_read_block_by_block(
    tmp_path: Path, fill: str, suffix: str
) -> None:
    path = tmp_path / f"server.log{suffix}"
    path.write_bytes(_bomb(FILLS[fill], PACKERS[suffix]))
    follower = Follower(path)
    assert _most_held(follower) < MOST_HELD
    # NUL is what a freed head reads as: it is passed over
    too_long = {"line_too_long": 1} if fill == "one line" else {}
    assert follower.coverage.broken_by_reason == too_long


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_bomb_of_empty_lines_is_cut_into_few_at_once(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"server.log{suffix}"
    path.write_bytes(PACKERS[suffix](b"\n" * EMPTY_LINES))
    assert _most_held(Follower(path)) < MOST_HELD_OF_LINES


@pytest.mark.parametrize("suffix", PACKERS)
def test_a_bomb_beside_a_sound_log_costs_a_sidecar_nothing(tmp_path: Path, suffix: str) -> None:
    sound = write_sglang(tmp_path / "sound.log", pairs(2))
    (tmp_path / f"trap.log{suffix}").write_bytes(_bomb(b"x", PACKERS[suffix]))
    station = Station(tmp_path, str(tmp_path / "*.log"), str(tmp_path / f"*.log{suffix}"))
    station.start()
    station.turns(12)
    station.stop()
    assert station.expected(sound) == set(station.told())


def _zip(data: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../server.log", data)
    return packed.getvalue()


def _in_itself(pack: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    return lambda data: pack(pack(pack(data)))


@pytest.mark.parametrize("form", ["zip", ".gz", ".zst"])
def test_archives_and_packs_of_packs_are_not_opened_further(
    tmp_path: Path, capsys: Capture, form: str
) -> None:
    """One layer is unpacked, never what lies in it, and no archive at all."""
    sound = write_jsonl(tmp_path / "sound.jsonl", pairs(2))
    trap = tmp_path / "trap.jsonl"
    pack = _zip if form == "zip" else _in_itself(PACKERS[form])
    trap.write_bytes(pack(sound.read_bytes()))
    config = write_config(tmp_path / "config.yaml", detection={"commonness": {"learning_ms": 0}})
    code, out, err = call(capsys, "replay", trap, "--format", "jsonl", "--config", config)
    assert code == 2
    assert "acme" not in out + err
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "config.yaml", "sound.jsonl", "trap.jsonl",
    ]  # fmt: skip

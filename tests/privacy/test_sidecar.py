"""A sidecar leaves no text, ids, hashes or keys: in checkpoint, health, log lines and messages."""

import logging
from pathlib import Path

import pytest

from detector.sketch.token_table import TokenTable
from ingest.key_file import load_secret
from tests.e2e.traffic import WRITERS, pairs
from tests.privacy.canary import IDS, TEXT, WORDS
from tests.privacy.sweep import Secrets, Sweep
from tests.streams.process import until
from tests.unit.growing_log import GrowingLog
from tests.unit.sidecars import Station

PAIRS = 3


def sweep_of(key: Path) -> Sweep:
    keys = load_secret(key).keys()
    raw = (bytes.fromhex(key.read_text()), keys.hash_key, keys.seal_key, keys.tag_key)
    spelled = [form for one in raw for form in (one.hex().encode(), one.hex().upper().encode())]
    hashes = TokenTable(keys.hash_key).hash(IDS).tolist()
    return Sweep(Secrets(words=WORDS, ids=(IDS,), hashes=(hashes,), keys=(*raw, *spelled)))


def broken(whole: bytes) -> bytes:
    """Return what no reader can use: halves of lines, and lines that are none."""
    halves = b"".join(line[: len(line) // 2] + b"\n" for line in whole.splitlines())
    return halves + TEXT.encode() + b"\n\xff" + str(IDS).encode() + b"\n"


def is_refused(station: Station) -> bool:
    """Let the sidecar work; tell whether it says by now that something keeps it from sending."""
    assert station.running is not None
    station.turns()
    return bool(station.running.look().reasons)


@pytest.mark.parametrize("log_format", WRITERS)
def test_nothing_gets_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, log_format: str
) -> None:
    caplog.set_level(logging.DEBUG)
    given = tmp_path / "given"
    given.mkdir()
    whole = WRITERS[log_format](given / "whole", pairs(PAIRS, content=IDS), TEXT).read_bytes()
    log = GrowingLog(given / "engine.log")
    station = Station(tmp_path, str(log.path), health_file=str(tmp_path / "health"))
    station.start()
    station.turns()
    log.write(whole + broken(whole))
    station.turns()
    station.gate.refuses = True
    log.write(whole[: len(whole) // 2])
    until(lambda: is_refused(station))
    station.crash()
    station.start()
    station.turns()
    log.copy_truncate()
    log.write(whole[len(whole) // 2 :])
    station.turns()
    station.stop()
    log.close()
    assert station.told()
    sweep = sweep_of(station.key)
    assert sweep.bytes(whole) >= {"text as utf-8", "ids as decimals"}
    left_out = [station.key, *given.rglob("*")]
    assert (tmp_path / "checkpoint").exists()
    assert (tmp_path / "health").exists()
    assert not sweep.tree(tmp_path, leave_out=left_out)
    assert not sweep.bytes(caplog.text.encode())
    sent = [record for topic in station.topics for record in station.messages(topic)]
    for record in sent:
        for part in (record.value, record.key, *(value for _, value in record.headers)):
            assert not sweep.bytes(part or b"")

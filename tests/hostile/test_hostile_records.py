"""Hostile records on every input of a real worker cost nothing but themselves."""

from pathlib import Path

from tests.hostile.attack import attack
from tests.hostile.verdict import faults
from tests.streams.real import make_cluster
from tests.unit.wire import SECRET_BYTES

RECORDS = 600
"""On each of the three inputs; `make hostile` sends 100,000."""

SEED = 5


def test_every_record_is_accounted_for(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    key_file = tmp_path / "key"
    key_file.touch(mode=0o600)
    key_file.write_text(SECRET_BYTES.hex())
    report = attack(
        make_cluster(kafka, topic_prefix, key_file), RECORDS, SEED, tmp_path / "log", 120
    )
    assert faults(report) == []
    for told in report.topics.values():
        assert told.sent == RECORDS
        assert told.refused > 0.9 * RECORDS
        assert told.harmless > 0
    assert len(report.good_found) == 6
    assert set(report.letters) > {"wrong_type", "undecodable", "content_type", "empty"}

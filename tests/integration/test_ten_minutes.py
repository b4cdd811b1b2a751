"""The block "Ten minutes" of the README, typed as it stands: Kafka, worker, sidecar, findings."""

import re
from pathlib import Path

from tests.content.doc_commands import blocks
from tests.content.tree import ROOT
from tests.e2e.pasted import checkout, paste
from tests.kafka.__main__ import down
from tests.kafka.jars import class_path
from tests.services.ports import free_port

HALF_A_MINUTE = "sleep 30;"

SOONER = (
    "until curl -s localhost:9464/metrics | grep -q 'severity=\"high\"} [1-9]'; do sleep 1; done;"
)

TIMEOUT_S = 270.0


def test_ten_minutes(tmp_path: Path) -> None:
    """Only the ports are others, and half a minute ends with the first sure finding."""
    (block,) = [one.text for one in blocks(ROOT / "README.md") if "make kafka-up" in one.text]
    assert block.count(HALF_A_MINUTE) == 1
    worker, sidecar = str(free_port()), str(free_port())
    block = block.replace(HALF_A_MINUTE, SOONER).replace("9464", worker).replace("9465", sidecar)
    folder = checkout(tmp_path)
    (folder / ".run").mkdir()
    jars = Path(class_path()).parent
    (folder / ".run" / jars.name).symlink_to(jars)
    try:
        done = paste(block, folder, timeout_s=TIMEOUT_S, BLEEDWATCH_METRICS__PORT=worker)
    finally:
        down(folder / ".run")
    assert done.returncode == 0, done.stderr
    assert re.search(r'^bleedwatch_findings_total\{.*severity="high"\} [1-9]', done.stdout, re.M)
    assert re.search(r"sidecar stopped; all is acknowledged, [1-9]\d* sequences", done.stderr)
    assert "worker stopped and left its group" in done.stderr
    assert "has ended" in done.stdout
    assert "Traceback" not in done.stderr
    assert not (folder / ".run" / "kafka.env").exists()

"""The patch for vLLM's umask: the command that it makes runs, and a group may write its files."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.content.tree import ROOT

PATCH = ROOT / "helm" / "examples" / "vllm-umask.yaml"


def patched(document: Any) -> Any:
    """Apply the patch's insertions into lists (RFC 6902, 4.1)."""
    for change in yaml.safe_load(PATCH.read_text(encoding="utf-8")):
        assert change["op"] == "add"
        *way, last = change["path"].strip("/").split("/")
        place = document
        for step in way:
            place = place[int(step) if isinstance(place, list) else step]
        place.insert(int(last), change["value"])
    return document


def test_the_engine_gets_its_words_and_makes_files_that_its_group_may_write(tmp_path: Path) -> None:
    log = tmp_path / "vllm log.txt"
    script = "import sys; open(sys.argv[1], 'w').write(sys.argv[2])"
    engine = {"name": "vllm", "command": [sys.executable, "-c", script, str(log), "it's $HOME"]}
    pod = {"template": {"spec": {"containers": [engine, {"name": "other", "command": ["true"]}]}}}
    containers = patched({"spec": pod})["spec"]["template"]["spec"]["containers"]
    assert containers[1] == {"name": "other", "command": ["true"]}
    subprocess.run(containers[0]["command"], check=True, umask=0o022)
    assert log.read_text() == "it's $HOME"
    assert log.stat().st_mode & 0o777 == 0o664

"""The example of a workflow is one, and its commands are commands of the program."""

import shlex

import yaml

from tests.check.corpus_files import FOLDER, MODELS
from tests.content.tree import ROOT
from tests.e2e.program import Capture, call

EXAMPLE = ROOT / "docs" / "examples" / "github-check-config.yaml"


def test_the_steps_of_the_workflow_run(capsys: Capture) -> None:
    workflow = yaml.safe_load(EXAMPLE.read_text(encoding="utf-8"))
    assert workflow[True] == {"pull_request": {"paths": ["deploy/**"]}}  # YAML 1.1 reads on as true
    scripts = [step["run"] for step in workflow["jobs"]["check"]["steps"] if "run" in step]
    commands = [one for one in scripts if one.startswith("bleedwatch ")]
    assert len(commands) == 2
    put_in = {
        "deploy/*.yaml": str(FOLDER / "sglang-deployment-small-pool.yaml"),
        "deploy/config.json": str(MODELS / "llama.json"),
        "$(cat deploy/flags.txt)": "--enable-lmcache",
    }
    codes, written = [], ""
    for command in commands:
        words = [put_in.get(word, word) for word in shlex.split(command.replace("\\\n", " "))[1:]]
        code, out, _ = call(capsys, *words)
        codes.append(code)
        written += out
    assert codes == [1, 1]
    assert "::error file=" in written

"""`check config` as a command: the public incident, the forms of output, exit codes."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from detector.check.plan import CHECKS
from detector.check.scope import VOUCHED
from tests.check.corpus_files import FOLDER, MODELS
from tests.content.tree import ROOT
from tests.e2e.program import Capture, call, run

PAGE = (ROOT / "docs" / "check-config.md").read_text(encoding="utf-8")

INCIDENT = (
    "--engine", "sglang", "--model-config", str(MODELS / "long.json"),
    "--args", "--disaggregation-mode prefill --max-total-tokens 681280",
)  # fmt: skip


def rows(out: str) -> dict[str, dict[str, str]]:
    """Return what each check said, by its name."""
    return {row["check"]: row for row in json.loads(out)}


def test_the_public_incident_is_refused_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text((MODELS / "long.json").read_text())
    done = run(
        "check", "config", "--engine", "sglang", "--model-config", "config.json",
        "--args", "--disaggregation-mode prefill --max-total-tokens 681280", cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 1
    out = done.stdout.decode()
    assert "fail  pool-covers-context" in out
    assert "pool 681,280 tokens (--max-total-tokens 681280)" in out
    assert "context 1,048,576 (the model's max_position_embeddings 1,048,576)" in out
    assert "Customers may send prompts that this engine cannot hold: 367,296 tokens" in out
    assert "answered one customer from what another one had left there" in out
    assert "raise the pool to 1,048,576 tokens or more" in out
    assert "rejects from 681,274 tokens on (min(context 1,048,576, pool 681,280) - 6)" in out
    assert b"do not deploy this" in done.stderr


def test_a_pair_is_compared_by_the_limits_that_sglang_has(capsys: Capture) -> None:
    code, out, _ = call(
        capsys, "check", "config", *INCIDENT, "-o", "json",
        "--args", "--disaggregation-mode decode --max-total-tokens 2040000",
    )  # fmt: skip
    assert code == 1
    said = rows(out)["input-limits"]
    assert said["verdict"] == "fail"
    assert "prefill rejects from 681,274 tokens on" in said["found"]
    assert "from 1,048,570 (min(context 1,048,576, pool 2,040,000) - 6)" in said["found"]
    assert "--context-length 681280 on decode" in said["next_step"]


def test_a_sound_configuration_exits_0_and_lists_nothing_but_doubts(capsys: Capture) -> None:
    flags = "sglang serve --max-total-tokens 40k --disable-radix-cache --host 127.0.0.1"
    options = [word for name in ("request-ids", "text-only", "tap") for word in ("--vouch", name)]
    code, out, err = call(
        capsys, "check", "config", "--args", flags + " --max-running-requests 8",
        "--model-config", str(MODELS / "small.json"), "--mean-tokens", "5000", *options,
    )  # fmt: skip
    assert (code, out) == (0, "")
    assert "1 engine, 9 answers: 0 fail, 0 warn, 0 unknown, 9 pass" in err


def test_all_lists_what_passes(capsys: Capture) -> None:
    _, out, _ = call(capsys, "check", "config", *INCIDENT, "--all")
    assert "pass  transfer-metadata" in out
    assert out.index("fail  ") < out.index("warn  ") < out.index("unknown  ") < out.index("pass  ")


def test_junit_counts_failures_and_what_is_unknown(capsys: Capture) -> None:
    code, out, _ = call(capsys, "check", "config", *INCIDENT, "-o", "junit")
    suite = ElementTree.fromstring(out)
    assert code == 1
    assert suite.attrib["failures"] == "1" == str(len(suite.findall("*/failure")))
    assert int(suite.attrib["skipped"]) == len(suite.findall("*/skipped")) > 0
    assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))


def test_github_is_shown_the_line_at_fault(capsys: Capture) -> None:
    file = FOLDER / "sglang-deployment-small-pool.yaml"
    code, out, _ = call(
        capsys, "check", "config", file, "--model-config", MODELS / "llama.json", "-o", "github"
    )
    (error,) = [line for line in out.splitlines() if line.startswith("::error ")]
    number = next(
        number
        for number, line in enumerate(file.read_text().splitlines(), start=1)
        if "--max-total-tokens" in line
    )
    assert code == 1
    assert error.startswith(f"::error file={file},line={number},title=pool-covers-context%3A ")
    assert out.count("::warning ") >= 1


def test_names_in_manifests_reach_no_terminal_as_they_are(capsys: Capture, tmp_path: Path) -> None:
    text = (FOLDER / "sglang-deployment-small-pool.yaml").read_text()
    name = text.split("name: ", 1)[1].split("\n", 1)[0]
    file = tmp_path / "deployment.yaml"
    file.write_text(text.replace(f"name: {name}", 'name: "\\e[31mred"', 1))
    for form in ("github", "table", "junit", "json"):
        _, out, err = call(capsys, "check", "config", file, "-o", form)
        assert "red" in out
        assert "\x1b" not in out + err


def test_standard_input_is_read(tmp_path: Path) -> None:
    text = (FOLDER / "helm-output-blocks.yaml").read_bytes()
    done = run("check", "config", "-", "-o", "json", stdin=text, cwd=tmp_path)
    assert done.returncode == 1
    assert rows(done.stdout.decode())["pool-covers-context"]["where"].startswith("standard input:")


def test_several_models_have_a_config_each(capsys: Capture) -> None:
    lines = ("--args", "sglang serve --model-path a --max-total-tokens 40000", "--args",
             "vllm serve b --num-gpu-blocks-override 1000")  # fmt: skip
    code, _, err = call(capsys, "check", "config", *lines, "--model-config", MODELS / "small.json")
    assert code == 2
    assert "2 models are served: of which one is it?" in err
    given = (f"a={MODELS / 'small.json'}", f"b={MODELS / 'llama.json'}")
    code, out, _ = call(
        capsys, "check", "config", *lines, "--model-config", given[0], "--model-config", given[1],
        "-o", "json",
    )  # fmt: skip
    found = [row for row in json.loads(out) if row["check"] == "pool-covers-context"]
    assert [row["verdict"] for row in found] == ["fail", "pass"]
    assert found[0]["engine"] == "the engine of --args, number 2"


@pytest.mark.parametrize("word", VOUCHED)
def test_every_word_that_can_be_stated_changes_a_verdict(capsys: Capture, word: str) -> None:
    line = "sglang serve --model-path m --max-total-tokens 1000 --host 0.0.0.0"
    before = rows(call(capsys, "check", "config", "--args", line, "-o", "json")[1])
    after = rows(call(capsys, "check", "config", "--args", line, "-o", "json", "--vouch", word)[1])
    changed = [name for name in before if before[name]["verdict"] != after[name]["verdict"]]
    assert changed
    assert all(after[name]["verdict"] == "pass" for name in changed)
    assert all("as stated" in after[name]["found"] for name in changed)


def test_the_page_lists_every_check_and_word_as_the_code_has_them() -> None:
    for check in CHECKS:
        assert f"| `{check.name}` | {check.about} |" in PAGE
    for word, meaning in VOUCHED.items():
        assert f"| `{word}` | {meaning} |" in PAGE

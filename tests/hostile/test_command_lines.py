"""Odd names on the command line: logs that are called so, files to write, engines."""

import os
import shlex
from pathlib import Path

import pytest

from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, write_config, write_sglang
from tests.hostile.test_file_tricks import ODD_NAMES


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return write_config(
        tmp_path / "config.yaml",
        tenancy={"rules": [{"kind": "header", "name": "x-tenant-id"}]},
        detection={"commonness": {"learning_ms": 0}},
    )


@pytest.mark.parametrize("name", [name for name in ODD_NAMES if name[0] != "-"])
def test_a_log_of_an_odd_name_is_searched(
    tmp_path: Path, config: Path, capsys: Capture, name: str
) -> None:
    log = write_sglang(tmp_path / name, pairs(1))
    code, out, err = call(capsys, "replay", log, "--config", config)
    assert code == 1, err
    assert "globex" in out
    assert "\x1b" not in out + err


def test_the_command_that_is_told_is_quoted(
    tmp_path: Path, config: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = write_sglang(tmp_path / "server.log", pairs(1))
    name = "found; touch never #.jsonl"
    _, _, err = call(capsys, "replay", log, "--config", config, "--save", name)
    (told,) = [line for line in err.splitlines() if line.startswith("next: ")]
    assert shlex.split(told)[-1] == name


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[2J", "a" * 2**16, "a\u202eb", "\udcff"])
@pytest.mark.parametrize("option", ["--engine", "--kv-pool"])
def test_what_is_no_name_is_refused_at_once(capsys: Capture, option: str, name: str) -> None:
    code, out, err = call(capsys, "replay", os.devnull, option, name)
    assert (code, out) == (2, "")
    assert f"'{option}': no name" in err
    assert len(err) < 1_000

"""The doctor on genuine logs: what is missing in them is named, and nothing else."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from detector.config.load import load_settings
from detector.doctor import logs
from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level

SGLANG_RULES = '[{"kind": "field", "name": "extra_key"}, {"kind": "field", "name": "user"}]'


def facts(tmp_path: Path, name: str) -> Facts:
    """Return what the end of one captured log shows."""
    source = Path(os.environ["BLEEDWATCH_EVAL_DATA"]) / "engine-logs" / name
    path = tmp_path / "server.log"
    done = subprocess.run(["zstd", "-dcf", str(source)], capture_output=True, check=True)
    path.write_bytes(done.stdout)
    flags = [f"sidecar.files={json.dumps([str(path)])}", f"tenancy.rules={SGLANG_RULES}"]
    return Facts(load_settings(environment={}, assignments=flags).settings)


def test_a_level_3_log_is_whole_but_for_prompts_that_come_as_text(tmp_path: Path) -> None:
    given = facts(tmp_path, "sglang/a-level3-json/reqlog/vm_0.log.zst")
    assert [verdict.level for verdict in logs.requests(given)] == [Level.OK]
    assert {verdict.level for verdict in logs.token_ids(given)} <= {Level.OK, Level.WARNING}
    assert not [one for one in logs.token_ids(given) if one.found.startswith("responses")]


@pytest.mark.parametrize(("level", "said"), [("2", "truncated"), ("1", "not logged")])
def test_lower_levels_are_told_with_the_flag(tmp_path: Path, level: str, said: str) -> None:
    given = facts(tmp_path, f"sglang/isolated-logger/level{level}_json_3000tok.log")
    verdicts = list(logs.token_ids(given))
    assert verdicts
    assert {verdict.level for verdict in verdicts} == {Level.ERROR}
    assert all(said in verdict.found for verdict in verdicts)
    assert all("--log-requests-level to 3" in verdict.next_step for verdict in verdicts)


def test_a_vllm_log_at_info_has_no_ids(tmp_path: Path) -> None:
    given = facts(tmp_path, "vllm/e-fault-leak/runE_leak_server.log.zst")
    prompts, responses = logs.token_ids(given)
    assert (prompts.level, responses.level) == (Level.ERROR, Level.ERROR)
    assert "DEBUG" in prompts.next_step
    assert "--enable-log-outputs" in responses.next_step


def test_a_vllm_log_at_debug_lacks_what_this_version_does_not_log(tmp_path: Path) -> None:
    given = facts(tmp_path, "vllm/a-debug-text/server.log.zst")
    assert [verdict.level for verdict in logs.requests(given)] == [Level.OK]
    assert {verdict.level for verdict in logs.token_ids(given)} == {Level.WARNING}


def test_an_engine_log_without_requests_says_that_logging_is_off(tmp_path: Path) -> None:
    given = facts(tmp_path, "sglang/a-level3-json/server.log.stderr")
    (verdict,) = logs.requests(given)
    assert verdict.level is Level.ERROR
    assert "--log-requests --log-requests-level 3" in verdict.next_step

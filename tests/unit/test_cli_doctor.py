"""`bleedwatch doctor` as a program: what it prints, and how it ends."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from detector.cli.app import app
from detector.doctor.plan import CHECKS
from detector.doctor.visibility import KINDS, flags_for, load_visibility
from detector.errors import UsageError
from ingest.key_file import new_secret
from tests.content.tree import ROOT
from tests.unit.engine_server import engine_server, vllm_page

NO_CLUSTER = (
    "--set=kafka.bootstrap_servers=127.0.0.1:9",
    "--set=kafka.connect_timeout_ms=300",
)


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments, *NO_CLUSTER, "-o", "json"])


def test_faults_are_told_and_make_the_exit_code_1(tmp_path: Path) -> None:
    key = tmp_path / "key"
    new_secret(key)
    key.chmod(0o644)
    done = doctor("--key-file", str(key))
    assert done.exit_code == 1
    rows = json.loads(done.stdout)
    assert [(row["check"], row["level"]) for row in rows] == [
        ("key file", "error"),
        ("kafka", "error"),
    ]
    assert "0644" in rows[0]["found"]
    assert rows[0]["next_step"] == f"chmod 600 {key}"
    assert key.read_text().strip() not in done.output


def test_a_sidecar_is_looked_at_as_a_whole(tmp_path: Path) -> None:
    key = tmp_path / "key"
    new_secret(key)
    log = tmp_path / "server.log"
    log.write_text("")
    with engine_server(metrics=vllm_page()) as server:
        done = doctor(
            "sidecar",
            "--key-file",
            str(key),
            f"--set=sidecar.files=['{log}']",
            f"--set=scrape.targets=[{{url: '{server.url}', engine: e}}]",
        )
    found = {row["check"]: row for row in json.loads(done.stdout)}
    assert found["key file"]["level"] == "ok"
    assert found["request log"]["subject"] == str(log)
    assert found["metrics"]["subject"] == "e"


def test_without_a_key_file_the_next_step_makes_one() -> None:
    (first, _) = json.loads(doctor().stdout)
    assert "bleedwatch key new" in first["next_step"]


def test_flags_of_one_version() -> None:
    newer = json.loads(doctor("--flags", "vllm=0.33.0").stdout)
    older = json.loads(doctor("--flags", "vllm=0.16.0").stdout)
    assert {row["engine"] for row in newer} == {"vllm"}
    only_newer = {row["flag"] for row in newer} - {row["flag"] for row in older}
    assert "VLLM_REQUEST_BODY_LOG_LEVEL=INFO" in only_newer
    assert all(row["shows"] and row["costs"] for row in newer)


def test_flags_for_people_can_be_copied() -> None:
    done = CliRunner().invoke(app, ["doctor", "--flags", "sglang"], env={"COLUMNS": "40"})
    assert "sglang: SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE=0 (optional)\n" in done.stdout
    assert "sglang: --log-requests-level 3\n" in done.stdout


def test_flags_of_all_engines() -> None:
    assert {kind for kind, _ in flags_for("all")} == set(KINDS) == set(load_visibility())


@pytest.mark.parametrize("wanted", ["other", "", "vllm=new", "=1"])
def test_an_unknown_engine_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError, match="no such engine"):
        flags_for(wanted)


def test_every_check_has_a_name_of_its_own_and_is_documented() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    names = [check.name for check in CHECKS]
    assert len(set(names)) == len(names)
    assert [name for name in names if f"| `{name}` |" not in page] == []
    assert all(check.probe.__doc__ and check.about.endswith(".") for check in CHECKS)


@pytest.mark.parametrize("wanted", ["vllm=99", "vllm=0.34", "vllm=0.10.2", "sglang=0.5.24"])
def test_a_version_that_nobody_looked_at_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError, match=r"flags are known of (vllm|sglang) 0\.") as caught:
        flags_for(wanted)
    kind, _, newest = caught.value.hint.split()[3].partition("=")
    assert flags_for(f"{kind}={newest}"), "the hint is one that works"


@pytest.mark.parametrize("wanted", ["vllm=0.33.1", "vllm=0.33.0rc1", "vllm=0.11", "sglang=0.5.23"])
def test_versions_of_known_releases_are_taken(wanted: str) -> None:
    assert flags_for(wanted)


def test_a_version_is_of_one_engine() -> None:
    with pytest.raises(UsageError, match="a version is of one engine"):
        flags_for("all=0.33")

"""`check version` and `advisories` as commands: verdicts, exit codes, and every bad input."""

import json
from pathlib import Path

import pytest

from detector.advisories.arguments import parse_arguments, told_arguments
from detector.engine_version import PLACES
from detector.errors import UsageError
from tests.e2e.program import Capture, call
from tests.unit.engine_server import answer, engine_server


def verdicts(out: str) -> dict[str, str]:
    return {row["advisory"]: row["verdict"] for row in json.loads(out)}


def test_the_public_incident_is_refused(capsys: Capture) -> None:
    line = "--disaggregation-mode prefill --max-total-tokens 681280"
    code, out, err = call(
        capsys, "check", "version", "--engine", "sglang", "--version", "0.5.20", "--args", line
    )
    assert code == 1
    assert "BWA-2026-0001  may apply  (high)" in out
    assert "prefill and decode run apart: --disaggregation-mode prefill" in out
    assert "sglang 0.5.20: 1 of 6 advisories apply, 3 may apply" in err
    assert "lower_prefill_limit" in err


def test_what_is_excluded_lets_a_deployment_through(capsys: Capture) -> None:
    code, out, err = call(
        capsys, "check", "version", "--engine", "sglang", "--version", "0.5.23", "--args",
        "--port 1", "--unused", "client_request_ids",
    )  # fmt: skip
    assert (code, out) == (0, "")
    assert "0 of 6 advisories apply, 0 may apply" in err
    code, out, _ = call(
        capsys, "check", "version", "--engine", "vllm", "--version", "0.33.0", "-o", "json"
    )
    assert code == 0
    assert set(verdicts(out).values()) == {"not affected"}


def test_a_running_engine_is_asked(capsys: Capture) -> None:
    with engine_server(version='{"version": "0.20.1rc2"}') as server:
        url = f"{server.url}/version"
        code, out, _ = call(
            capsys, "check", "version", "--engine", "vllm", "--url", url, "--args",
            "--async-scheduling -pp 4", "-o", "json",
        )  # fmt: skip
    assert code == 1
    assert verdicts(out)["GHSA-v97p-wpxp-px84"] == "applies"


def test_sglang_tells_its_flags_itself(capsys: Capture) -> None:
    told = {
        "version": "0.5.18", "disaggregation_mode": "null", "enable_lmcache": True,
        "disaggregation_decode_enable_offload_kvcache": False, "internal_states": [{}],
    }  # fmt: skip
    with engine_server(server_info=json.dumps(told)) as server:
        code, out, _ = call(
            capsys, "check", "version", "--url", f"{server.url}/server_info", "-o", "json"
        )
    assert code == 1
    assert verdicts(out) == {
        "BWA-2026-0004": "may apply", "CVE-2026-111392": "may apply",
        "CVE-2026-112266": "may apply", "BWA-2026-0001": "not applicable",
        "BWA-2026-0002": "not applicable", "BWA-2026-0003": "not affected",
    }  # fmt: skip


def test_an_address_alone_finds_the_place(capsys: Capture) -> None:
    told = {"version": "0.5.18", "disaggregation_mode": "null"}
    with engine_server(get_server_info=json.dumps(told)) as server:
        for url in (server.url, f"{server.url}/"):
            _, out, err = call(capsys, "check", "version", "--url", url, "-o", "json")
            assert '"verdict"' in out, err
        assert server.asked == [*PLACES, *PLACES]
    with engine_server(version='{"version": "0.20.1rc2"}') as server:
        _, _, err = call(capsys, "check", "version", "--engine", "vllm", "--url", server.url)
        assert "vllm 0.20.1rc2" in err
        assert server.asked == ["/version"]


@pytest.mark.parametrize("path", ["", "/v1/models"])
def test_a_place_that_is_not_there_says_what_is_expected(capsys: Capture, path: str) -> None:
    with engine_server() as server:
        code, out, err = call(capsys, "check", "version", "--url", server.url + path)
    assert (code, out) == (2, "")
    assert "the answer has status 404" in err
    assert "give the engine's address, such as http://127.0.0.1:8000, or with a path" in err
    assert (path or "(/version, /server_info, /get_server_info)") in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "what runs?"),
        (("--engine", "tgi", "--version", "1"), "no advisories about 'tgi' are kept here"),
        (("--engine", "vllm"), "which version?"),
        (("--engine", "vllm", "--version", "latest"), "no version that can be put in order"),
        (("--engine", "vllm", "--version", "1", "--args", "-x 'open"), "a quote that is not"),
        (("--engine", "vllm", "--version", "1", "--unused", "gpu"), "no feature 'gpu' here"),
        (("--engine", "vllm", "--url", "localhost:8000"), "not an HTTP address"),
        (("--engine", "vllm", "--url", "http://u:p@h/version"), "not an HTTP address"),
        (("--engine", "vllm", "--url", "http://h/version?x=1"), "without user, password and query"),
        (("--engine", "vllm", "--url", "http://127.0.0.1:9/version"), "nothing answers"),
    ],
)
def test_bad_input_says_what_next(
    capsys: Capture, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = call(capsys, "check", "version", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "next: " in err


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("[1]", "no JSON object"),
        ("<html>", "not JSON"),
        ("{}", "does not tell a version"),
        ("x" * (2 << 20), "larger than"),
    ],
)
def test_bad_answers_say_what_next(capsys: Capture, page: str, message: str) -> None:
    with engine_server(version=page) as server:
        code, _, err = call(
            capsys, "check", "version", "--engine", "vllm", "--url", f"{server.url}/version"
        )
    assert code == 2
    assert message in err


def test_redirects_are_not_followed(capsys: Capture) -> None:
    with engine_server(version=lambda asked: answer(asked, 302, "", Location="/x")) as server:
        code, _, err = call(capsys, "check", "version", "--engine", "vllm", "--url", server.url)
    assert code == 2
    assert "redirect" in err


def test_flags_are_read_as_engines_read_them() -> None:
    line = "serve m --tensor_parallel_size=2 -pp 4 --config '{\"a\": 1}' --flag --many a b --x=-1"
    assert parse_arguments(line) == {
        "tensor-parallel-size": ("2",), "pp": ("4",), "config": ('{"a": 1}',), "flag": (),
        "many": ("a", "b"), "x": ("-1",),
    }  # fmt: skip
    assert told_arguments({"a_b": True, "c": False, "d": None, "e": 3, "f": [1]}) == {
        "a-b": (), "c": ("false",), "d": ("none",), "e": ("3",),
    }  # fmt: skip
    with pytest.raises(UsageError):
        parse_arguments("'")


def test_advisories_are_listed_and_shown(capsys: Capture) -> None:
    code, out, _ = call(capsys, "advisories", "list", "--engine", "vllm", "-o", "json")
    assert code == 0
    rows = json.loads(out)
    assert {row["program"] for row in rows} == {"vllm"}
    assert call(capsys, "advisories", "list")[0] == 0
    code, out, _ = call(capsys, "advisories", "show", "ghsa-c65p-x677-fgj6")
    assert code == 0
    assert out.startswith("CVE-2025-46722 GHSA-c65p-x677-fgj6")
    code, out, _ = call(capsys, "advisories", "show", "CVE-2025-46722", "-o", "json")
    document = json.loads(out)
    assert document["schema_version"] == "1.6.7"
    assert document["affected"][0]["ranges"][0]["events"] == [
        {"introduced": "0.7.0"}, {"fixed": "0.9.0"},
    ]  # fmt: skip
    code, _, err = call(capsys, "advisories", "show", "CVE-1")
    assert code == 2
    assert "advisories list" in err


def test_lint_tells_what_is_wrong(capsys: Capture, tmp_path: Path) -> None:
    assert call(capsys, "advisories", "lint")[0] == 0
    ours = tmp_path / "ours.yaml"
    ours.write_text("- id: X-1\n")
    code, out, err = call(capsys, "advisories", "lint", str(ours), "-o", "json")
    assert code == 1
    assert json.loads(out)[0]["advisory"] == "X-1"
    assert "1 files: 1 problems" in err
    ours.write_bytes(b"\xff\xfe\x00")
    assert call(capsys, "advisories", "lint", str(ours))[0] == 2
    assert call(capsys, "advisories", "lint", str(tmp_path / "missing"))[0] == 2
    assert call(capsys, "advisories", "lint", "/dev/zero")[0] == 2


def test_a_version_of_thousands_of_digits_is_none(capsys: Capture) -> None:
    code, _, err = call(capsys, "check", "version", "--engine", "vllm", "--version", "9" * 6000)
    assert code == 2
    assert "internal fault" not in err
    assert "next:" in err

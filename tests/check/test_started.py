"""Ways to start engines that people write: what each of them starts, with which flags."""

from pathlib import Path

import pytest

from detector.advisories.arguments import parse_arguments
from detector.check.engine import Engine
from detector.check.gather import Given, gather
from detector.check.plan import run
from detector.check.read import MAX_CONTAINERS
from detector.errors import InputError

LMCACHE = "python3 -m sglang.launch_server --model-path m --enable-lmcache"
POD = "kind: Pod\nmetadata: {name: x}\nspec:\n  containers:\n  - name: engine\n"


def verdicts(path: Path, text: str) -> dict[str, set[str]]:
    """What the checks say of a file, by their names."""
    path.write_text(text)
    found: dict[str, set[str]] = {}
    for one in run(gather(Given(files=[str(path)]))):
        found.setdefault(one.check, set()).add(str(one.said.verdict))
    return found


def the_engine(folder: Path, text: str) -> Engine:
    """The one engine of a script."""
    file = folder / "start.sh"
    file.write_text(f"{text}\n")
    (engine,) = gather(Given(files=[str(file)])).engines
    return engine


def engines(line: str) -> list[Engine]:
    """The engines of a line of flags."""
    return list(gather(Given(lines=[line])).engines)


@pytest.mark.parametrize(
    "words",
    [
        '["/usr/bin/env", "bash", "-c", "{}"]',
        '["tini", "--", "bash", "-c", "{}"]',
        '["/usr/bin/sh", "-euxc", "{}"]',
        '["dash", "-e", "-c", "{}"]',
    ],
)
def test_a_shell_by_any_name_and_behind_others(tmp_path: Path, words: str) -> None:
    text = f"{POD}    command: {words.format(LMCACHE)}\n"
    assert "fail" in verdicts(tmp_path / "pod.yaml", text)["prefix-cache"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yaml", f"services:\n  a:\n    command: bash -c '{LMCACHE}'\n"),
        ("start.sh", f"set -e\nbash -c '{LMCACHE}'\n"),
        ("start.sh", f"docker run --rm lmsysorg/sglang:v0.5.22 bash -c '{LMCACHE}'\n"),
        ("start.sh", "A='--model-path m'\nA+=' --enable-lmcache'\nsglang serve $A\n"),
    ],
)
def test_a_script_in_a_line_and_a_variable_that_grows(tmp_path: Path, name: str, text: str) -> None:
    assert "fail" in verdicts(tmp_path / name, text)["prefix-cache"]


def test_the_image_around_a_script_tells_the_version(tmp_path: Path) -> None:
    file = tmp_path / "start.sh"
    file.write_text(f"docker run lmsysorg/sglang:v0.5.22 bash -c 'cd /m && {LMCACHE}'\n")
    assert [one.version for one in gather(Given(files=[str(file)])).engines] == ["0.5.22"]


def test_a_script_that_holds_itself_ends(tmp_path: Path) -> None:
    text = """A='bash -c "$A"'\nbash -c "$A"\n""" + LMCACHE
    assert "fail" in verdicts(tmp_path / "start.sh", text)["prefix-cache"]


def test_every_engine_of_a_script_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "start.sh"
    file.write_text(
        "sglang serve --model-path m --disaggregation-mode prefill &\n"
        "sglang serve --model-path m --disaggregation-mode decode --enable-lmcache\n"
    )
    scope = gather(Given(files=[str(file)]))
    assert [one.role for one in scope.engines] == ["prefill", "decode"]
    assert len({one.name for one in scope.engines}) == 2
    failed = [one.engine for one in run(scope) if one.said.verdict == "fail"]
    assert f"{file}, number 2" in failed
    assert len(engines("vllm serve a & vllm serve b")) == 2


@pytest.mark.parametrize("given", ["-e {}=1", "--env {}=1", "--env={}=1"])
def test_variables_that_docker_hands_on(tmp_path: Path, given: str) -> None:
    text = f"docker run {given.format('VLLM_SERVER_DEV_MODE')} vllm/vllm-openai --model m\n"
    assert verdicts(tmp_path / "start.sh", text)["endpoints"] == {"fail"}


@pytest.mark.parametrize(("value", "verdict"), [("export {}=1", "fail"), ("", "unknown")])
def test_a_variable_that_docker_hands_on_by_its_name(
    tmp_path: Path, value: str, verdict: str
) -> None:
    name = "VLLM_SERVER_DEV_MODE"
    text = f"{value.format(name)}\ndocker run -e {name} vllm/vllm-openai --model m\n"
    assert verdicts(tmp_path / "start.sh", text)["endpoints"] == {verdict}


def test_a_variable_from_elsewhere_is_not_taken_for_unset(tmp_path: Path) -> None:
    text = (
        f"{POD}    command: [vllm, serve, m]\n    env:\n    - name: VLLM_SERVER_DEV_MODE\n"
        "      valueFrom: {configMapKeyRef: {name: a, key: b}}\n"
    )
    assert verdicts(tmp_path / "pod.yaml", text)["endpoints"] == {"unknown"}


def test_several_mappings_are_merged_the_first_counts(tmp_path: Path) -> None:
    text = (
        'x-a: &a\n  environment: {VLLM_SERVER_DEV_MODE: "1"}\n'
        "x-b: &b\n  image: vllm/vllm-openai\n  environment: {}\n"
        "services:\n  a:\n    <<: [*a, *b]\n    command: --model m\n"
    )
    assert verdicts(tmp_path / "compose.yaml", text)["endpoints"] == {"fail"}


@pytest.mark.parametrize("word", ["$(EXTRA)", "$(cat flags)", "`cat flags`"])
def test_flags_of_a_substitution_are_told(word: str) -> None:
    (engine,) = engines(f"vllm serve m --port 1 --enforce-eager={{}} '{word}'")
    assert engine.unseen == (word,)


def test_the_last_of_a_switch_and_its_opposite_counts(tmp_path: Path) -> None:
    text = (
        "servingEngineSpec:\n  modelSpec:\n  - name: a\n    modelURL: m\n    vllmConfig:\n"
        "      extraArgs: [--enable-prefix-caching]\n"
    )
    assert verdicts(tmp_path / "values.yaml", text)["prefix-cache"] == {"warn"}
    assert parse_arguments("--no-async-scheduling --async-scheduling") == {"async-scheduling": ()}
    assert parse_arguments("--async-scheduling --no-async-scheduling") == {
        "no-async-scheduling": ()
    }


def test_members_of_an_object_may_be_given_one_by_one() -> None:
    (engine,) = engines(
        "vllm serve m --kv-transfer-config.kv_connector LMCacheConnectorV1 "
        "--kv-transfer-config.kv_role=kv_producer "
        "--kv-transfer-config.kv_connector_extra_config.enforce_handshake_compat false"
    )
    assert engine.json_flag("kv-transfer-config") == {
        "kv_connector": "LMCacheConnectorV1",
        "kv_role": "kv_producer",
        "kv_connector_extra_config": {"enforce_handshake_compat": False},
    }
    assert engine.role == "prefill"


def test_a_candidate_is_before_its_release(tmp_path: Path) -> None:
    text = (
        f"{POD}    image: lmsysorg/sglang:v0.5.21rc1\n"
        "    command: [sglang, serve, --disaggregation-mode, decode]\n"
    )
    found = verdicts(tmp_path / "pod.yaml", text)
    assert found["deferred-release"] == {"fail"}


def test_a_comment_begins_a_word(tmp_path: Path) -> None:
    text = "sglang serve --model-path /m#1 --enable-lmcache  # don't --disable-radix-cache\n"
    assert verdicts(tmp_path / "start.sh", text)["prefix-cache"] == {"fail", "warn"}
    text = (
        "sglang serve --model-path m \\\n# it's --enable-lmcache \\\n--port 1 # --enable-lmcache\n"
    )
    assert verdicts(tmp_path / "start.sh", text)["prefix-cache"] == {"warn"}


@pytest.mark.parametrize(
    "line",
    [
        """srun --nodes 1 bash -c 'source env.sh; "$@"' _ vllm serve m""",
        """bash -c 'exec "$0" "$@"' vllm serve m --x""",
        """docker run IMG bash -lc 'exec "$@"' -- vllm serve m --enable-lmcache""",
        "docker run -v /bin/bash:/bin/bash vllm/vllm-openai:v0.10.0 --model m -cc 3",
        "docker run --entrypoint bash vllm/vllm-openai:v0.10.0 -c 'vllm serve m'",
    ],
)
def test_what_stands_behind_a_script_that_starts_nothing_is_what_it_runs(
    tmp_path: Path, line: str
) -> None:
    engine = the_engine(tmp_path, line)
    assert engine.kind == "vllm"
    assert engine.version == ("0.10.0" if "v0.10.0" in line else "")


@pytest.mark.parametrize(
    "line",
    [
        "docker run --rm --entrypoint bash vllm/vllm-openai:v0.10.0 -c 'pip list'",
        "docker run --rm vllm/vllm-openai:v0.10.0 bash -c 'sleep infinity'",
        "docker run --rm vllm/vllm-openai:v0.10.0 sh -c 'python3 -c \"import vllm\"'",
    ],
)
def test_an_image_in_which_a_script_starts_something_else_is_no_engine(
    tmp_path: Path, line: str
) -> None:
    assert the_engine(tmp_path, f"{line}\nvllm serve m").version == ""


@pytest.mark.parametrize(
    "flags",
    [
        '--kv-transfer-config \'{"kv_connector_extra_config":{"connectors":null}}\'',
        "--kv-transfer-config.kv_connector_extra_config.connectors 3",
        "--kv-transfer-config.kv_role.a 3 --kv-transfer-config.kv_connector.b 3",
        f"--kv-transfer-config.kv_role.{'a.' * 5_000}b 3",
        f"--kv-transfer-config.kv_connector.{'a.' * 5_000}b 3",
    ],
)
def test_a_transfer_of_other_types_is_no_transfer_that_is_known(tmp_path: Path, flags: str) -> None:
    assert verdicts(tmp_path / "start.sh", f"vllm serve m {flags}\n")


def test_a_file_starts_a_bounded_number_of_engines(tmp_path: Path) -> None:
    file = tmp_path / "start.sh"
    file.write_text("vllm serve m\n" * (MAX_CONTAINERS + 1))
    with pytest.raises(InputError, match="more than 1,000 engines"):
        gather(Given(files=[str(file)]))

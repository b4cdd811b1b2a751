"""Layers of settings: which wins, what is refused, and that every error names its place."""

import json
from pathlib import Path

import pytest

from detector.config.effective import as_tree, as_yaml, effective
from detector.config.load import load_settings
from detector.config.problems import InvalidSettingsError
from detector.config.root import Settings
from detector.config.schema import schema
from detector.errors import SettingsError, UsageError


def written(folder: Path, text: str) -> str:
    path = folder / "c.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems(folder: Path, text: str, **environment: str) -> list[str]:
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings(written(folder, text), environment=environment)
    return [str(problem).replace(f"{folder}/", "") for problem in caught.value.problems]


def test_without_a_file_the_defaults_hold() -> None:
    loaded = load_settings(environment={})
    assert loaded.settings == Settings()
    assert {row.origin for row in effective(loaded)} == {"default"}


def test_later_layers_win_and_every_value_knows_its_origin(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        "key_file: from-file\n"
        "detection:\n"
        "  window: {length_ms: 90s, grace_ms: 1m}\n"
        "  boundary: account\n",
    )
    loaded = load_settings(
        None,
        environment={
            "BLEEDWATCH_CONFIG": file,
            "BLEEDWATCH_DETECTION__WINDOW__GRACE_MS": "2m",
            "BLEEDWATCH_DETECTION__BOUNDARY": "session",
            "BLEEDWATCH_KEY_FILE": "12345",
        },
        assignments=["detection.boundary=end_user", "detection.index.memory_bytes=1GiB"],
        key_file="from-flag",
    )
    settings, origins = loaded.settings, {row.name: row.origin for row in effective(loaded)}
    assert settings.detection.window.length_ms == 90_000
    assert origins["detection.window.length_ms"] == f"{file}:3"
    assert settings.detection.window.grace_ms == 120_000
    assert origins["detection.window.grace_ms"] == "env BLEEDWATCH_DETECTION__WINDOW__GRACE_MS"
    assert settings.detection.boundary == "end_user"
    assert origins["detection.boundary"] == "flag --set detection.boundary"
    assert settings.detection.index.memory_bytes == 2**30
    assert settings.key_file == "from-flag"
    assert origins["detection.window.longest_response_ms"] == "default"


@pytest.mark.parametrize(("typed", "where"), [("--since", "flag --since"), ("URL", "argument URL")])
def test_what_was_typed_is_what_an_error_names(typed: str, where: str) -> None:
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings(None, environment={}, flags=[(typed, "trace.since_ms", "yesterday")])
    assert [problem.where for problem in caught.value.problems] == [where]


def test_a_flag_may_set_several_settings_and_wins_over_set() -> None:
    given = [("--listen", "push.port", "9466"), ("--listen", "push.host", "::1")]
    loaded = load_settings(None, environment={}, assignments=["push.port=1"], flags=given)
    assert (loaded.settings.push.host, loaded.settings.push.port) == ("::1", 9466)


def test_all_problems_are_reported_each_with_its_line(tmp_path: Path) -> None:
    text = """\
key_fil: x
detection:
  window:
    length_ms: soon
    grace_ms: -4
  filter:
    low_tokens: true
    allow_lists: [a, 3]
  boundary: team
length_ms: 3
"""
    assert problems(tmp_path, text) == [
        "c.yaml:1: unknown setting `key_fil` (did you mean `key_file`?)",
        'c.yaml:4: `detection.window.length_ms` must be milliseconds or a duration such as "90s", '
        '"5m" or "1h30m"',
        "c.yaml:5: `detection.window.grace_ms` must be greater than 0, got -4",
        "c.yaml:7: `detection.filter.low_tokens` must be a whole number, got true",
        "c.yaml:8: `detection.filter.allow_lists[1]` must be text (put it in quotes), got 3",
        "c.yaml:9: `detection.boundary` must be 'account', 'tenant', 'end_user' or 'session'",
        "c.yaml:10: unknown setting `length_ms` (did you mean `detection.window.length_ms`?)",
    ]


def test_a_secret_in_place_of_its_path_is_refused_and_not_shown(tmp_path: Path) -> None:
    secret = "4054da7dd0729213cbe5705d59e45de5f435f8ab9237e4ad41f0ca21a1a9dcd5"
    told = problems(tmp_path, "", BLEEDWATCH_KEY_FILE=secret)
    assert told == [
        "env BLEEDWATCH_KEY_FILE: `key_file` must be the path of the key file, not the secret"
    ]
    with pytest.raises(InvalidSettingsError, match="not the secret"):
        load_settings(None, environment={}, key_file=secret)


def test_less_for_a_higher_confidence_is_refused(tmp_path: Path) -> None:
    text = "detection:\n  filter:\n    low_tokens: 20\n"
    assert problems(tmp_path, text) == [
        "c.yaml:2: `detection.filter` must not ask less for a higher confidence: low, medium, high "
        "tokens"
    ]


def test_problems_in_rules_name_the_rule_and_not_the_alternative(tmp_path: Path) -> None:
    text = """\
tenancy:
  rules:
    - kind: header
      nam: x
    - name: y
    - kind: heade
    - kind: request_id
      pattern: "(a"
"""
    found = problems(tmp_path, text)
    assert found[0] == "c.yaml:3: `tenancy.rules[0].name` is required"
    assert found[1].startswith("c.yaml:4: unknown setting `tenancy.rules[0].nam`")
    assert found[2] == "c.yaml:5: `tenancy.rules[1]` needs `kind`"
    assert found[3].startswith("c.yaml:6: `tenancy.rules[2].kind` must be one of 'field', 'header'")
    assert found[4].startswith("c.yaml:8: `tenancy.rules[3].pattern` ")


def test_values_are_not_repeated_back(tmp_path: Path) -> None:
    canary = "canary-4711"
    text = f"unknown: {canary}\ndetection: {{boundary: {canary}, window: {canary}}}\n"
    told = "\n".join(problems(tmp_path, text, BLEEDWATCH_DETECTION__INDEX__SAMPLING=canary))
    assert canary not in told
    assert "env BLEEDWATCH_DETECTION__INDEX__SAMPLING: `detection.index.sampling` must be" in told


def test_a_wrong_value_is_not_hidden_by_a_later_layer_below_it(tmp_path: Path) -> None:
    found = problems(tmp_path, "detection: 5\n", BLEEDWATCH_DETECTION__BOUNDARY="tenant")
    assert found == ["c.yaml:1: `detection` must be a section, got 5"]


def test_empty_sections_and_files_are_defaults(tmp_path: Path) -> None:
    for text in ("", "# only a comment\n", "detection:\n", "detection:\n  window:\nkey_file:\n"):
        assert load_settings(written(tmp_path, text), environment={}).settings == Settings()


def test_environment_names_that_are_no_settings() -> None:
    ours = {"BLEEDWATCH_CONFIG": "", "BLEEDWATCH_EVAL_DATA": "x", "BLEEDWATCH_TEST_KAFKA": "x"}
    kubernetes = {
        "BLEEDWATCH_API_SERVICE_HOST": "10.0.0.1",
        "BLEEDWATCH_API_SERVICE_PORT_HTTP": "80",
        "BLEEDWATCH_SERVICE_PORT": "80",
        "BLEEDWATCH_API_PORT": "tcp://10.0.0.1:80",
        "BLEEDWATCH_PORT_80_TCP_ADDR": "10.0.0.1",
    }
    loaded = load_settings(environment={**ours, **kubernetes, "BLEEDWATCH_KEY_FILE": ""})
    assert loaded.settings == Settings()
    with pytest.raises(InvalidSettingsError, match="env BLEEDWATCH_KEYFILE: unknown setting"):
        load_settings(environment={"BLEEDWATCH_KEYFILE": "x"})


def test_a_setting_may_be_called_as_what_kubernetes_tells_of_services() -> None:
    ports = {"BLEEDWATCH_METRICS__PORT": "9999", "BLEEDWATCH_TAP__PORT": "7777"}
    settings = load_settings(environment=ports).settings
    assert (settings.metrics.port, settings.tap.port) == (9999, 7777)


def test_lists_and_sections_from_environment_and_flags() -> None:
    loaded = load_settings(
        environment={"BLEEDWATCH_DETECTION__FILTER__ALLOW_LISTS": "[a, b]"},
        assignments=["tenancy.rules=[{kind: static, tenant: acme}]"],
    )
    assert loaded.settings.detection.filter.allow_lists == ("a", "b")
    assert loaded.settings.tenancy.rules[0].kind == "static"
    origins = {row.name: row.origin for row in effective(loaded)}
    assert origins["tenancy.rules"] == "flag --set tenancy.rules"


@pytest.mark.parametrize("text", ["detection.boundary", "=x", "a..b=1", ".a=1", ""])
def test_assignments_without_a_name_or_value(text: str) -> None:
    with pytest.raises(UsageError):
        load_settings(environment={}, assignments=[text])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.yaml", tmp_path):
        with pytest.raises(SettingsError) as caught:
            load_settings(str(path), environment={})
        assert caught.value.where == str(path)


def test_effective_settings_are_a_configuration_file(tmp_path: Path) -> None:
    loaded = load_settings(
        environment={},
        assignments=[
            "template.custom={name: x, starts: [[1, 2]], roles: {5: user}}",
            "detection.filter.allow_lists=['a # b', 'ü']",
        ],
    )
    again = load_settings(written(tmp_path, as_yaml(effective(loaded))), environment={})
    assert again.settings == loaded.settings
    as_json = written(tmp_path, json.dumps(as_tree(effective(loaded))))
    assert load_settings(as_json, environment={}).settings == loaded.settings


def test_schema_allows_units_and_forbids_unknown_names() -> None:
    window = schema()["$defs"]["WindowSettings"]
    assert window["properties"]["length_ms"]["type"] == ["integer", "string"]
    assert window["additionalProperties"] is False


def test_an_optional_section_may_be_null_or_empty(tmp_path: Path) -> None:
    for text in ("template: {custom: null}\n", "template:\n  custom:\n"):
        assert load_settings(written(tmp_path, text), environment={}).settings == Settings()


def test_defaults_as_shown_are_a_configuration_file(tmp_path: Path) -> None:
    rows = effective(load_settings(environment={}))
    for text in (as_yaml(rows), json.dumps(as_tree(rows))):
        assert load_settings(written(tmp_path, text), environment={}).settings == Settings()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('key_file: "a\\0b"\n', "`key_file`"),
        ('key_file: "\\ud800"\n', "`key_file`"),
        ('sidecar:\n  files: ["a\\x1b"]\n', "`sidecar.files`"),
        ('tenancy: {rules: [{kind: static, tenant: "a\\x07"}]}\n', "`tenancy.rules[0].tenant`"),
        ('"a\\0": 1\n', "a name that is no text"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(InvalidSettingsError) as raised:
        load_settings(str(file), environment={})
    assert [one for one in raised.value.problems if place in one.what]
    assert not [one for one in raised.value.problems if not str(one).isprintable()]

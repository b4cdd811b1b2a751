"""Settings of outputs: what is refused, without repeating it, and that every one is documented."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from detector.config.effective import effective
from detector.config.load import load_settings
from detector.errors import SettingsError
from exporters.outputs.settings import (
    AlertmanagerSettings,
    AppriseSettings,
    HttpOutputSettings,
    KafkaOutputSettings,
    Matchers,
    OutputSettings,
    StdoutSettings,
    WebhookSettings,
)
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "outputs.md").read_text(encoding="utf-8")

PRIVATE = "is not public or not https: set allow_private if it is meant so"


def load(folder: Path, *outputs: dict[str, Any]) -> None:
    path = folder / "bleedwatch.yaml"
    path.write_text(yaml.safe_dump({"outputs": list(outputs)}))
    load_settings(str(path), environment={})


def hook(**changed: Any) -> dict[str, Any]:
    return {"kind": "webhook", "name": "hook", "url": "https://hooks.example/x", **changed}


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (hook(name="Hook 1"), "`outputs[0].name` "),
        (hook(kind="pigeon"), "`outputs[0].kind` must be one of"),
        ({"name": "hook"}, "`outputs[0]` needs `kind`"),
        ({"kind": "webhook", "url": "https://hooks.example"}, "`outputs[0].name` is required"),
        (hook(url=None), "needs either url or url_file"),
        (hook(url_file="/secrets/url"), "needs either url or url_file"),
        (hook(url="hooks.example"), "must begin with http:// or https://"),
        (hook(url="https://hooks.example:port/"), "must begin with http:// or https://"),
        (hook(url="https://u:secret@hooks.example/"), "must hold no password and no query"),
        (hook(url="https://hooks.example/?token=secret"), "must hold no password and no query"),
        (hook(url="http://hooks.example/"), PRIVATE),
        (hook(url="https://10.0.0.7/secret"), PRIVATE),
        (hook(url="https://[::1]/secret"), PRIVATE),
        (hook(url="https://localhost/secret"), PRIVATE),
        (hook(secret="whsec_secret"), "unknown setting `outputs[0].secret`"),
        (hook(timeout_ms=60_000), "`outputs[0].timeout_ms` "),
        (hook(when={"severity": "awful"}), "`outputs[0].when.severity` "),
        (hook(when={"pools": ["a"]}), "unknown setting `outputs[0].when.pools`"),
        ({"kind": "kafka", "name": "k", "topic": "no spaces"}, "`outputs[0].topic` "),
        ({"kind": "apprise", "name": "a"}, "`outputs[0].urls_file` is required"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_told_with_its_place_and_not_repeated(
    tmp_path: Path, output: dict[str, Any], told: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(tmp_path, output)
    assert told in str(caught.value)
    assert "bleedwatch.yaml:" in str(caught.value)
    assert "secret@" not in str(caught.value)
    assert "token=" not in str(caught.value)
    assert "whsec" not in str(caught.value)


def test_two_outputs_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="names of their own"):
        load(tmp_path, hook(), hook())


def test_units_are_understood_inside_of_the_list(tmp_path: Path) -> None:
    path = tmp_path / "bleedwatch.yaml"
    path.write_text(yaml.safe_dump({"outputs": [hook(timeout_ms="5s")]}))
    (output,) = load_settings(str(path), environment={}).settings.outputs
    assert isinstance(output, WebhookSettings)
    assert output.timeout_ms == 5_000


def test_what_is_shown_has_paths_of_secrets_and_no_secrets(tmp_path: Path) -> None:
    secret = tmp_path / "url"
    secret.write_text("https://hooks.example/very-secret\n")
    path = tmp_path / "bleedwatch.yaml"
    output = {"kind": "webhook", "name": "hook", "url_file": str(secret)}
    path.write_text(yaml.safe_dump({"outputs": [output]}))
    loaded = load_settings(str(path), environment={})
    shown = json.dumps([row.text for row in effective(loaded)])
    assert str(secret) in shown
    assert "very-secret" not in shown
    assert loaded.settings.outputs[0].target == "<secret>"


@pytest.mark.parametrize(
    ("output", "target"),
    [
        (
            WebhookSettings(**hook(url="https://hooks.example:8443/T0/secret")),
            "https://hooks.example:8443",
        ),
        (KafkaOutputSettings(kind="kafka", name="k"), "topic bleedwatch.alerts"),
        (StdoutSettings(kind="stdout", name="s"), "standard output"),
        (StdoutSettings(kind="stdout", name="s", path="/var/log/a.jsonl"), "/var/log/a.jsonl"),
        (AppriseSettings(kind="apprise", name="a", urls_file="/secrets/urls"), "<secret>"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_target_shows_no_path_of_a_url(output: Any, target: str) -> None:
    assert output.target == target


def fields(model: type[BaseModel], above: type[BaseModel] | None = None) -> list[tuple[str, str]]:
    known = set() if above is None else set(above.model_fields)
    return [
        (name, info.description or "")
        for name, info in model.model_fields.items()
        if name not in known and name != "kind"
    ]


@pytest.mark.parametrize(
    ("name", "description"),
    [
        *fields(OutputSettings),
        *((f"when.{name}", text) for name, text in fields(Matchers)),
        *fields(HttpOutputSettings, OutputSettings),
        *fields(AlertmanagerSettings, HttpOutputSettings),
        *fields(WebhookSettings, HttpOutputSettings),
        *fields(KafkaOutputSettings, OutputSettings),
        *fields(StdoutSettings, OutputSettings),
        *fields(AppriseSettings, OutputSettings),
    ],
)
def test_every_setting_of_every_kind_is_documented(name: str, description: str) -> None:
    assert re.search(rf"^\| `{re.escape(name)}` \| .+ \| {re.escape(description)} \|$", PAGE, re.M)

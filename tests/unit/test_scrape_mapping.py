"""Mappings are data: the built-in ones hold, an operator's own replaces them, faults are named."""

import re
from pathlib import Path

import pytest

from detector.errors import SettingsError
from ingest.scrape.mapping import BUILT_IN, load_mappings, parse_mapping
from tests.content.tree import ROOT

OWN = """
mapping: 1
engine_kind: other
prefixes: ["other_"]
numbers:
  used_tokens: {names: [other_used]}
  running_requests: {names: [other_running]}
  queued_requests: {names: [other_waiting]}
unreleased: used_at_idle
"""


def test_built_in_mappings_are_named_by_their_kind() -> None:
    assert set(load_mappings()) == set(BUILT_IN)


def test_no_built_in_mapping_runs_a_generation() -> None:
    for mapping in load_mappings().values():
        paths = [path for one in mapping.documents for path in one.paths]
        assert not [path for path in paths if "health" in path]


def test_the_example_of_the_page_is_a_mapping() -> None:
    page = (ROOT / "docs" / "runtime-metrics.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```yaml\n(mapping: .*?)```", page, re.S)
    mapping = parse_mapping(example, where="runtime-metrics.md")
    assert mapping.numbers["pool_tokens"].label == "kv_tokens"
    assert mapping.documents[0].values["context_tokens"] == "limits.context"


def test_an_own_mapping_adds_an_engine(tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text(OWN)
    mapping = load_mappings((str(file),))["other"]
    assert mapping.metric_names() == {"other_used", "other_running", "other_waiting"}
    assert mapping.metrics_path == "/metrics"


def test_an_own_mapping_replaces_a_built_in_one(tmp_path: Path) -> None:
    file = tmp_path / "vllm.yaml"
    file.write_text(OWN.replace("engine_kind: other", "engine_kind: vllm"))
    assert load_mappings((str(file),))["vllm"].prefixes == ("other_",)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("mapping: 1", "mapping: 2", "$.mapping"),
        ("used_tokens", "usd_tokens", "usd_tokens"),
        ("unreleased: used_at_idle", "unreleased: always", "always"),
        ("prefixes:", "prefix:", "prefix"),
        ('["other_"]', "[]", "prefixes"),
        ("other_used", "other used", "matching regex"),
        ("mapping: 1", "mapping: [", "not valid YAML"),
        ("engine_kind: other", "", "engine_kind"),
    ],
)
def test_a_fault_is_named_with_its_place(before: str, after: str, said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_mapping(OWN.replace(before, after), where="own.yaml")
    assert caught.value.where.startswith("own.yaml")
    assert said in str(caught.value)


@pytest.mark.parametrize("path", ["/health", "/health_generate", "/health/"])
def test_an_endpoint_that_generates_is_refused(path: str) -> None:
    document = f"documents: [{{paths: [{path}], when: scrape}}]"
    with pytest.raises(SettingsError, match="generation"):
        parse_mapping(f"{OWN}{document}", where="own.yaml")


@pytest.mark.parametrize("content", [b"\xff\xfe", b"x" * 300_000, None])
def test_a_file_that_is_no_mapping(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "own.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        load_mappings((str(file),))
    assert caught.value.where == str(file)

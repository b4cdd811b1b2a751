"""Tenants, pools and engines with names made to break out of logs, metrics, tables and pages."""

import json
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from exporters.engine_metrics import register_engines
from exporters.engine_state import EnginesState, EngineState
from tests.e2e.program import Capture, call
from tests.e2e.traffic import pairs, row, write_config

SHOWN = {
    "HTML": "<script>alert(1)</script>",
    "a template": "{{7*7}}${7*7}<%= 7*7 %>",
    "a label of Prometheus": 'a",severity="none"} 1 evil_total{x="',
    "a formula": "=HYPERLINK(1)",
    "a path": "../../../../etc/passwd",
    "SQL": "'; DROP TABLE findings; --",
    "a format": "%s%n{0.__class__}{evidence}",
    "markup of rich": "[bold red]x[/] [link=http://evil.example]y[/link] \\[",
    "a flag": "--fail-on=never",
}
"""Odd, but names: taken as they are, and nowhere more than text."""

REFUSED = {
    "line breaks": "a\nhigh  high  BW001",
    "a terminal sequence": "\x1b[2J\x1b]0;owned\x07",
    "NUL": "a\0b",
    "text from right to left": "a\u202eb",
    "a zero-width space": "a\u200bb",
    "half a character": "a\ud800",
    "a megabyte": "a" * 2**20,
}
"""No names: the request is counted and left out, as `bad_text` or as without a tenant."""

FORMS = ("table", "json", "jsonl", "yaml")


def _log(folder: Path, tenant: str) -> Path:
    """Write one bleed between sound tenants, and one whose source has the name."""
    rows = [row(one) for one in pairs(2)]
    rows[2]["tenant"] = tenant
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


@pytest.mark.parametrize("name", SHOWN)
def test_an_odd_name_is_shown_as_text(tmp_path: Path, capsys: Capture, name: str) -> None:
    config = write_config(tmp_path / "config.yaml", detection={"commonness": {"learning_ms": 0}})
    log = _log(tmp_path, SHOWN[name])
    for form in FORMS:
        code, out, _ = call(capsys, "replay", log, "--config", config, "-o", form)
        assert code == 1, "both bleeds are found"
        if form == "json":
            found = json.loads(out)["findings"]
            assert {one["source"]["tenant"] for one in found} == {"acme", SHOWN[name]}
        assert "\x1b" not in out


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_name_is_counted_and_costs_nothing(
    tmp_path: Path, capsys: Capture, name: str
) -> None:
    config = write_config(tmp_path / "config.yaml", detection={"commonness": {"learning_ms": 0}})
    log = _log(tmp_path, REFUSED[name])
    for form in FORMS:
        code, out, err = call(capsys, "replay", log, "--config", config, "-o", form)
        assert code == 1
        assert not [
            bad for bad in ("\x1b", "\0", "\u202e", "\u200b", "aaaaaaaa") if bad in out + err
        ]
        if form == "json":
            told = json.loads(out)
            assert [one["source"]["tenant"] for one in told["findings"]] == ["acme"]
            coverage = told["coverage"]
            broken = sum(coverage["broken_by_reason"].values())
            assert broken + coverage["unmapped_tenants"] == 1


@pytest.mark.parametrize("name", [*SHOWN.values(), "a\n# TYPE evil counter\nevil 1", 'a\\", b="'])
def test_no_name_adds_a_series_or_a_label(name: str) -> None:
    class Engines:
        def engines(self) -> EnginesState:
            engine = EngineState(
                engine=name, rank=name, unreleased_tokens=7, unreleased_quality="exact",
                pool_usage_ratio=0.5, clear_failures={}, metadata_mismatches={},
                transfer_failures={},
            )  # fmt: skip
            return EnginesState(engines=(engine,), scrapes={(name, "ok"): 5}, dropped_samples=0)

    registry = CollectorRegistry()
    register_engines(Engines(), registry)
    text = generate_latest(registry).decode()
    families = {one.name: one for one in text_string_to_metric_families(text)}
    assert all(family.startswith("bleedwatch_") for family in families)
    (sample,) = families["bleedwatch_engine_unreleased_tokens"].samples
    assert sample.labels == {"engine": name, "rank": name, "quality": "exact"}

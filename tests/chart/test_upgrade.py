"""An upgrade changes nothing that Kubernetes lets nobody change: it would be refused half-way."""

from pathlib import Path
from typing import Any

import yaml

from tests.chart.rendering import Manifest, render

BEFORE = Path(__file__).parent / "release-0.0.1.yaml"
"""What version 0.0.1 of the chart made of its default values, and of mode `single`."""

IMMUTABLE = {
    "Deployment": ("selector",),
    "StatefulSet": ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates"),
    "Service": ("clusterIP", "type"),
}
"""As the API server checks updates; of a StatefulSet only few fields may change at all."""

SINGLE = {
    "mode": "single",
    "config": {"push": {"token_file": "/etc/bleedwatch/secrets/ingest/token"}},
    "secrets": [{"name": "ingest", "secretName": "bleedwatch-ingest"}],
}


def _fixed(objects: list[Manifest]) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (one["kind"], one["metadata"]["name"]): {
            field: one["spec"].get(field) for field in IMMUTABLE[one["kind"]]
        }
        for one in objects
        if one["kind"] in IMMUTABLE
    }


def _now(values: dict[str, Any]) -> list[Manifest]:
    return render(values) + render({**SINGLE, **values}, name="small")


def test_nothing_immutable_has_changed() -> None:
    before = _fixed(list(yaml.safe_load_all(BEFORE.read_text(encoding="utf-8"))))
    assert {kind for kind, _ in before} == set(IMMUTABLE)
    assert _fixed(_now({})) == before


def test_a_change_would_be_seen() -> None:
    before = _fixed(list(yaml.safe_load_all(BEFORE.read_text(encoding="utf-8"))))
    changed = _fixed(_now({"api": {"persistence": {"size": "20Gi"}}}))
    assert [name for name, fields in changed.items() if fields != before[name]] == [
        ("StatefulSet", "bleedwatch-api")
    ]


def test_pods_are_found_by_their_selectors() -> None:
    for one in _now({}):
        if one["kind"] in {"Deployment", "StatefulSet"}:
            labels = one["spec"]["template"]["metadata"]["labels"]
            assert one["spec"]["selector"]["matchLabels"].items() <= labels.items()
            assert not any("version" in name for name in one["spec"]["selector"]["matchLabels"])

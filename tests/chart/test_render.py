"""Every scenario of the chart makes objects that Kubernetes accepts, hardened, without secrets."""

from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.chart.rendering import SCENARIOS, Manifest, complaints, scenario

OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version()


def _pods(path: Path) -> Iterator[Manifest]:
    for each in scenario(path):
        if each["kind"] in {"Deployment", "StatefulSet"}:
            yield each["spec"]["template"]["spec"]


def test_the_linter_has_nothing_to_say() -> None:
    assert complaints() == []


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_kubernetes_accepts_every_object(path: Path, version: str) -> None:
    known = [each for each in scenario(path) if "monitoring.coreos.com" not in each["apiVersion"]]
    assert known
    for each in known:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_pods_are_hardened(path: Path) -> None:
    pods = list(_pods(path))
    assert pods
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"] is True
            assert allowed["allowPrivilegeEscalation"] is False
            assert allowed["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_every_file_that_the_configuration_names_is_mounted(path: Path) -> None:
    made = scenario(path)
    config = next(each for each in made if "config.yaml" in each.get("data", {}))
    named = [
        line.split(": ", 1)[1]
        for line in config["data"]["config.yaml"].splitlines()
        if "_file: " in line
    ]
    assert named
    for pod in _pods(path):
        mounts = [one["mountPath"] for one in pod["containers"][0]["volumeMounts"]]
        assert all(any(file.startswith(f"{at}/") for at in mounts) for file in named)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_no_secret_is_made(path: Path) -> None:
    assert "Secret" not in {each["kind"] for each in scenario(path)}


def test_the_rules_and_boards_are_those_of_the_repository() -> None:
    made = scenario(next(path for path in SCENARIOS if path.stem == "kafka"))
    root = Path(__file__).parents[2] / "dashboards"
    rules = next(each for each in made if each["kind"] == "PrometheusRule")["spec"]["groups"]
    ours = [
        group
        for path in sorted((root / "rules").glob("*.yaml"))
        for group in yaml.safe_load(path.read_text(encoding="utf-8"))["groups"]
    ]
    assert rules == ours
    boards = next(each for each in made if each["metadata"]["name"].endswith("-dashboards"))
    for path in (root / "json").glob("*.json"):
        assert boards["data"][f"bleedwatch-{path.name}"] == path.read_text(encoding="utf-8")

"""Every scenario of the chart makes objects that Kubernetes accepts, hardened, without secrets."""

from collections.abc import Iterator
from pathlib import Path

import kubernetes_validate
import pytest
import yaml

from tests.chart.local_pods import pod_of
from tests.chart.rendering import SCENARIOS, Manifest, complaints, render, scenario

OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version()


RUNNING = [path for path in SCENARIOS if path.stem != "sidecars"]
"""The scenarios with processes of their own."""

READ_BY = {
    "worker": frozenset({"kafka"}),
    "api": frozenset({"kafka", "store", "api"}),
    "all": frozenset({"push", "http", "store", "api"}),
}
"""Sections of the configuration whose files a container reads; `http` is that of the sidecars."""


def _pods(path: Path) -> Iterator[tuple[str, Manifest]]:
    """Yield the pods of a scenario, each with the name of its container."""
    for each in scenario(path):
        if each["kind"] in {"Deployment", "StatefulSet"}:
            pod = each["spec"]["template"]["spec"]
            yield pod["containers"][0]["name"], pod


def test_the_linter_has_nothing_to_say() -> None:
    assert complaints() == []


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_kubernetes_accepts_every_object(path: Path, version: str) -> None:
    known = [each for each in scenario(path) if "monitoring.coreos.com" not in each["apiVersion"]]
    assert known
    for each in known:
        kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_pods_are_hardened(path: Path) -> None:
    pods = list(_pods(path))
    assert pods
    for _, pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in (*pod.get("initContainers", ()), *pod["containers"]):
            allowed = container["securityContext"]
            assert allowed["readOnlyRootFilesystem"] is True
            assert allowed["allowPrivilegeEscalation"] is False
            assert allowed["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["limits"]["memory"]


def _files(path: Path, sections: frozenset[str]) -> list[str]:
    """Return the files that these sections of the configuration name."""
    made = next(each for each in scenario(path) if "config.yaml" in each.get("data", {}))
    pending = [
        (name, value)
        for name, value in yaml.safe_load(made["data"]["config.yaml"]).items()
        if name in sections
    ]
    found = []
    while pending:
        name, value = pending.pop()
        if isinstance(value, dict):
            pending += value.items()
        elif name.endswith("_file"):
            found.append(value)
    return found


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_a_process_has_the_secrets_it_reads_and_no_others(path: Path) -> None:
    for name, pod in _pods(path):
        (container,) = pod["containers"]
        mounts = [one["mountPath"] for one in container["volumeMounts"]]
        secret = {one["name"] for one in pod["volumes"] if "secret" in one}
        key = [one["value"] for one in container["env"] if one["name"] == "BLEEDWATCH_KEY_FILE"]
        assert bool(key) == (name != "api")
        needed = [*_files(path, READ_BY[name]), *key]
        assert all(any(file.startswith(f"{at}/") for at in mounts) for file in needed)
        held = [one["mountPath"] for one in container["volumeMounts"] if one["name"] in secret]
        assert all(any(file.startswith(f"{at}/") for file in needed) for at in held)


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


def test_topics_are_made_before_a_worker_starts_unless_others_make_them() -> None:
    (first,) = pod_of(render(), "worker")["initContainers"]
    assert "bleedwatch topics create" in first["command"][-1]
    assert "initContainers" not in pod_of(render({"worker": {"createTopics": False}}), "worker")


def test_an_api_that_looks_back_has_the_key() -> None:
    for looks_back in (False, True):
        pod = pod_of(render({"api": {"lookBack": looks_back}}), "api")
        assert ("key" in {one["name"] for one in pod["volumes"]}) is looks_back


@pytest.mark.parametrize("path", RUNNING, ids=lambda path: path.stem)
def test_what_is_scraped_is_a_port_of_every_process(path: Path) -> None:
    values = yaml.safe_load(path.read_text()) | {"monitoring": {"podMonitor": True}}
    made = render(values)
    monitors = {
        each["metadata"]["name"]: each["spec"] for each in made if each["kind"] == "PodMonitor"
    }
    assert monitors.keys() == {"bleedwatch-processes", "bleedwatch-sidecars"}
    (scraped,) = monitors["bleedwatch-processes"]["podMetricsEndpoints"]
    for _, pod in _pods(path):
        ports = {port["name"] for port in pod["containers"][0]["ports"]}
        assert scraped["port"] in ports

"""docs/kubernetes.md, followed line by line: what its commands name is there when they come.

No cluster: the chart is rendered with the values on the page, and patches are merged.
"""

import re
from typing import Any

import kubernetes_validate
import pytest
import yaml

from tests.chart.merging import merged
from tests.chart.rendering import Manifest, render
from tests.content.doc_commands import typed_of
from tests.content.tree import ROOT
from tests.e2e.program import Capture, call

TEXT = (ROOT / "docs" / "kubernetes.md").read_text(encoding="utf-8")

MONITOR, ENGINES = "bleedwatch", "llm"
"""The namespaces of the page."""

VALUES = {
    "with Kafka": re.findall(r"^```yaml\n(image:.*?)^```", TEXT, re.M | re.S),
    "without": re.findall(r"^```yaml\n(mode: single.*?)^```", TEXT, re.M | re.S),
}

KINDS = {
    "deploy": "Deployment", "deployment": "Deployment", "sts": "StatefulSet",
    "statefulset": "StatefulSet", "svc": "Service",
}  # fmt: skip

MORE = {"with Kafka": (), "without": ("--secret", "ingest=bleedwatch-ingest")}
"""What the page says to add to every `bleedwatch sidecar manifest`."""


def _page(program: str) -> list[tuple[str, ...]]:
    """Return the commands of the page that run a program."""
    return [
        one.command.words
        for one in typed_of(program)
        if one.place.startswith("docs/kubernetes.md:")
    ]


def _values(way: str) -> dict[str, Any]:
    (text,) = VALUES[way]
    values: dict[str, Any] = yaml.safe_load(text)
    return values


def _release(namespace: str, way: str) -> list[Manifest]:
    """Return what the page's `helm install` into a namespace makes."""
    (command, *same) = [
        words
        for words in _page("helm")
        if words[1] == "install" and words[words.index("--namespace") + 1] == namespace
    ]
    assert all(other == command for other in same)
    values = _values(way)
    for path in [command[at + 1] for at, word in enumerate(command) if word == "--set"]:
        (name, _, value), inner = path.partition("="), values
        *above, last = name.split(".")
        for step in above:
            inner = inner.setdefault(step, {})
        inner[last] = yaml.safe_load(value)
    return render(values, name=command[2])


def _secrets(namespace: str) -> dict[str, set[str]]:
    """Return the Secrets that the page makes in a namespace, with the names in each."""
    made = {}
    for words in _page("kubectl"):
        if words[1:6] == ("-n", namespace, "create", "secret", "generic"):
            files = [word.removeprefix("--from-file=") for word in words[7:]]
            made[words[6]] = {file.partition("=")[0] for file in files}
    return made


def _needed(pod: Manifest) -> dict[str, set[str]]:
    """Return the Secrets that a pod mounts, with the names that it wants in each."""
    mounted = [one["secret"] for one in pod["volumes"] if "secret" in one]
    return {one["secretName"]: {item["key"] for item in one.get("items", ())} for one in mounted}


def _lacks(pod: Manifest, namespace: str) -> list[str]:
    made = _secrets(namespace)
    return [name for name, keys in _needed(pod).items() if not keys <= made.get(name, set())] + [
        name for name in _needed(pod) if name not in made
    ]


def _names(objects: list[Manifest]) -> set[tuple[str, str]]:
    return {(one["kind"], one["metadata"]["name"]) for one in objects}


@pytest.mark.parametrize("way", VALUES)
def test_processes_find_the_secrets_that_the_page_makes(way: str) -> None:
    pods = [
        one["spec"]["template"]["spec"]
        for one in _release(MONITOR, way)
        if one["kind"] in KINDS.values() and "template" in one["spec"]
    ]
    assert pods
    assert [_lacks(pod, MONITOR) for pod in pods if _lacks(pod, MONITOR)] == []


def test_what_is_looked_at_is_there() -> None:
    made = set().union(*(_names(_release(MONITOR, way)) for way in VALUES))
    named = set(re.findall(rf"\b({'|'.join(KINDS)})/([a-z][\w-]*)", TEXT))
    assert len(named) >= 6
    assert {one for one in named if (KINDS[one[0]], one[1]) not in made} == set()


def test_sidecars_send_to_a_service_that_listens() -> None:
    url = _values("without")["config"]["http"]["url"]
    name, port = re.findall(rf"^http://([\w-]+)\.{MONITOR}:(\d+)$", url)[0]
    (service,) = [
        one
        for one in _release(MONITOR, "without")
        if (one["kind"], one["metadata"]["name"]) == ("Service", name)
    ]
    assert int(port) in {one["port"] for one in service["spec"]["ports"]}


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
@pytest.mark.parametrize("way", VALUES)
def test_the_patch_fits_the_engine_and_finds_what_it_mounts(
    capsys: Capture, way: str, kind: str
) -> None:
    (command,) = [words for words in _page("bleedwatch") if words[1:5] == _manifest(kind)]
    code, out, err = call(capsys, *command[1:], *MORE[way])
    assert (code, err) == (0, "")
    made = merged(_engine(kind), yaml.safe_load(out))
    kubernetes_validate.validate(made, "1.29", strict=True)
    pod = made["spec"]["template"]["spec"]
    assert [one["name"] for one in pod["containers"]] == [kind], "no container of its own"
    assert _lacks(pod, ENGINES) == []
    maps = {("ConfigMap", one["configMap"]["name"]) for one in pod["volumes"] if "configMap" in one}
    release = _release(ENGINES, way)
    assert maps <= _names(release)
    assert {one["kind"] for one in release}.isdisjoint({"Deployment", "StatefulSet"})


def _manifest(kind: str) -> tuple[str, ...]:
    return ("sidecar", "manifest", "--engine-kind", kind)


def _engine(kind: str) -> Manifest:
    """Return a deployment of an engine as an operator has it."""
    labels = {"app": "engine"}
    server = {"name": kind, "image": f"{kind}:latest", "args": ["--model", "m"]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [server]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "engine"},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }

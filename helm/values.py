"""Reads values.yaml with its comments: one row for every value, for the README of the chart."""

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

import yaml

WHOLE: Final = frozenset(
    {"config", "resources", "podDisruptionBudget", "podSecurityContext", "securityContext"}
)
"""Mappings that are one value: what is in them is described elsewhere, or Kubernetes' own."""

_STANDARD: Final = {
    "repository": "Where the image is.",
    "pullPolicy": "When nodes pull it.",
    "imagePullSecrets": "Secrets to pull it with, as `{name}`.",
    "resources": "What a pod asks for and may use.",
    "podDisruptionBudget": "How many may be away while nodes are drained.",
    "nodeSelector": "Nodes for its pods, by labels.",
    "tolerations": "Taints that its pods bear.",
    "affinity": "What its pods are near or far from.",
    "podAnnotations": "More annotations of its pods.",
    "annotations": "Its annotations.",
    "terminationGracePeriodSeconds": "How long it may take to finish what it has begun.",
    "replicas": "How many run.",
    "minReplicas": "How many run at least.",
    "maxReplicas": "How many run at most.",
    "targetCPUUtilizationPercentage": "Share of the requested CPU that is aimed at.",
    "enabled": "Whether there is one.",
    "size": "Of the claim.",
    "storageClass": "By default that of the cluster.",
    "interval": "How often Prometheus asks.",
    "podSecurityContext": "Of all pods.",
    "securityContext": "Of all containers.",
    "name": "Its name.",
    "key": "The key in it.",
}
"""What words of Kubernetes mean here, where values.yaml has no comment."""


class Row(NamedTuple):
    """A value: where it is, its default as JSON (None if it has parts), and what it is for."""

    path: str
    default: str | None
    meaning: str


def rows(text: str) -> Iterator[Row]:
    """Yield the values of a file in its order; comments stand above their value."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    if isinstance(node, yaml.MappingNode):
        yield from _of(node, text.splitlines(), ())


def _of(node: yaml.MappingNode, lines: list[str], above: tuple[str, ...]) -> Iterator[Row]:
    for key, value in node.value:
        path = (*above, str(key.value))
        meaning = _comment(lines, key.start_mark.line)
        if isinstance(value, yaml.MappingNode) and value.value and key.value not in WHOLE:
            if meaning:
                yield Row(".".join(path), None, meaning)
            yield from _of(value, lines, path)
            continue
        loaded = yaml.safe_load(yaml.serialize(value))
        default = "see values.yaml" if key.value == "config" else json.dumps(loaded)
        yield Row(".".join(path), default, meaning or _STANDARD.get(str(key.value), ""))


def _comment(lines: list[str], line: int) -> str:
    """Return the comment right above a line."""
    found: list[str] = []
    while line > 0 and lines[line - 1].lstrip().startswith("#"):
        line -= 1
        found.insert(0, lines[line].strip().removeprefix("#").strip())
    return " ".join(found)

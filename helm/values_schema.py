"""The JSON Schema of values.yaml: types from its defaults, and the rules that defaults cannot tell.

Draft 7, which every version of Helm reads. The schema of `config` is that of the configuration
file, so a setting that does not exist is refused before anything is installed.
"""

from typing import Any, Final

from detector.config.schema import schema as configuration

Schema = dict[str, Any]

_NAME: Final = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"}
_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65535}
_COUNT: Final = {"type": "integer", "minimum": 1}
_QUANTITY: Final = {"type": ["string", "number"], "pattern": "^[0-9.]+(m|[kMGTPE]|[KMGTPE]i)?$"}
_QUANTITIES: Final = {"type": "object", "additionalProperties": _QUANTITY}
_WORDS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECTS: Final = {"type": "array", "items": {"type": "object"}}
_FREE: Final = {"type": "object"}
"""What Kubernetes checks itself, and in more detail."""


def _only(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _all(**properties: Schema) -> Schema:
    return {**_only(**properties), "required": list(properties)}


_RULES: Final[dict[str, Schema]] = {
    "mode": {"enum": ["kafka", "single", "sidecars"]},
    "repository": {"type": "string", "minLength": 1},
    "digest": {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
    "pullPolicy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "imagePullSecrets": {"type": "array", "items": _all(name=_NAME)},
    "keySecret": _all(name=_NAME, key={"type": "string", "minLength": 1}),
    "secrets": {
        "type": "array",
        "items": _all(name=_NAME, secretName=_NAME),
    },
    "port": _PORT,
    "replicas": {"type": "integer", "minimum": 0},
    "minReplicas": _COUNT,
    "maxReplicas": _COUNT,
    "targetCPUUtilizationPercentage": _COUNT,
    "resources": _only(requests=_QUANTITIES, limits=_QUANTITIES),
    "podDisruptionBudget": _only(
        minAvailable={"type": ["integer", "string"]}, maxUnavailable={"type": ["integer", "string"]}
    ),
    "size": _QUANTITY,
    "interval": {"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$"},
    "nodeSelector": _WORDS,
    "podAnnotations": _WORDS,
    "annotations": _WORDS,
    "labels": _WORDS,
    "affinity": _FREE,
    "tolerations": _OBJECTS,
    "ingressFrom": _OBJECTS,
    "egressTo": _OBJECTS,
    "podSecurityContext": _FREE,
    "securityContext": _FREE,
}
"""By the last word of a value's path, which means the same everywhere."""

_SCALED: Final = {
    "if": {"properties": {"api": {"properties": {"replicas": {"minimum": 2}}}}},
    "then": {
        "properties": {
            "config": {
                "properties": {"store": {"properties": {"url": {"pattern": "^postgresql:"}}}}
            }
        }
    },
}
"""Two processes cannot share a file of SQLite."""


def schema(values: dict[str, Any]) -> Schema:
    """Return the schema for the values of a chart, given its defaults."""
    inner = _without(configuration(), {"title", "default", "discriminator", "$schema"})
    definitions = inner.pop("$defs")
    made = _of(values)
    made["properties"]["config"] = inner
    made["properties"]["global"] = _FREE  # Helm puts it into every dependency
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        **made,
        **_SCALED,
        "$defs": definitions,
    }


def _of(value: object, name: str = "") -> Schema:
    if name in _RULES:
        return _RULES[name]
    if isinstance(value, dict):
        return _only(**{str(key): _of(inner, str(key)) for key, inner in value.items()})
    if isinstance(value, bool):
        return {"type": "boolean"}
    return {"type": "integer", "minimum": 0} if isinstance(value, int) else {"type": "string"}


def _without(node: Any, words: set[str], *, names: bool = False) -> Any:  # noqa: ANN401
    """Return a schema without some of its words; `names` says that keys are no words here."""
    if isinstance(node, list):
        return [_without(each, words) for each in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _without(inner, words, names=not names and key in {"properties", "$defs"})
        for key, inner in node.items()
        if names or key not in words
    }

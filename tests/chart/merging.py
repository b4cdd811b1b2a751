"""A strategic merge as `kubectl patch` makes it: named things merge, other lists are replaced."""

from typing import Any, Final

_KEYS: Final = {
    "containers": "name",
    "initContainers": "name",
    "volumes": "name",
    "env": "name",
    "volumeMounts": "mountPath",
}
"""The merge keys of Kubernetes' API for lists below a pod."""


def merged(base: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Return `base` with `patch` laid over it."""
    made = dict(base)
    for name, value in patch.items():
        old = base.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            made[name] = merged(old, value)
        elif name in _KEYS and isinstance(old, list):
            made[name] = _list(old, value, _KEYS[name])
        else:
            made[name] = value
    return made


def _list(old: list[Any], new: list[Any], key: str) -> list[Any]:
    by_key = {one[key]: one for one in old}
    for one in new:
        by_key[one[key]] = merged(by_key.get(one[key], {}), one)
    return list(by_key.values())

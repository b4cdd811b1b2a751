"""Containers in Kubernetes objects, whatever their kind: pods, sets, custom resources, lists.

A container is found by its shape, an item of `containers` or a `mainContainer`, so that kinds that
are not known are read too.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from detector.check.container import Container, Script, script_at
from detector.check.placed import Found, Placed, mappings
from detector.check.shell import Word

_OPEN_SERVICES: Final = ("LoadBalancer", "NodePort")

_WORKERS: Final = "workerTemplate"
_LEADER: Final = "leaderTemplate"


class _Service(NamedTuple):
    """A service that lets others in from outside the cluster: whom it leads to."""

    selector: Mapping[str, str]
    told: str


def containers(objects: Iterable[Placed]) -> Iterator[Container]:
    """Yield the containers of objects; workers behind a leader run its engine and are left out."""
    known = list(objects)
    services = [one for root in known for one in _services(root)]
    for root in known:
        for found in mappings(root):
            if _WORKERS in found.path and any(one.get(_LEADER) for one in found.around):
                continue
            inside = _containers_in(found.at)
            if not inside:
                continue
            labels = _labels(found)
            exposed = next((one.told for one in services if _leads_to(one, labels)), "")
            for at in inside:
                yield _container(at, _title(found), _hint(found, labels), exposed)


def _containers_in(at: Placed) -> list[Placed]:
    main = at.get("mainContainer")
    return [one for one in at.each("containers") if one.members is not None] + (
        [] if main is None or main.members is None else [main]
    )


def _container(at: Placed, title: str, hint: str, exposed: str) -> Container:
    command = [Word(one.text or "", one.where) for one in at.each("command")]
    words = [*command, *(Word(one.text or "", one.where) for one in at.each("args"))]
    placed = [*at.each("command"), *at.each("args")]
    number = script_at(words)
    script = None if number is None else script_of(placed[number])
    name = at.word("name")
    return Container(
        name=f"{title} {name}".strip(),
        where=at.where,
        image=at.word("image"),
        words=tuple(words),
        environment=_environment(at),
        script=script,
        hint=hint,
        exposed=exposed,
    )


def script_of(at: Placed) -> Script:
    """Return the script that a value holds; a block begins in the line below its mark."""
    return Script(at.text or "", at.file, at.line + at.is_block)


def _environment(at: Placed) -> dict[str, str | None]:
    """Return the variables by name; what is taken from elsewhere is not known here."""
    return {
        one.word("name"): one.word("value") if one.get("value") is not None else None
        for one in at.each("env")
    }


def _title(found: Found) -> str:
    """Name the object around a pod, and its part where it has several: Deployment/chat decode."""
    objects = [one for one in (*found.around, found.at) if one.get("metadata", "name")]
    at = next((one for one in objects if one.word("kind")), found.at)
    kind, name = at.word("kind"), at.word("metadata", "name")
    parts = [one.word("name") for one in found.around if one.word("name")]
    if "services" in found.path:
        parts.append(found.path[found.path.index("services") + 1])
    elif "prefill" in found.path:
        parts.append("prefill")
    return " ".join(part for part in (f"{kind}/{name}".strip("/"), *parts) if part)


def _hint(found: Found, labels: Mapping[str, str]) -> str:
    """Return the words that may tell a role; what is beside a part named prefill is decode."""
    if "prefill" not in found.path and any(one.get("prefill") for one in found.around):
        return "decode"
    names = (one.word("metadata", "name") for one in found.around)
    return " ".join((*found.path, *labels.values(), *names))


def _labels(found: Found) -> Mapping[str, str]:
    """Return the labels of the pod that holds containers."""
    around = found.around[-1].get("metadata", "labels") if found.around else None
    members = (around and around.members) or {}
    return {name: value.text or "" for name, value in members.items()}


def _services(root: Placed) -> Iterator[_Service]:
    if root.word("kind") == "List":
        for item in root.each("items"):
            yield from _services(item)
    if root.word("kind") != "Service" or root.word("spec", "type") not in _OPEN_SERVICES:
        return
    selector = root.get("spec", "selector")
    if selector is not None and selector.members:
        kind, name = root.word("spec", "type"), root.word("metadata", "name")
        labels = {key: value.text or "" for key, value in selector.members.items()}
        yield _Service(labels, f"service {name} of type {kind} ({root.where})")


def _leads_to(service: _Service, labels: Mapping[str, str]) -> bool:
    """Tell whether a service leads to a pod; labels that are made at run time count as there."""
    stated = {key: value for key, value in service.selector.items() if key in labels}
    rest = set(service.selector) - set(stated)
    is_made = all("kubernetes.io/" in key or "x-k8s.io/" in key for key in rest)
    return bool(stated) and is_made and all(labels[key] == value for key, value in stated.items())

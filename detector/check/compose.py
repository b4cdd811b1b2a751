"""Containers in compose files: their commands, lists or one line, and the ports they publish."""

from collections.abc import Iterator
from typing import Final

from detector.check.container import Container, Script, is_shell, script_at
from detector.check.manifests import script_of
from detector.check.placed import Placed
from detector.check.shell import Word, commands

_LOOPBACK: Final = ("127.", "localhost:", "[::1]")


def is_compose(root: Placed) -> bool:
    """Tell whether a document is a compose file."""
    services = root.get("services")
    return services is not None and services.members is not None and root.get("kind") is None


def containers(root: Placed) -> Iterator[Container]:
    """Yield the services of a compose file."""
    services = root.get("services")
    for name, at in ((services and services.members) or {}).items():
        if at.members is not None:
            yield _container(name, at)


def _container(name: str, at: Placed) -> Container:
    environment = _environment(at)
    entrypoint, command = at.get("entrypoint"), at.get("command")
    words: list[Word] = []
    script: Script | None = None
    for part in (entrypoint, command):
        if part is None:
            continue
        if script is None and is_shell(words) and part.items != ():
            script = script_of(part if part.items is None else part.items[0])
        words += _words(part, environment)
    if script is None:
        script = _script(command)
    return Container(
        name=f"service {name}",
        where=at.where,
        image=at.word("image"),
        words=tuple(words),
        environment=environment,
        script=script,
        hint=name,
        exposed=_exposed(at),
    )


def _words(part: Placed, environment: dict[str, str | None]) -> list[Word]:
    if part.items is not None:
        return [Word((one.text or "").replace("$$", "$"), one.where) for one in part.items]
    text = (part.text or "").replace("$$", "$").replace("\\\n", " ").replace("\n", " ")
    found = commands(text, part.file, part.line, environment)
    return [Word(word.text, part.where) for command in found for word in command.words]


def _script(command: Placed | None) -> Script | None:
    """Return the script of `command: [bash, -c, SCRIPT]`."""
    items = () if command is None or command.items is None else command.items
    number = script_at([Word(one.text or "", one.where) for one in items])
    return None if number is None else script_of(items[number])


def _environment(at: Placed) -> dict[str, str | None]:
    """Return the variables, which stand as a mapping or as a list of NAME=VALUE."""
    listed = at.get("environment")
    if listed is None:
        return {}
    if listed.members is not None:
        return {name: value.text for name, value in listed.members.items()}
    pairs = ((one.text or "").partition("=") for one in listed.items or ())
    return {name: value if mark else None for name, mark, value in pairs}


def _exposed(at: Placed) -> str:
    """Return by what the service is reached from other machines, empty if by nothing."""
    if at.word("network_mode") == "host":
        return f"the network of the host ({at.where})"
    for one in at.each("ports"):
        text = one.text or one.word("published")
        address = one.word("host_ip")
        if text and not text.startswith(_LOOPBACK) and not address.startswith(_LOOPBACK[0]):
            return f"a published port ({one.where})"
    return ""

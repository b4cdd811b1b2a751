"""A container as manifests and compose files describe it, and the engine that it starts."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from detector.check.engine import Engine, Flag
from detector.check.launch import (
    Launch,
    flags_of,
    image_kind,
    image_version,
    launch_of,
    other_engine,
    served_by_image,
    unseen,
    variables_of,
)
from detector.check.shell import Command, Expansion, Word, commands
from detector.errors import InputError

_SHELLS: Final = ("sh", "bash", "dash", "ash", "zsh")
_TAKES_SCRIPT: Final = re.compile(r"-[A-Za-z]*c[A-Za-z]*")

MAX_WORDS: Final = 4_096
"""Words of a command; what starts an engine has some dozens."""

EXTRA: Final = "VLLM_ADDITIONAL_ARGS"
"""A variable whose flags KServe's templates add to those of vLLM."""

_ROLES: Final = {"kv_producer": "prefill", "kv_consumer": "decode"}
_WORDS_OF_ROLES: Final = ("prefill", "decode")


class Script(NamedTuple):
    """A script that a shell is given, and the number of its first line."""

    text: str
    file: str
    line: int


class Container(NamedTuple):
    """One container. `words` are its command and arguments, unless a shell is given a script.

    `hint` is what its place in the file says of its role: names and labels.
    """

    name: str
    where: str
    image: str
    words: tuple[Word, ...]
    environment: Mapping[str, str | None]
    script: Script | None = None
    hint: str = ""
    exposed: str = ""


def is_shell(words: Sequence[Word]) -> bool:
    """Tell whether words start a shell that takes its script from the next one."""
    return _shell_at(words) is not None and _TAKES_SCRIPT.fullmatch(words[-1].text) is not None


def script_at(words: Sequence[Word]) -> int | None:
    """Return which word is the script of the shell that words start, None if they start none."""
    shell = _shell_at(words)
    if shell is None:
        return None
    behind = range(shell + 1, len(words) - 1)
    flags = (number for number in behind if _TAKES_SCRIPT.fullmatch(words[number].text))
    return next((number + 1 for number in flags), None)


def _shell_at(words: Sequence[Word]) -> int | None:
    """Return which word is a shell: others may start it, such as tini, env or docker.

    One that is mounted (`-v /bin/bash:/bin/bash`) is not started by that.
    """
    names = ("" if ":" in word.text else word.text.rpartition("/")[2] for word in words)
    return next((number for number, name in enumerate(names) if name in _SHELLS), None)


def engines_in(container: Container) -> list[Engine]:
    """Return the engines that a container starts, in order.

    Raises InputError for a command that is too long to be one.
    """
    if len(container.words) > MAX_WORDS:
        what = f"a command of more than {MAX_WORDS:,} words"
        raise InputError(what, where=container.where, hint="give the engines' containers only")
    found = [_engine(container, *one) for one in _launches(container)]
    return found[:1] + [
        replace(engine, name=f"{engine.name}, number {number}")
        for number, engine in enumerate(found[1:], start=2)
    ]


def _engine(container: Container, launch: Launch, environment: Mapping[str, str | None]) -> Engine:
    flags = dict(flags_of(launch.words))
    extra = environment.get(EXTRA)
    if launch.kind == "vllm" and extra:
        for command in commands(extra, container.where.rpartition(":")[0], 0, environment):
            flags |= {
                name: Flag(flag.values, container.where)
                for name, flag in flags_of(command.words).items()
            }
    engine = Engine(
        name=container.name,
        kind=launch.kind,
        where=launch.where,
        flags=flags,
        environment=environment,
        version=image_version(launch.image or container.image),
        exposed=container.exposed,
        unseen=unseen(launch.words),
    )
    return _with_role(engine, container.hint)


def other_in(container: Container) -> str:
    """Return the name of an engine in a container that is not understood, empty if none is."""
    words = [word for one in _started(container) for word in one.words]
    return other_engine(words)


def _started(container: Container) -> Iterator[Command]:
    known = container.environment
    if container.script is not None:
        for command in commands(*container.script, known):
            yield from _unwrapped(command)
    else:
        expansion = Expansion()
        words = (Word(expansion.expanded(one.text, known), one.where) for one in container.words)
        yield from _unwrapped(Command(tuple(words), known))


def _unwrapped(command: Command) -> Iterator[Command]:
    """Yield a command, and those of the script that a shell in it is given.

    Only those where the script starts an engine; else what stands behind it may be what it runs.
    """
    number = script_at(command.words)
    if number is None:
        yield command
        return
    script = command.words[number]
    file, _, line = script.where.rpartition(":")
    known = {**command.environment, **variables_of(*command)}
    found = list(commands(script.text, file, int(line), known))
    is_followed = number + 1 < len(command.words)
    if is_followed and not any(launch_of(inner.words) for inner in found):
        yield command
    for inner in found:
        runner = command.words[: number - 1] if launch_of(inner.words) else ()
        yield Command((*runner, *inner.words), inner.environment)


def _launches(container: Container) -> Sequence[tuple[Launch, Mapping[str, str | None]]]:
    found = [
        (launch, {**command.environment, **variables_of(*command)})
        for command in _started(container)
        if (launch := launch_of(command.words)) is not None
    ]
    if found:
        return found
    kind = image_kind(container.image)
    if EXTRA in container.environment:
        kind = "vllm"
    (command, *more) = [*_started(container), Command((), container.environment)]
    is_flags = not command.words or command.words[0].text.startswith("-")
    is_flags = is_flags or command.words[0].text == "serve"
    if kind and container.script is None and is_flags and len(more) <= 1:
        if not command.words and EXTRA not in container.environment:
            return []
        return [(served_by_image(kind, command.words, container.where), container.environment)]
    return []


def _with_role(engine: Engine, hint: str) -> Engine:
    """Give an engine its role; a transfer that works both ways leaves it to names and labels."""
    mode = engine.flag("disaggregation-mode")
    transfer = engine.json_flag("kv-transfer-config")
    if mode is not None:
        role = mode.value
    elif engine.is_on("is-prefill-worker"):
        role = "prefill"
    elif transfer:
        told = transfer.get("kv_role")
        role = _ROLES.get(told, "") if isinstance(told, str) else ""
        role = role or next((word for word in _WORDS_OF_ROLES if word in hint), "")
    else:
        role = ""
    return replace(engine, role=role if role in _WORDS_OF_ROLES else "")

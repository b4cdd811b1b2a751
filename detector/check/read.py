"""Reads what people have, files of every kind and lines of flags, into engines."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from detector.advisories.arguments import parse_arguments
from detector.check import compose, manifests, values
from detector.check.container import Container, Script, engines_in, other_in
from detector.check.engine import KINDS, Engine
from detector.check.placed import MAX_BYTES, Placed, documents, template
from detector.errors import InputError, UsageError

STDIN: Final = "-"

MAX_CONTAINERS: Final = 1_000
"""What one file may start; a chart of many engines has some dozens."""

_ENDINGS: Final = (".yaml", ".yml", ".json")

_YAML_MARKS: Final = ("apiVersion:", "services:", "servingEngineSpec:", "kind:", "---")


def engines_in_file(path: str) -> list[Engine]:
    """Return the engines that a file starts; `-` is standard input.

    Raises InputError for a file without any, with what it holds instead.
    """
    text, name = _text(path)
    if not text.strip():
        raise InputError(
            "nothing is in it",
            where=name,
            hint="give a manifest, a compose file, the output of `helm template`, or a command",
        )
    found = list(islice(_containers(text, name), MAX_CONTAINERS + 1))
    if len(found) > MAX_CONTAINERS:
        what = f"more than {MAX_CONTAINERS:,} containers"
        raise InputError(what, where=name, hint="give the engines' objects only")
    engines: list[Engine] = []
    for one in found:
        engines += engines_in(one)
        if len(engines) > MAX_CONTAINERS:
            what = f"more than {MAX_CONTAINERS:,} engines"
            raise InputError(what, where=name, hint="give fewer scripts at once")
    if not engines:
        raise template(name) if "{{" in text else _no_engine(found, name)
    return engines


def engines_of_arguments(line: str, kind: str | None, number: int) -> list[Engine]:
    """Return the engines that a line of flags describes; the line may begin with the command.

    Raises UsageError for open quotes, and for an engine that is not known.
    """
    parse_arguments(line)  # refuses open quotes
    where = "--args" if number == 1 else f"--args, number {number}"
    script = Script(line.replace("\n", " "), where, 0)
    container = Container(f"the engine of {where}", where, "", (), {}, script)
    started = engines_in(container)
    if started:
        return [_at(one, where) for one in started]
    if kind is None:
        raise UsageError(
            "which engine has these flags?", where="--engine", hint=f"one of {', '.join(KINDS)}"
        )
    start = "sglang serve" if kind == "sglang" else "vllm serve"
    script = Script(f"{start} {script.text}", where, 0)
    engines = engines_in(container._replace(script=script))
    if not engines:
        raise UsageError("these are no flags", where=where, hint="give them as for the engine")
    return [_at(one, where) for one in engines]


def known_kind(name: str | None) -> str | None:
    """Return the name of an engine that is understood. Raises UsageError for another."""
    if name is not None and name not in KINDS:
        raise UsageError(
            f"the flags of {name[:40]!r} are not understood here",
            where="--engine",
            hint=f"one of {', '.join(KINDS)}; for others see `bleedwatch check version`",
        )
    return name


def _at(engine: Engine, where: str) -> Engine:
    """Let everything stand where the line was given: it has no file and no lines."""
    flags = {name: flag._replace(where=where) for name, flag in engine.flags.items()}
    return replace(engine, where=where, flags=flags)


def _text(path: str) -> tuple[str, str]:
    if path == STDIN:
        content, name = sys.stdin.buffer.read(MAX_BYTES + 1), "standard input"
    else:
        name = path
        with Path(path).open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES:,} bytes", where=name, hint="give the engines only")
    try:
        return content.decode(), name
    except UnicodeDecodeError:
        raise InputError(
            "the file is not UTF-8", where=name, hint="name a manifest, not an archive"
        ) from None


def _containers(text: str, name: str) -> Iterator[Container]:
    lines = text.splitlines()
    is_yaml = any(line.lstrip("- ").startswith(_YAML_MARKS) for line in lines)
    if is_yaml or _is_json(text) or name.endswith(_ENDINGS) or any("{{" in one for one in lines):
        return _in_documents(documents(text, name))
    return iter([Container(name, f"{name}:1", "", (), {}, Script(text, name, 1))])


def _is_json(text: str) -> bool:
    """Tell whether a text is JSON, which is YAML too, and not a script."""
    try:
        return text.lstrip()[:1] in ("{", "[") and bool(json.loads(text))
    except RecursionError:
        return True
    except ValueError:
        return False


def _in_documents(roots: Iterable[Placed]) -> Iterator[Container]:
    objects: list[Placed] = []
    for root in roots:
        if compose.is_compose(root):
            yield from compose.containers(root)
        elif values.is_production_stack(root):
            yield from values.containers(root)
        else:
            objects.append(root)
    yield from manifests.containers(objects)


def _no_engine(found: list[Container], name: str) -> InputError:
    hint = "give its flags: bleedwatch check config --engine sglang --args '...'"
    other = next((other for one in found if (other := other_in(one))), "")
    if other:
        return InputError(
            f"it starts {other}, whose flags are not understood here",
            where=name,
            hint=f"sglang and vllm are; for {other} see `bleedwatch check version`",
        )
    if found:
        names = ", ".join(one.name for one in found[:5])
        what = f"no engine is started by its containers ({names})"
        return InputError(what, where=name, hint=hint)
    hint = f"render Helm values with `helm template`; of other kinds {hint}"
    return InputError("no container is in it", where=name, hint=hint)

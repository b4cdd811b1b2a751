"""Everything that is to be checked, put together from files, lines of flags and addresses."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from detector.check.engine import Engine
from detector.check.live import engine_at
from detector.check.model_config import ModelConfig, read_model_config
from detector.check.read import engines_in_file, engines_of_arguments, known_kind
from detector.check.scope import VOUCHED, Scope
from detector.errors import UsageError


class Given(NamedTuple):
    """What a user gives: what runs, the models it runs, and what no file tells."""

    files: Sequence[str] = ()
    lines: Sequence[str] = ()
    urls: Sequence[str] = ()
    kind: str | None = None
    version: str | None = None
    models: Sequence[str] = ()
    vouched: Sequence[str] = ()
    mean_tokens: int | None = None
    token_file: str | None = None
    ca_file: str | None = None


_NAMED: Final = "MODEL=FILE"


def gather(given: Given) -> Scope:
    """Return the engines and what is stated about them.

    Raises UsageError for what does not go together, InputError for what cannot be read.
    """
    kind = known_kind(given.kind)
    unknown = next((word for word in given.vouched if word not in VOUCHED), None)
    if unknown is not None:
        hint = f"one of {', '.join(VOUCHED)}"
        raise UsageError(f"nobody asks for {unknown[:40]!r}", where="--vouch", hint=hint)
    engines = [engine for path in given.files for engine in engines_in_file(path)]
    engines += [
        engine
        for number, line in enumerate(given.lines, start=1)
        for engine in engines_of_arguments(line, kind, number)
    ]
    engines += [
        engine_at(url, token_file=given.token_file, ca_file=given.ca_file) for url in given.urls
    ]
    if not engines:
        raise UsageError(
            "what is to be checked?",
            where="bleedwatch check config",
            hint="name files, or give --args or --url",
        )
    if given.version is not None:
        engines = [replace(one, version=one.version or given.version) for one in engines]
    described = _with_models(engines, given.models)
    return Scope(described, frozenset(given.vouched), given.mean_tokens)


def _with_models(engines: list[Engine], models: Sequence[str]) -> list[Engine]:
    """Give each engine the config.json of its model; one without a name is that of all."""
    named: dict[str, ModelConfig] = {}
    names = {engine.model_name for engine in engines} - {""}
    for one in models:
        name, mark, file = one.rpartition("=")
        if mark and name not in names:
            raise UsageError(
                f"no engine here serves {name[:80]!r}",
                where="--model-config",
                hint=f"one of {', '.join(sorted(names)) or 'none: give FILE alone'}",
            )
        if not mark and len(names) > 1:
            raise UsageError(
                f"{len(names)} models are served: of which one is it?",
                where="--model-config",
                hint=f"give {_NAMED} for each of {', '.join(sorted(names))}",
            )
        named[name] = read_model_config(file)
    return [
        replace(one, model=model)
        if (model := named.get(one.model_name, named.get(""))) is not None
        else one
        for one in engines
    ]

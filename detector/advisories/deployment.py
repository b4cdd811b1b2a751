"""What is to be assessed, put together from what a user states and what an engine answers."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from detector.advisories.arguments import parse_arguments, told_arguments
from detector.advisories.assess import Deployment
from detector.advisories.features import Known
from detector.advisories.load import features
from detector.advisories.versions import parse_version
from detector.errors import InputError, UsageError

Answer = Mapping[str, object]

TELLING: Final = "disaggregation_mode"
"""A field that only SGLang's own answer has, which also tells its flags."""


def deployment_of(
    program: str | None,
    version: str | None,
    *,
    answer: Answer | None = None,
    arguments: str | None = None,
    unused: Iterable[str] = (),
) -> Deployment:
    """Return what runs; what is stated goes before what an engine answers.

    Raises UsageError for what is missing or not known, InputError for an answer without a version.
    """
    tells_flags = answer is not None and TELLING in answer
    name = _program(program or ("sglang" if tells_flags else None))
    text = version if version is not None else _answered(answer)
    parsed = parse_version(text)
    if parsed is None:
        raise UsageError(
            f"{text[:40]!r} is no version that can be put in order",
            where="--version",
            hint="write it as the package index does, such as 0.5.20, 0.26.1rc1 or 0.5.10.post1",
        )
    if arguments is not None:
        flags = parse_arguments(arguments)
    elif answer is not None and tells_flags:
        flags = told_arguments(answer)
    else:
        flags = None
    return Deployment(name, parsed, flags, MappingProxyType(_unused(name, unused)))


def _program(name: str | None) -> str:
    known = features()
    if name is None:
        raise UsageError("what runs?", where="--engine", hint=f"one of {', '.join(known)}")
    if name not in known:
        raise UsageError(
            f"no advisories about {name[:40]!r} are kept here",
            where="--engine",
            hint=f"one of {', '.join(known)}",
        )
    return name


def _answered(answer: Answer | None) -> str:
    if answer is None:
        raise UsageError(
            "which version?", where="--version", hint="state it, or let --url ask the engine"
        )
    version = answer.get("version")
    if not isinstance(version, str):
        raise InputError(
            "the answer does not tell a version",
            where="--url",
            hint="vLLM tells it at /version, SGLang at /server_info",
        )
    return version


def _unused(program: str, names: Iterable[str]) -> dict[str, Known]:
    known = features()[program]
    facts = {}
    for name in names:
        if name not in known:
            raise UsageError(
                f"{program} has no feature {name[:40]!r} here",
                where="--unused",
                hint=f"one of {', '.join(known)}",
            )
        facts[name] = Known(False, "stated as not in use")
    return facts

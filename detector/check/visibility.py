"""Checks of what the monitor sees: all flags, images, and logs that hide requests."""

import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from detector.check.engine import OFF, Engine
from detector.check.scope import Scope
from detector.check.verdict import Said, Verdict, passed
from detector.doctor.visibility import Flag, load_visibility

_SWITCH: Final = re.compile(r"(no )?--([a-z-]+)(?: ([\w.-]+))?")
_VARIABLE: Final = re.compile(r"([A-Z][A-Z_]+)=(\S+)")


def all_flags(engine: Engine, _scope: Scope) -> Iterator[Said]:
    """Every flag of the engine was read."""
    if engine.unseen:
        yield Said(
            Verdict.UNKNOWN,
            f"not read: {', '.join(engine.unseen)}",
            engine.where,
            "a flag there may change every other verdict",
            "render the values into the file, or give all flags with --args",
        )
    else:
        yield passed(f"{len(engine.flags)} flags", engine.where)


def multimodal(engine: Engine, scope: Scope) -> Iterator[Said]:
    """Nothing is served that the monitor cannot compare."""
    flag = engine.flag("language-model-only")
    if scope.vouches("text-only"):
        yield passed("text alone is served, as stated", engine.where)
    elif flag is not None and flag.is_on:
        yield passed("--language-model-only", flag.where)
    elif engine.model is None and not engine.is_on("enable-multimodal"):
        yield Said(
            Verdict.UNKNOWN,
            "no config.json was given",
            engine.where,
            "images and sound are not compared, and their caches have mixed up tenants",
            "give --model-config, or state --vouch text-only",
        )
    elif engine.model is not None and not engine.model.is_multimodal:
        yield passed("the model takes text alone", engine.model.file)
    else:
        yield Said(
            Verdict.WARN,
            "the model takes images, sound or video",
            engine.where if engine.model is None else engine.model.file,
            "they are not compared: a bleed of what they show is seen only if its words are",
            "serve text alone where you can (vLLM: --language-model-only), and keep to releases "
            "that `bleedwatch check version` finds no fault in",
        )


def request_log(engine: Engine, scope: Scope) -> Iterator[Said]:
    """The monitor sees every request whole."""
    if scope.vouches("tap"):
        yield passed("the tap sees requests itself, as stated", engine.where)
        return
    needed = [flag for flag in _needed(engine.kind) if flag.holds_for(engine.version)]
    hidden = [flag for flag in needed if _is_right(flag.flag, engine) is False]
    if not hidden:
        yield passed("no flag hides what the monitor needs", engine.where)
        return
    yield Said(
        Verdict.WARN,
        f"not seen: {'; '.join(flag.shows.partition(';')[0] for flag in hidden)}",
        engine.where,
        "the monitor is blind for what the engine does not write down",
        f"start it with {', '.join(_short(flag) for flag in hidden)}; or put `bleedwatch run tap` "
        "before it and state --vouch tap",
    )


@cache
def _needed(kind: str) -> tuple[Flag, ...]:
    return tuple(flag for flag in load_visibility()[kind].flags if flag.is_needed)


def _short(flag: Flag) -> str:
    return flag.flag.partition(" with ")[0]


def _is_right(text: str, engine: Engine) -> bool | None:
    """Tell whether an engine is started as a line of the visibility data asks.

    None for a line that is not about a flag or a variable of the engine.
    """
    variable = _VARIABLE.match(text)
    if variable is not None:
        return engine.environment.get(variable[1], "") not in ("", *OFF)
    switch = _SWITCH.fullmatch(text)
    if switch is None:
        return None
    given = engine.flag(switch[2])
    if switch[1]:
        return given is None or not given.is_on
    if given is None or not given.is_on:
        return False
    return switch[3] is None or switch[3].isupper() or given.value == switch[3]

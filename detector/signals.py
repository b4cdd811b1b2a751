"""Composition of the log signals: pattern files of the program and of the operator, checked."""

import json
import time
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from detector.config.problems import InvalidSettingsError, problem_of
from detector.config.root import Settings
from detector.config.yaml_file import parse_yaml
from detector.errors import SettingsError
from ingest.schema_records import EngineEvent
from ingest.signals.patterns import PatternFile
from ingest.signals.signals import Signals

BUILT_IN: Final = ("vllm", "sglang")
"""The pattern files that come with the program."""

MAX_FILE_BYTES: Final = 1024 * 1024
"""A pattern file is a few kilobytes; more is the wrong file."""

SignalsOf = Callable[[str, str | None], Callable[[bytes], EngineEvent | None]]


def signals_of(settings: Settings) -> SignalsOf:
    """Return what makes events of the log lines of an engine (name, KV pool if it is set).

    Each log has its own. Raises SettingsError, with file and line, for a pattern file that cannot
    be used, and for names in `signals.off` that no pattern has.
    """
    patterns = [read_patterns(file) for file in settings.signals.files]
    patterns += [built_in(engine) for engine in BUILT_IN]
    check_names(patterns, settings.signals.off)

    def make(engine: str, kv_pool: str | None) -> Callable[[bytes], EngineEvent | None]:
        signals = Signals(patterns, off=settings.signals.off)
        return lambda line: signals.event(line, engine, kv_pool, int(time.time() * 1000))

    return make


def built_in(engine: str) -> PatternFile:
    """Return the patterns of an engine that come with the program."""
    text = files("ingest.signals").joinpath(f"{engine}.yaml").read_text(encoding="utf-8")
    return parse_patterns(text, f"{engine}.yaml")


def parse_patterns(text: str, name: str) -> PatternFile:
    """Check the text of a pattern file; `name` stands for it in errors.

    Raises InvalidSettingsError with all problems, each with its line.
    """
    values, lines = parse_yaml(text, name)
    origins = {path: f"{name}:{line}" for path, line in lines.items()}
    try:
        return PatternFile.model_validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        raise InvalidSettingsError(
            [
                problem_of(entry, PatternFile, {(): name, **origins})
                for entry in error.errors(include_url=False, include_context=False)
            ]
        ) from None


def read_patterns(file: str) -> PatternFile:
    """Return the patterns of an operator's file; raises SettingsError with file and line."""
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
        text = data.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or "not a text file"
        raise SettingsError(
            f"the pattern file cannot be read: {reason.lower()}",
            where=file,
            hint="check `signals.files`",
        ) from None
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError("larger than 1 MiB: not a pattern file", where=file)
    return parse_patterns(text, file)


def check_names(patterns: list[PatternFile], off: tuple[str, ...]) -> None:
    """Raise SettingsError if a name that is to be off is the name of no pattern."""
    known = {one.name for file in patterns for one in file.patterns}
    unknown = [name for name in off if name not in known]
    if unknown:
        raise SettingsError(
            f"no pattern has the name {unknown[0]}",
            where="signals.off",
            hint="the pattern files and the page on engine events list the names",
        )

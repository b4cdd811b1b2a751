"""One engine as its configuration describes it: flags, environment, role, version, places."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from detector.advisories.versions import parse_version
from detector.check.model_config import ModelConfig

KINDS: Final = ("sglang", "vllm")
"""The engines whose flags are understood."""

OFF: Final = ("false", "off", "no", "0", "none", "null")
"""Values by which a flag or variable is as good as not given."""

_NUMBER: Final = re.compile(r"(\d+(?:\.\d+)?)([kmgtKMGT]?i?)")
_POWERS: Final = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_PARTS: Final = re.compile(r"\d+")


class Flag(NamedTuple):
    """A flag with its values, none for a switch. `where` is FILE:LINE."""

    values: tuple[str, ...]
    where: str

    @property
    def value(self) -> str:
        """The first value, empty without one."""
        return self.values[0] if self.values else ""

    @property
    def is_on(self) -> bool:
        """True for a switch that is given, and for a value that does not mean off."""
        return self.value.lower() not in OFF


class Told(NamedTuple):
    """What a running engine tells of itself, in tokens; None is unknown."""

    pool_tokens: int | None = None
    context_tokens: int | None = None
    max_input_tokens: int | None = None


NOTHING_TOLD: Final = Told()


@dataclass(frozen=True, kw_only=True)
class Engine:
    """One serving process. `flags` are by name without dashes; an absent one has its default.

    A value of the environment is None where the file only refers to it. `role` is prefill or
    decode, empty for an engine that does both. `exposed` says by what its port is reached from
    outside, `unseen` which flags are in another place.
    """

    name: str
    kind: str
    where: str
    flags: Mapping[str, Flag]
    environment: Mapping[str, str | None] = field(default_factory=dict)
    role: str = ""
    version: str = ""
    model: ModelConfig | None = None
    told: Told = NOTHING_TOLD
    exposed: str = ""
    unseen: tuple[str, ...] = ()

    def flag(self, *names: str) -> Flag | None:
        """Return the first of some flags that is given."""
        return next((self.flags[name] for name in names if name in self.flags), None)

    def is_on(self, *names: str) -> bool:
        """Tell whether one of some flags is given and does not mean off."""
        flag = self.flag(*names)
        return flag is not None and flag.is_on

    def json_flag(self, name: str) -> Mapping[str, object]:
        """Return the object that a flag holds as JSON, empty if it holds none.

        Members may be given one by one, as `--name.member VALUE`.
        """
        flag = self.flag(name)
        value = _json(flag.value) if flag is not None else None
        whole: dict[str, object] = value if isinstance(value, dict) else {}
        for given, flag in self.flags.items():
            *path, last = given.replace("-", "_").split(".")
            if given.startswith(f"{name}."):
                at = whole
                for member in path[1:]:
                    inner = at.get(member)
                    at[member] = inner = inner if isinstance(inner, dict) else {}
                    at = inner
                at[last] = _json(flag.value)
        return whole

    @property
    def model_name(self) -> str:
        """The model as the flags name it, empty if they do not."""
        flag = self.flag("model-path", "model")
        return "" if flag is None else flag.value

    def is_before(self, version: str) -> bool | None:
        """Tell whether the engine is older than a release, as the candidates of it are.

        None if its version is not known.
        """
        if not self.version:
            return None
        known, release = parse_version(self.version), parse_version(version)
        if known is None or release is None:
            return _numbers(self.version) < _numbers(version)
        return known < release


def _json(text: str) -> object:
    """Return what a text holds as JSON, the text itself if it holds none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


MOST_DIGITS = 9
"""Of a part of a version: longer ones are nobody's, and cost time to read."""

MOST_TOKENS = 1e15
"""A count of tokens beyond this is none: no machine has the memory."""


def number(text: str, kind: str) -> int | None:
    """Return a count of tokens as an engine reads it, None for what is none.

    vLLM takes k for 1,000 and K for 1,024, SGLang k for 1,000 and Ki for 1,024.
    """
    found = _NUMBER.fullmatch(text.strip())
    if found is None:
        return None
    amount, suffix = float(found[1]), found[2]
    if amount > MOST_TOKENS:
        return None
    is_binary = suffix.endswith("i") or (kind == "vllm" and suffix.isupper())
    power = _POWERS[suffix.removesuffix("i").lower()]
    return int(amount * (1024 if is_binary else 1000) ** power)


def _numbers(version: str) -> tuple[int, ...]:
    parts = _PARTS.findall(version.partition("+")[0])[:3]
    return tuple(int(part[:MOST_DIGITS]) for part in parts)

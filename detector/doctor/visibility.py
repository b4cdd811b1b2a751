"""Which flags make an engine fully visible, from which version on, and what each costs: data."""

import re
from importlib import resources
from typing import Annotated, Final

import msgspec
import yaml
from msgspec import Meta

from detector.errors import UsageError

KINDS: Final = ("vllm", "sglang")

_NUMBERS = re.compile(r"\d+")
_VERSION = re.compile(r"\d+(\.\d+)*([.+-]?[a-z]\w*)?")

Version = Annotated[str, Meta(pattern=r"^\d+(\.\d+)*$")]


class Told(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where an engine tells the state of a flag, and which values are right."""

    field: str
    right: tuple[str | int | bool | None, ...] = ()
    wrong: tuple[str | int | bool | None, ...] = ()

    def is_right(self, value: object) -> bool:
        """Tell whether a value is right: one of `right`, or none of `wrong`."""
        return value in self.right if self.right else value not in self.wrong


class Flag(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One flag or variable of an engine. `since` and `before` bound the versions it is for."""

    flag: str
    shows: str
    costs: str
    since: Version = "0"
    before: Version = ""
    is_needed: bool = True
    """False for what sharpens the view and is not needed for it."""
    told: Told | None = None

    def holds_for(self, version: str) -> bool:
        """Tell whether the flag is for a version; an unknown one, empty, has all flags."""
        if not version:
            return True
        at = numbers(version)
        return at >= numbers(self.since) and (not self.before or at < numbers(self.before))


class Visibility(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The flags of one kind of engine, in the order in which they matter."""

    visibility: int
    engine_kind: str
    oldest: Version
    newest: Version
    """The releases whose sources were read; the newest to two numbers of its version at least."""
    flags: tuple[Flag, ...]


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version up to its third: 0.5.23 is later than 0.5.9."""
    return tuple(int(number) for number in _NUMBERS.findall(version.partition("+")[0])[:3])


def load_visibility() -> dict[str, Visibility]:
    """Return the flags by kind of engine."""
    folder = resources.files("detector.doctor")
    return {
        kind: msgspec.convert(
            yaml.safe_load(folder.joinpath(f"{kind}.yaml").read_text()), Visibility
        )
        for kind in KINDS
    }


def flags_for(wanted: str) -> list[tuple[str, Flag]]:
    """Return kinds and flags for `all`, a kind, or a kind and version such as `vllm=0.33.0`.

    Raises UsageError for anything else.
    """
    kind, _, version = wanted.partition("=")
    known = load_visibility()
    if kind not in ("all", *known) or (version and not _VERSION.fullmatch(version)):
        raise UsageError(
            "no such engine",
            where="--flags",
            hint=f"all, {', '.join(known)}, or with a version, such as {KINDS[0]}=0.33.0",
        )
    if version:
        _check_known(known.get(kind), version)
    return [
        (name, flag)
        for name, visibility in known.items()
        if kind in ("all", name)
        for flag in visibility.flags
        if flag.holds_for(version)
    ]


def _check_known(visibility: Visibility | None, version: str) -> None:
    """Refuse a version of `all`, and one that nobody has looked at: its flags may be others."""
    if visibility is None:
        raise UsageError(
            "a version is of one engine", where="--flags", hint=f"such as {KINDS[0]}=0.33.0"
        )
    newest = numbers(visibility.newest)
    if not numbers(visibility.oldest) <= numbers(version)[: len(newest)] <= newest:
        raise UsageError(
            f"flags are known of {visibility.engine_kind} {visibility.oldest} to "
            f"{visibility.newest}, not of {version}",
            where="--flags",
            hint=f"take those of {visibility.engine_kind}={visibility.newest} and look for changes "
            "in the engine's release notes",
        )

"""Whether a deployment uses a feature, as far as its flags or its owner tell, and what says so."""

from collections.abc import Mapping
from typing import NamedTuple

from detector.advisories.arguments import OFF, Arguments
from detector.advisories.model import Feature, FlagTest


class Known(NamedTuple):
    """Whether a feature is in use, and what says so."""

    is_used: bool
    by: str


Facts = Mapping[str, Known]
"""What is known without flags, by the name of the feature."""


def known_of(feature: Feature, arguments: Arguments | None) -> Known | None:
    """Return what the flags tell of a feature, None if they do not; None flags are not known."""
    if arguments is None:
        return None
    for tests, is_used in ((feature.disabled_by, False), (feature.enabled_by, True)):
        for test in tests:
            if _holds(test, arguments):
                return Known(is_used, _given(test, arguments))
    other = [test for test in feature.enabled_by if test.flag in arguments]
    if other:
        return Known(False, _given(other[0], arguments))
    if feature.default == "unknown":
        return None
    return Known(feature.default == "enabled", f"{feature.default} by default")


def _holds(test: FlagTest, arguments: Arguments) -> bool:
    if test.flag not in arguments:
        return False
    values = arguments[test.flag]
    if test.values:
        return any(value in test.values for value in values)
    if test.contains:
        return any(part in value for part in test.contains for value in values)
    if test.above is not None:
        return any(value.isdigit() and int(value) > test.above for value in values)
    return not values or values[0].lower() not in OFF


def _given(test: FlagTest, arguments: Arguments) -> str:
    """Return the flag as it was given; long values, which may hold anything, are left out."""
    values = arguments[test.flag]
    if test.contains or not values:
        return f"--{test.flag}"
    return f"--{test.flag} {values[0]}"

"""Advisories in the form of OSV, and what they ask of a deployment.

The fields are those of https://ossf.github.io/osv-schema/ (1.6); what OSV leaves to each database
is in `database_specific`. A field that is not known is an error: a misspelt condition never holds.
"""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

SCHEMA_VERSION: Final = "1.6.7"

Line = Annotated[str, Meta(min_length=1, pattern=r"^[^\n]+$")]
Day = Annotated[str, Meta(pattern=r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}Z$")]
Word = Annotated[str, Meta(pattern=r"^[a-z][a-z_]*$")]
Identifier = Annotated[str, Meta(pattern=r"^[A-Z]+-[\w-]+$")]
Address = Annotated[str, Meta(pattern=r"^https://\S+$")]


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is read from data files."""


class Package(_Strict, frozen=True, kw_only=True):
    """A program. `GitHub` stands for those that no registry known to OSV holds."""

    ecosystem: Literal["PyPI", "GitHub"]
    name: Line


class Event(_Strict, frozen=True, kw_only=True, omit_defaults=True):
    """One edge of a range: exactly one field is set; "0" introduces from the first version on."""

    introduced: str | None = None
    fixed: str | None = None
    last_affected: str | None = None


class Range(_Strict, frozen=True, kw_only=True):
    """An edge where the fault begins, and where there is one an edge where it ends."""

    type: Literal["ECOSYSTEM"]
    events: Annotated[tuple[Event, ...], Meta(min_length=1, max_length=2)]


class Applies(_Strict, frozen=True, kw_only=True):
    """Features that must all be in use for the advisory to apply."""

    applies_when: tuple[Word, ...] = ()


class Affected(_Strict, frozen=True, kw_only=True):
    """One program, its affected versions, and when it is affected."""

    package: Package
    ranges: Annotated[tuple[Range, ...], Meta(min_length=1)]
    database_specific: Applies = Applies()


class Reference(_Strict, frozen=True, kw_only=True):
    """Where a reader can check it."""

    type: Literal["ADVISORY", "ARTICLE", "FIX", "REPORT", "WEB"]
    url: Address


class Rating(_Strict, frozen=True, kw_only=True):
    """How grave it is, by those who published it (vendor) or, where they do not say, by us."""

    severity: Literal["low", "medium", "high", "critical"]
    rated_by: Literal["vendor", "bleedwatch"]


class Advisory(_Strict, frozen=True, kw_only=True):
    """One advisory. Our own ids begin with BWA: faults that have no CVE and no GHSA."""

    schema_version: str = SCHEMA_VERSION
    id: Identifier
    modified: Day
    aliases: tuple[Identifier, ...] = ()
    summary: Line
    details: Line
    affected: Annotated[tuple[Affected, ...], Meta(min_length=1)]
    references: Annotated[tuple[Reference, ...], Meta(min_length=1)]
    database_specific: Rating

    @property
    def packages(self) -> tuple[str, ...]:
        """The names of the programs that it is about."""
        return tuple(one.package.name for one in self.affected)


class FlagTest(_Strict, frozen=True, kw_only=True):
    """A flag, without its dashes, and which values count; any value that is not off without them.

    `contains` is looked for in the value; `above` is a number that it must exceed.
    """

    flag: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9-]*$")]
    values: tuple[str, ...] = ()
    contains: tuple[str, ...] = ()
    above: int | None = None


class Feature(_Strict, frozen=True, kw_only=True):
    """Something a deployment uses or does not, and how its flags tell."""

    says: Line
    enabled_by: tuple[FlagTest, ...] = ()
    disabled_by: tuple[FlagTest, ...] = ()
    default: Literal["enabled", "disabled", "unknown"] = "unknown"


Features = dict[str, dict[str, Feature]]
"""By program and name."""

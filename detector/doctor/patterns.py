"""Check of the operator's pattern files: readable, without faults, and no name off that is none."""

from collections.abc import Iterator

from detector.doctor.facts import Facts
from detector.doctor.verdicts import Level, Verdict
from detector.errors import SettingsError
from detector.signals import BUILT_IN, built_in, check_names, read_patterns


def patterns(facts: Facts) -> Iterator[Verdict]:
    """Every pattern file can be used, and every name in `signals.off` is that of a pattern."""
    settings = facts.settings.signals
    known = [built_in(engine) for engine in BUILT_IN]
    has_all = True
    for file in settings.files:
        try:
            read = read_patterns(file)
        except SettingsError as error:
            has_all = False
            yield Verdict(Level.ERROR, file, str(error), "see docs/engine-events.md for the form")
            continue
        known.append(read)
        found = f"{len(read.patterns):,} patterns for {read.engine}"
        yield Verdict(Level.OK, file, found)
    if not has_all:
        return  # a name may be one of the file that cannot be read
    try:
        check_names(known, settings.off)
    except SettingsError as error:
        yield Verdict(Level.ERROR, error.where, error.what, error.hint)

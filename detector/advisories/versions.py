"""Whether a version lies in an affected range, by the order of PEP 440, read with caution.

Local parts (+cu128) do not count. A candidate of the first affected release counts as affected, and
so does one of the release that fixes: it may have been cut before the fix. A post release of the
last affected one counts as affected: no fix is known.
"""

import re

from packaging.version import Version

from detector.advisories.model import Event, Range

_BUILD = re.compile(r"b(\d+)")
"""llama.cpp numbers its builds b9747, b10241 and so on."""


def parse_version(text: str) -> Version | None:
    """Return a version without its local part; None if it is none that can be ordered."""
    build = _BUILD.fullmatch(text.strip())
    try:
        return Version(Version(build[1] if build else text).public)
    except ValueError:  # that of packaging, or of int for thousands of digits
        return None


def is_affected(version: Version, affected: Range) -> bool:
    """Tell whether a version lies in a range whose events are valid."""
    edges = _edges(affected)
    if "introduced" in edges and not _has_begun(version, edges["introduced"]):
        return False
    if "fixed" in edges:
        return version < Version(edges["fixed"])
    if "last_affected" in edges:
        return _without_post(version) <= Version(edges["last_affected"])
    return True


def told(affected: Range) -> str:
    """Return a range in words, such as "from 0.5.13, before 0.5.22"."""
    edges = _edges(affected)
    words = [] if edges.get("introduced", "0") == "0" else [f"from {edges['introduced']}"]
    if "fixed" in edges:
        words.append(f"before {edges['fixed']}")
    elif "last_affected" in edges:
        words.append(f"up to {edges['last_affected']}")
    else:
        words.append("no fix known")
    return ", ".join(words)


def problems(affected: Range) -> list[str]:
    """Return what is wrong with the events of a range."""
    found = [
        f"an event has {len(_set(event))} edges, not one"
        for event in affected.events
        if len(_set(event)) != 1
    ]
    edges = _edges(affected)
    if "introduced" not in edges:
        found.append("a range does not say where it begins: introduced")
    unordered = [text for text in edges.values() if parse_version(text) is None]
    found += [f"no version of PEP 440: {text}" for text in unordered]
    if not unordered and len(edges) == 2 and "introduced" in edges:
        (end,) = (text for name, text in edges.items() if name != "introduced")
        if Version(end) < Version(edges["introduced"]):
            found.append("a range ends before it begins")
    return found


def _set(event: Event) -> dict[str, str]:
    edges = {
        "introduced": event.introduced,
        "fixed": event.fixed,
        "last_affected": event.last_affected,
    }
    return {name: text for name, text in edges.items() if text is not None}


def _edges(affected: Range) -> dict[str, str]:
    edges: dict[str, str] = {}
    for event in affected.events:
        edges |= _set(event)
    return edges


def _has_begun(version: Version, introduced: str) -> bool:
    first = Version(introduced)
    if version >= first:
        return True
    return not first.is_prerelease and version.base_version == first.base_version


def _without_post(version: Version) -> Version:
    if version.post is None:
        return version
    release = ".".join(map(str, version.release))
    before = "".join(map(str, version.pre or ()))
    return Version(f"{version.epoch}!{release}{before}")

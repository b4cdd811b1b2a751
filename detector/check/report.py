"""Results for machines: rows, JUnit's XML, and annotations that GitHub shows beside the lines."""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from xml.etree import ElementTree

from detector.check.verdict import Result, Verdict

COLUMNS: Final = ("verdict", "check", "engine", "found", "where", "why", "next_step")

_COMMANDS: Final = {Verdict.FAIL: "error", Verdict.WARN: "warning", Verdict.UNKNOWN: "notice"}
_PLACE: Final = re.compile(r"(.+):(\d+)")
_NOT_XML: Final = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd]")


def row(result: Result) -> dict[str, str]:
    """Return a result as one flat object."""
    said = result.said
    return {
        "verdict": said.verdict.value,
        "check": result.check,
        "engine": result.engine,
        "found": said.found,
        "where": said.where,
        "why": said.why,
        "next_step": said.next_step,
    }


def junit(results: Iterable[Result], *, suite: str) -> str:
    """Return results as JUnit's XML: unknown is skipped, a warning passes and is written out."""
    known = list(results)
    verdicts = [one.said.verdict for one in known]
    root = ElementTree.Element(
        "testsuite",
        name=suite,
        tests=str(len(known)),
        failures=str(verdicts.count(Verdict.FAIL)),
        skipped=str(verdicts.count(Verdict.UNKNOWN)),
        errors="0",
    )
    for one in known:
        case = ElementTree.SubElement(
            root, "testcase", classname=_xml(one.engine), name=_xml(one.check)
        )
        text = _xml(told(one))
        if one.said.verdict is Verdict.FAIL:
            ElementTree.SubElement(case, "failure", message=_xml(one.said.found)).text = text
        elif one.said.verdict is Verdict.UNKNOWN:
            ElementTree.SubElement(case, "skipped", message=text)
        else:
            ElementTree.SubElement(case, "system-out").text = text
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def annotations(results: Iterable[Result]) -> Iterator[str]:
    """Yield the commands that make GitHub show a result at its line; what passes has none.

    The form is that of https://docs.github.com/actions, "Workflow commands".
    """
    for one in results:
        command = _COMMANDS.get(one.said.verdict)
        if command is None:
            continue
        place = _PLACE.fullmatch(one.said.where)
        properties = {"file": place[1], "line": place[2]} if place is not None else {}
        properties["title"] = f"{one.check}: {one.engine}"
        listed = ",".join(f"{name}={_property(text)}" for name, text in properties.items())
        yield f"::{command} {listed}::{_data(told(one))}"


def told(result: Result) -> str:
    """Return a result in sentences: what, why, what next."""
    said = result.said
    parts = [said.found, said.why, f"Next: {said.next_step}" if said.next_step else ""]
    return ". ".join(part[:1].upper() + part[1:] for part in parts if part) + "."


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _xml(text: str) -> str:
    return _NOT_XML.sub("?", text)

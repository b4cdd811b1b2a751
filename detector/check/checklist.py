"""The review "safe by default": six questions, answered by what the checks found, with evidence."""

import enum
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from detector.check.report import told
from detector.check.verdict import Result, Said, Verdict


class Answer(enum.StrEnum):
    """The answer to a question; the gravest evidence decides."""

    NO = "no"
    PARTLY = "partly"
    NOT_KNOWN = "not known"
    YES = "yes"


class Item(NamedTuple):
    """One question with its answer, and a line for each thing that it rests on."""

    question: str
    answer: Answer
    evidence: tuple[Result, ...]

    @property
    def lines(self) -> Iterator[str]:
        """What the answer rests on, in sentences."""
        for one in self.evidence:
            yield f"{one.said.verdict.value}: {told(one)} ({one.engine}, {one.said.where})"


VERSION: Final = "version"
MONITOR: Final = "monitor"
PROBE: Final = "probe"
"""Names of what is no check of a configuration."""

QUESTIONS: Final = (
    (
        "Does the KV pool hold every prompt that the model allows?",
        ("pool-covers-context", "input-limits", "pool-covers-load", "page-size"),
    ),
    (
        "Is memory cleaned up, and compared, on every path of an error?",
        ("deferred-release", "transfer-metadata", "kv-checksum"),
    ),
    (
        "Are tenants kept apart in every cache and by every call?",
        ("prefix-cache", "prefix-hash", "request-ids", "endpoints"),
    ),
    ("Do versions run in which no fault of isolation is known?", (VERSION,)),
    (
        "Does a monitor run, and does it see everything?",
        (MONITOR, "request-log", "multimodal", "all-flags"),
    ),
    ("Are the boundaries tested?", (PROBE,)),
)

_ANSWERS: Final = {
    Verdict.FAIL: Answer.NO,
    Verdict.WARN: Answer.PARTLY,
    Verdict.UNKNOWN: Answer.NOT_KNOWN,
    Verdict.PASS: Answer.YES,
}


def checklist(results: Iterable[Result]) -> list[Item]:
    """Return the questions with their answers; without evidence nothing is known."""
    known = list(results)
    return [_item(question, names, known) for question, names in QUESTIONS]


def _item(question: str, names: Sequence[str], results: Sequence[Result]) -> Item:
    evidence = [one for name in names for one in results if one.check == name]
    missing = [
        Result(name, "nothing that was given", _NOT_GIVEN[name])
        for name in names
        if name in _NOT_GIVEN and not any(one.check == name for one in evidence)
    ]
    evidence += missing
    order = list(Verdict)
    evidence.sort(key=lambda one: order.index(one.said.verdict))
    answer = _ANSWERS[evidence[0].said.verdict] if evidence else Answer.YES
    return Item(question, answer, tuple(evidence))


_NOT_GIVEN: Final = {
    MONITOR: Said(
        Verdict.UNKNOWN,
        "no monitor was named",
        "--monitor",
        "a bleed that nobody looks for is found by customers",
        "name the metrics ports of its processes with --monitor",
    ),
    PROBE: Said(
        Verdict.UNKNOWN,
        "no result of a probe was given",
        "--probe",
        "limits that are only configured are not known to hold",
        "run `bleedwatch probe --record FILE` in the build, and give FILE with --probe",
    ),
}

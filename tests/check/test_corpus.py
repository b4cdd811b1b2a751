"""Every configuration of the corpus gets exactly the verdicts it must."""

import re

import pytest

from detector.check.plan import CHECKS
from detector.check.verdict import Verdict
from tests.check.corpus_files import Case, cases, said

CASES = cases()
SHAPE = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/blob/[0-9a-f]{40}/[\w./-]+\.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_check_says_what_it_must(case: Case) -> None:
    results = case.results()
    for verdict in (Verdict.FAIL, Verdict.WARN, Verdict.UNKNOWN):
        assert said(results, verdict) == case.expected(verdict), verdict


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_is_sound_is_not_blocked_and_what_is_planted_is(case: Case) -> None:
    is_planted = case.head["about"].startswith("fault:")
    assert bool(case.expected(Verdict.FAIL)) == is_planted


def test_the_corpus_is_large_and_half_of_it_has_the_shape_of_public_manifests() -> None:
    shapes = [case.head["shape"] for case in CASES if case.head["shape"]]
    assert len(CASES) >= 40
    assert len(shapes) >= 20
    assert len(set(shapes)) >= 20
    assert all(SHAPE.fullmatch(shape) for shape in shapes)


def test_every_check_passes_somewhere_and_somewhere_not() -> None:
    found = [one for case in CASES for one in case.results()]
    passed = {one.check for one in found if one.said.verdict is Verdict.PASS}
    others = {one.check for one in found if one.said.verdict is not Verdict.PASS}
    assert passed == others == {check.name for check in CHECKS}


def test_what_does_not_pass_says_where_why_and_what_next() -> None:
    for case in CASES:
        for one in case.results():
            if one.said.verdict is not Verdict.PASS:
                assert one.said.why
                assert one.said.next_step
            assert one.said.found
            assert one.said.where

"""The ledger calls a bleed lost and a finding false when they are."""

from typing import Any

import pytest

from tests.cluster.clients import Asked
from tests.cluster.faults import BLEEDING, REFUSED, Bleed, longest_common
from tests.cluster.ledger import NEAR_S, entries, false_high

SENT_S = 1_000.0


def asked(request_id: str) -> Asked:
    return Asked(
        engine=BLEEDING, request_id=request_id, tenant="t", sent_s=SENT_S, prompt=(), status=200,
        answer=(),
    )  # fmt: skip


def told(rule: str, request_id: str = "", *, at_s: float = SENT_S + 2) -> dict[str, Any]:
    at_ms = round(at_s * 1000)
    return {
        "rule": rule, "kv_pool": BLEEDING, "confidence": "high", "sink": {"request_id": request_id},
        "detected_at_ms": at_ms, "observed_at_ms": at_ms, "explanation": f"{rule} says so",
    }  # fmt: skip


BLEED = Bleed(asked("document-1"), asked(f"{REFUSED}1"), 24)


def test_a_bleed_that_a_finding_names_is_told_of() -> None:
    findings = [told("BW101", f"{REFUSED}1", at_s=SENT_S + 3), told("BW001", f"{REFUSED}1")]
    (one,) = entries([BLEED], findings)
    assert (one.rules, one.seconds, one.causes) == (("BW001", "BW101"), 2.0, ())


@pytest.mark.parametrize(
    ("findings", "accounted"),
    [
        ([], False),
        ([told("BW001", f"{REFUSED}2")], False),
        ([told("BW901")], True),
        ([told("BW901", at_s=SENT_S + NEAR_S + 1)], False),
        ([told("BW901") | {"kv_pool": "another"}], False),
    ],
)
def test_one_that_none_names_needs_blindness_of_its_pool_and_time(
    findings: list[dict[str, Any]], accounted: bool
) -> None:
    (one,) = entries([BLEED], findings)
    assert one.is_accounted is accounted


def test_a_sure_finding_without_a_fault_is_false() -> None:
    wrong = told("BW001", "req-1")
    right = [told("BW001", f"{REFUSED}1"), told("BW901"), told("BW001") | {"confidence": "low"}]
    assert false_high([wrong, *right]) == [wrong]


def test_common_stretches_are_counted_in_tokens() -> None:
    text = tuple(range(100))
    assert longest_common(text, (7_000, *text[10:34], 7_001)) == 24
    assert longest_common(text, (7_000, *text[10:29], 7_001)) == 0

"""A run over Kafka that does not show what it must is told from one that does."""

from typing import Any

import pytest

from tests.load import verdict

RATE = 1_000


def labelled(high: tuple[int, int], low: tuple[int, int]) -> list[str]:
    return verdict.labelled(
        [
            {"confidence": word, "replay": 100, "only replay": mine, "only stream": theirs}
            for word, (mine, theirs) in (("high", high), ("medium", (0, 0)), ("low", low))
        ]
    )


def test_findings_of_high_confidence_may_not_differ_and_others_by_a_twentieth() -> None:
    assert not labelled((0, 0), (5, 5))
    assert labelled((0, 0), (6, 5)) == ["11 other findings differ; at most 10 may"]
    assert labelled((1, 0), (0, 0)) == labelled((0, 1), (0, 0))
    assert labelled((1, 0), (0, 0)) == ["findings of high confidence differ"]


@pytest.mark.parametrize(("found", "p99", "faults"), [(9, 0.9, 0), (8, 0.9, 1), (8, 1.0, 2)])
def test_every_bleed_is_found_within_a_second(found: int, p99: float, faults: int) -> None:
    rows = [
        {"measured": "bleeds planted", "value": 9},
        {"measured": "of them found", "value": found},
        {"measured": "acknowledged to found, p99", "value": p99},
    ]
    assert len(verdict.latency(rows)) == faults


def soaked(*, rate: int = RATE, growth: float = 0.0, steps: int = 40) -> list[str]:
    rows: list[dict[str, Any]] = [
        {"after": f"{15 * at} s", "tokens/s": rate, "RSS MiB": 3_000 + growth * at}
        for at in range(1, steps)
    ]
    return verdict.soak([*rows, {"after": "all", "tokens/s": 0, "RSS MiB": 0}], RATE)


def test_a_soak_keeps_its_rate_and_its_memory() -> None:
    assert not soaked()
    assert not soaked(rate=995, growth=5)
    assert soaked(rate=980) == ["980 tokens/s are kept up, not 1,000"]
    assert soaked(growth=20)[0].startswith("memory has grown from ")
    assert soaked(steps=20)[0].startswith("too short")

"""Findings: ids that never depend on order or ties, every equally good source, the right rule."""

import itertools

import pytest

from detector.finding import Confidence, Finding, Severity
from detector.model import Sequence
from detector.rules.content import finding_id
from detector.settings import DetectionSettings, IndexSettings
from tests.unit.sequences import LEARNED, detector, found, join, prompt, response, text

SECRET = text(1, 40)


def only(sequences: list[Sequence]) -> Finding:
    (finding,) = found(sequences)
    return finding


def sources(finding: Finding) -> list[str]:
    return [finding.source.request_id, *(one.request_id for one in finding.other_sources)]


TIES = [prompt("a", f"t{n}", n, join(text(10 + n, 5 * n), SECRET)) for n in range(4)]
SINK = response("b", "2", 10, join(text(2, 7), SECRET))


def test_ids_are_the_same_whatever_the_order_of_arrival_and_the_source_listed_first() -> None:
    ids = {only([*order, SINK]).id for order in itertools.permutations(TIES)}
    ids |= {only([one, SINK]).id for one in TIES}
    assert ids == {finding_id(SINK, "a")}
    assert len(finding_id(SINK, "a")) == 32


def test_ids_tell_requests_tenants_and_pools_apart() -> None:
    others = [
        finding_id(SINK, "c"),
        finding_id(response("c", "2", 10, SECRET), "a"),
        finding_id(response("b", "3", 10, SECRET), "a"),
        finding_id(response("b", "2", 11, SECRET), "a"),
        finding_id(response("b", "2", 10, SECRET, pool="q"), "a"),
    ]
    assert len({*others, finding_id(SINK, "a")}) == 6
    assert finding_id(response("b", "2", 10, text(9, 9), end_s=99), "a") == finding_id(SINK, "a")


def test_every_equally_good_source_is_listed_the_latest_first() -> None:
    for order in itertools.permutations(TIES):
        assert sources(only([*order, SINK])) == ["t3", "t2", "t1", "t0"]


def test_a_source_that_lacks_more_than_two_tokens_is_not_equally_good() -> None:
    """The best comes first, for its tokens are those that the finding counts."""
    cut = [prompt("a", f"c{n}", n, SECRET[: 40 - n]) for n in range(5)]
    assert sources(only([*cut, SINK])) == ["c0", "c2", "c1"]
    assert sources(only([*cut[:2], SINK])) == ["c0", "c1"], "the last one that showed it"


@pytest.mark.parametrize("window", [2, 8, 16])
@pytest.mark.parametrize("name", range(8))
def test_a_sample_of_the_run_hides_no_later_source_that_lacks_a_token(
    window: int, name: int
) -> None:
    run = text(1000 + name, 40)
    lacking = join(run[:12], text(2000 + name, 1), run[13:])
    around = [text(3000 + number, 20) for number in range(3)]
    shown = [
        prompt("a", f"t{number}", number, join(around[number], held, around[number]))
        for number, held in enumerate((run, run, lacking))
    ]
    by = detector(
        DetectionSettings(
            commonness=LEARNED, index=IndexSettings(sampling="winnow", winnow_window=window)
        )
    )
    (finding,) = found([*shown, response("b", "2", 10, run)], by=by)
    assert sorted(sources(finding)) == ["t0", "t1", "t2"]


def test_equal_sources_in_another_pool_or_out_of_the_window_are_not_listed() -> None:
    elsewhere = prompt("a", "q", 5, SECRET, pool="q")
    old = prompt("a", "old", -400, SECRET)
    after = prompt("a", "after", 12, SECRET)
    assert sources(only([TIES[0], elsewhere, old, SINK, after])) == ["t0"]


def test_requests_that_repeat_an_id_are_listed_each() -> None:
    """Engines accept repeated request ids."""
    same = [prompt("a", "same", at, SECRET) for at in (0, 1)]
    finding = only([*same, prompt("a", "other", 0.5, SECRET), SINK])
    listed = [
        (one.request_id, one.started_at_ms) for one in (finding.source, *finding.other_sources)
    ]
    assert listed == [("same", 1000), ("other", 500), ("same", 0)]


def test_prompt_and_response_of_one_request_are_one_source() -> None:
    traffic = [prompt("a", "1", 0, SECRET), response("a", "1", 0, SECRET), SINK]
    assert sources(only(traffic)) == ["1"]


def test_evidence_speaks_of_the_source_that_is_named() -> None:
    """Offsets of a run lead to the same tokens in the sink and in the named source."""
    for order in itertools.permutations(TIES):
        finding = only([*order, SINK])
        (run,) = finding.evidence.runs
        named = next(one for one in TIES if one.request_id == finding.source.request_id)
        assert (run.length, run.unexplained, run.sink_start) == (40, 40, 7)
        source = named.token_hashes[run.source_start : run.source_start + run.length]
        assert source.tolist() == SECRET.tolist()


def test_one_finding_per_sink_and_source_tenant() -> None:
    parts = join(SECRET, text(3, 30), text(4, 20))
    traffic = [
        prompt("a", "1", 0, SECRET), response("a", "1", 0, text(3, 30)),
        prompt("c", "5", 1, text(4, 20)), response("b", "2", 10, parts),
    ]  # fmt: skip
    findings = found(traffic)
    assert sorted(one.source.tenant for one in findings) == ["a", "c"]
    assert len({one.id for one in findings}) == 2
    assert {one.evidence.unexplained_tokens for one in findings} == {40, 20}


def test_a_foreign_prompt_is_bw001_and_says_so() -> None:
    finding = only([TIES[0], SINK])
    assert (finding.rule, finding.severity, finding.confidence) == (
        "BW001", Severity.HIGH, Confidence.HIGH,
    )  # fmt: skip
    assert (finding.source.kind, finding.sink.kind) == ("prompt", "response")
    assert finding.explanation == (
        "Tenant b received in request 2 40 consecutive tokens of the prompt of tenant a "
        "(request t0, started "
        "10 s earlier on p), and nothing explains them."
    )


def test_a_part_of_a_foreign_response_is_bw002_and_says_so() -> None:
    whole = join(text(5, 100), SECRET)
    finding = only([response("a", "1", 4, whole, end_s=6), SINK])
    assert finding.rule == "BW002"
    assert finding.explanation == (
        "Tenant b received in request 2 40 consecutive tokens of the response of tenant a "
        "(request 1, started "
        "6 s earlier on p), and nothing explains them."
    )


@pytest.mark.parametrize(
    ("extra", "rule"), [(0, "BW003"), (39, "BW003"), (40, "BW002"), (90, "BW002")]
)
def test_from_half_the_bigrams_in_common_it_is_the_whole_response(extra: int, rule: str) -> None:
    """39 of 78 bigrams are in common, or of 79."""
    finding = only(
        [response("a", "1", 4, join(SECRET, text(5, extra))), response("b", "2", 9, SECRET)]
    )
    assert finding.rule == rule
    if rule == "BW003":
        assert finding.explanation == (
            "Tenant b received in request 2 the response of tenant a "
            "(request 1, started 5 s earlier on p): "
            "40 consecutive tokens are the same and nothing explains them."
        )


def test_a_source_that_started_later_is_said_to() -> None:
    sink = response("b", "2", 10, SECRET, end_s=40)
    finding = only([sink, prompt("a", "1", 13, SECRET)])
    assert "started 3 s later on p" in finding.explanation


def test_evidence_counts_tokens_and_shingles() -> None:
    noisy = SECRET.copy()
    noisy[20] += 1
    sink = response("b", "2", 10, join(text(2, 60), noisy))
    finding = only([prompt("a", "1", 0, SECRET, prompt_token_count=40), sink])
    evidence = finding.evidence
    assert (evidence.matched_tokens, evidence.unexplained_tokens, evidence.sink_tokens) == (
        39,
        39,
        100,
    )
    assert evidence.containment == round(21 / 91, 3)
    assert (evidence.rarity, evidence.reasons) == (1.0, {})
    assert finding.source.prompt_tokens == 40
    assert (finding.observed_at_ms, finding.detected_at_ms) == (11_000, 11_000)


def test_no_field_of_a_finding_holds_a_token() -> None:
    finding = only([*TIES, SINK])
    shown = repr(finding)
    assert not [token for token in SECRET.tolist() if str(token) in shown]


def test_rarity_is_the_share_of_the_run_that_nobody_else_has_shown() -> None:
    """Twelve tokens of a third tenant at the end of the run: 3 of its 31 shingles are not rare."""
    copied = text(1, 40)
    finding = only(
        [
            prompt("c", "0", 0, copied[28:]),
            prompt("a", "1", 10, join(text(2, 20), copied)),
            response("b", "2", 20, join(text(3, 20), copied)),
        ]
    )
    assert finding.evidence.rarity == round(28 / 31, 3)
    assert finding.evidence.reasons == {"common": 3}

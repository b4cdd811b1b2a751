"""The whole detector: against the oracle, in any order of arrival, at every size of a sequence."""

import random
from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from detector import pipeline
from detector.finding import Finding
from detector.index.window import Sequencer
from detector.model import MAX_SEQUENCE_TOKENS, PART_OVERLAP, Hashes, Kind, Sequence
from detector.pipeline import Detector
from detector.settings import DetectionSettings
from detector.sketch.shingle import shingle_keys
from ingest.door import split
from tests.reference.oracle import Pair, Verdict, judge
from tests.reference.random_conversations import random_conversations
from tests.reference.random_traffic import random_traffic
from tests.unit.sequences import (
    LEARNED,
    SETTINGS,
    detector,
    found,
    join,
    pairs,
    prompt,
    response,
    text,
)

HOLD_MS = 60_000


def by_pair(findings: Iterable[Finding]) -> dict[Pair, Finding]:
    return {(one.sink.request_id, one.source.tenant): one for one in findings}


class Difference:
    """Tells whether the detector may differ from the definitions about one pair, and why."""

    def __init__(self, traffic: list[Sequence], pair: Pair) -> None:
        self.sink = next(s for s in traffic if s.request_id == pair[0] and s.kind is Kind.RESPONSE)
        wanted = set(shingle_keys(self.sink.token_hashes).tolist())
        keys = [(one, shingle_keys(one.token_hashes).tolist()) for one in traffic]
        self.shown = [(one, [key for key in every if key in wanted]) for one, every in keys]
        self.sources = [
            (one, found) for one, found in self.shown
            if (one.tenant, one.kv_pool) == (pair[1], self.sink.kv_pool)
        ]  # fmt: skip

    def unindexed(self) -> bool:
        """Of each kind the index keeps the first place in the first and in the last sequence."""
        within: Counter[int] = Counter()
        across: Counter[tuple[Kind, int]] = Counter()
        for one, given in self.sources:
            within |= Counter(given)
            across.update((one.kind, key) for key in set(given))
        return max(within.values(), default=0) >= 2 or max(across.values(), default=0) >= 3

    def overwritten(self) -> bool:
        """The memory keeps the first time only: the sink's own showing hides a later one.

        So what the receiver showed while the sink was decoding, and before a source that started
        even later, is no history to the detector.
        """
        began = self.sink.started_at_ms
        return any(
            began < own.started_at_ms < source.started_at_ms and set(shown) & set(given)
            for own, shown in self.shown
            if own.tenant == self.sink.tenant
            for source, given in self.sources
        )

    def tainted(self, others: set[str]) -> bool:
        """What is taken back of a bled shingle is the only time that the memory has of it.

        `others` are the sinks found besides: one of them shows a shingle of this pair.
        """
        bled = {key for one, shown in self.shown if one.request_id in others for key in shown}
        return any(bled & set(given) for _, given in self.sources)


def kind_of(
    traffic: list[Sequence], pair: Pair, fast: dict[Pair, Finding], slow: dict[Pair, Verdict]
) -> str:
    """Return what kind of agreement or difference there is about one pair."""
    here, verdict = fast.get(pair), slow.get(pair)
    if here and verdict and here.evidence.unexplained_tokens == verdict.tokens:
        return "same"
    if not here and verdict and verdict.relay:
        return "relay"
    difference = Difference(traffic, pair)
    others = {sink for sink, _ in {*fast, *slow} - {pair}}
    if difference.unindexed():
        return "unindexed"
    if here and difference.overwritten():
        return "overwritten"
    return "tainted" if difference.tainted(others) else "unknown"


def test_the_detector_finds_what_the_definitions_say() -> None:
    """Pairs and lengths over 500 small worlds; what may differ is told apart and stays rare."""
    outcome: Counter[str] = Counter()
    for seed in range(500):
        traffic = random_traffic(seed)
        fast = by_pair(found(traffic))
        slow = judge(traffic, SETTINGS, both_ways=False)
        for pair in {*fast, *slow}:
            kind = kind_of(traffic, pair, fast, slow)
            assert kind != "unknown", (seed, pair)
            outcome[kind] += 1
    assert outcome["same"] > 850
    assert outcome["relay"] <= 10
    assert outcome["unindexed"] <= 5
    assert outcome["overwritten"] <= 5
    assert outcome["tainted"] <= 5


def test_what_conversations_repeat_is_judged_as_the_definitions_say() -> None:
    same = 0
    for seed in range(100):
        traffic = random_conversations(seed)
        fast = by_pair(found(traffic))
        slow = judge(traffic, SETTINGS, both_ways=False)
        kinds = {pair: kind_of(traffic, pair, fast, slow) for pair in {*fast, *slow}}
        assert set(kinds.values()) <= {"same"}, (seed, kinds)
        same += len(kinds)
    assert same > 80


@pytest.mark.parametrize("shift_s", [-86_400 * 365 * 60, 1_800_000_000])
def test_the_origin_of_time_does_not_matter(shift_s: int) -> None:
    for seed in range(40):
        traffic = random_traffic(seed)
        wanted = pairs(found(traffic))
        for one in traffic:
            one.started_at_ms += shift_s * 1000
            one.ended_at_ms += shift_s * 1000
        assert pairs(found(traffic)) == wanted, seed


def test_arrival_up_to_a_minute_out_of_order_gives_the_same_findings() -> None:
    """Records arrive when they end and up to a minute later."""
    count = 0
    for seed in range(150):
        traffic = random_traffic(seed, requests=12)
        traffic.sort(key=lambda one: one.ended_at_ms)
        wanted = {one.id: one.evidence for one in found(traffic, hold_ms=HOLD_MS)}
        for shuffle in range(2):
            rng = random.Random(1000 * seed + shuffle)
            arrival = {id(one): one.ended_at_ms + rng.randrange(HOLD_MS) for one in traffic}
            shuffled = sorted(traffic, key=lambda one: arrival[id(one)])
            got = {one.id: one.evidence for one in found(shuffled, hold_ms=HOLD_MS)}
            assert got == wanted, seed
        count += len(wanted)
    assert count > 300


def test_a_record_that_is_too_late_for_its_place_is_matched_all_the_same() -> None:
    secret = text(1, 30)
    others = [prompt("x", f"x{at}", at, text(100 + at, 20)) for at in range(0, 200, 10)]
    sequencer, by = Sequencer(hold_ms=HOLD_MS), detector()
    late = [response("b", "2", 50, secret), prompt("a", "1", 40, secret)]
    findings = [
        finding for one in (*others, *late) for ready in sequencer.push(one)
        for finding in by.observe(ready)
    ]  # fmt: skip
    assert sequencer.late == 2
    assert pairs(findings) == {("2", "a")}


@pytest.mark.parametrize("jump_s", [-7200, -3000, 3000, 7200])
def test_a_clock_that_moved_does_not_blind(jump_s: int) -> None:
    """Less than an hour is taken for late or early records, more for a new time."""
    secret = text(1, 30)
    before = [prompt("x", f"x{n}", n, text(100 + n, 20)) for n in range(200)]
    after = [prompt("x", f"y{n}", jump_s + 200 + n, text(900 + n, 20)) for n in range(300)]
    after[100:100] = [prompt("a", "1", jump_s + 300, secret)]
    after[110:110] = [response("b", "2", jump_s + 309, secret)]
    assert pairs(found([*before, *after], hold_ms=HOLD_MS)) == {("2", "a")}


def test_one_wrong_clock_does_not_empty_the_memory() -> None:
    """What everybody shows stays common though one record says that it is ten years old."""
    common = text(1, 30)
    traffic = [prompt("c", "0", 0, common)]
    traffic += [prompt("x", f"x{n}", n, text(100 + n, 20)) for n in range(50)]
    traffic[20:20] = [prompt("w", "w", -10 * 365 * 86_400, text(2, 30))]
    traffic += [prompt("a", "1", 60, common), response("b", "2", 65, common)]
    assert not found(traffic, hold_ms=10_000)


def parts(make: str, tenant: str, request: str, at_s: float, tokens: Hashes) -> list[Sequence]:
    """Return a side of any length as the door cuts it."""
    maker = prompt if make == "prompt" else response
    return [
        maker(tenant, request, at_s, part.hashes, part=part.number, parts=part.total)
        for part in split(tokens, ())
    ]


@pytest.mark.parametrize("length", [0, 1, 8, 9])
def test_fewer_than_ten_tokens_are_taken_and_match_nothing(length: int) -> None:
    tokens = text(1, length)
    by = detector()
    assert not found([prompt("a", "1", 0, tokens), response("b", "2", 5, tokens)], by=by)
    assert (by.stats.tokens, by.stats.responses, by.live_postings) == (2 * length, 1, 0)


@pytest.mark.parametrize("length", [10, 11, MAX_SEQUENCE_TOKENS])
def test_everything_from_ten_tokens_to_the_longest_part_is_found(length: int) -> None:
    tokens = text(1, length)
    (finding,) = found([prompt("a", "1", 0, tokens), response("b", "2", 5, tokens)])
    assert finding.evidence.unexplained_tokens == length


def test_every_place_of_a_prompt_of_two_million_tokens_is_found() -> None:
    long = text(1, 2_000_000)
    sides = parts("prompt", "a", "1", 0, long)
    assert len(sides) == 16
    step = MAX_SEQUENCE_TOKENS - PART_OVERLAP
    by = detector()
    assert not found(sides, by=by)
    places = [0, step - 9, step - 5, step, step + 8, 15 * step - 1, len(long) - 10]
    for number, at in enumerate(places):
        sink = response("b", f"b{number}", 5 + number, join(text(50 + number, 20), long[at:][:10]))
        assert pairs(by.observe(sink)) == {(f"b{number}", "a")}, at


def test_a_response_of_many_parts_makes_one_finding_and_knows_its_own_prompt() -> None:
    secret = text(1, 40)
    step = MAX_SEQUENCE_TOKENS - PART_OVERLAP
    asked, answer = text(2, 300_000), text(3, 300_000)
    answer[step - 15 : step + 25] = secret
    answer[1000:2000] = asked[-1000:]
    answer[200_000:201_000] = asked[step - 500 : step + 500]
    traffic = [
        prompt("a", "1", 0, secret), prompt("c", "9", 0, asked),
        *parts("prompt", "b", "2", 5, asked), *parts("response", "b", "2", 5, answer),
    ]  # fmt: skip
    traffic[1] = prompt("c", "9", 0, asked[-1000:])
    findings = found(traffic)
    assert pairs(findings) == {("2", "a")}
    assert findings[0].evidence.unexplained_tokens >= 25


def test_parts_of_one_side_share_no_more_than_their_overlap() -> None:
    """The 9 tokens that two parts share are less than a shingle: no shingle counts twice."""
    tokens = text(1, 3 * MAX_SEQUENCE_TOKENS)
    cut = [shingle_keys(part.hashes) for part in split(tokens, ())]
    assert np.array_equal(np.concatenate(cut), shingle_keys(tokens))


def test_a_small_index_evicts_and_says_so_but_still_finds_what_is_recent() -> None:
    settings = DetectionSettings.model_validate(
        {"commonness": LEARNED, "index": {"memory_bytes": 1}}
    )
    by = Detector(settings)
    for number in range(8):
        by.observe(prompt("a", f"a{number}", number, text(number, MAX_SEQUENCE_TOKENS)))
    assert by.evicted_sequences > 0
    recent = text(7, MAX_SEQUENCE_TOKENS)[5000:5030]
    assert pairs(by.observe(response("b", "2", 9, recent))) == {("2", "a")}


def test_a_long_run_forgets_what_has_left_the_window() -> None:
    by = detector()
    for number in range(3000):
        by.observe(prompt("a", f"a{number}", number * 60, text(number, 30)))
    assert by.live_postings <= 17 * 21
    assert len(by._store.items) <= 17
    assert by._store.tokens <= 17 * 30


def test_giving_up_positions_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    short = DetectionSettings.model_validate(
        {
            "commonness": LEARNED,
            "window": {"length_ms": 60_000, "longest_response_ms": 30_000, "grace_ms": 1000},
        }
    )
    count = 0
    for seed in range(60):
        traffic = random_traffic(seed, requests=20)
        monkeypatch.setattr(pipeline, "RENUMBER_AT", 1 << 22)
        wanted = {one.id: one.evidence for one in found(traffic, by=detector(short))}
        monkeypatch.setattr(pipeline, "RENUMBER_AT", 4)
        by = detector(short)
        assert {one.id: one.evidence for one in found(traffic, by=by)} == wanted, seed
        assert len(by._store) < 40
        count += len(wanted)
    assert count > 50


def test_learning_caps_the_confidence_until_enough_time_was_seen() -> None:
    by = Detector(DetectionSettings())
    secret, other = text(1, 30), text(2, 30)
    (early,) = found([prompt("a", "1", 0, secret), response("b", "2", 5, secret)], by=by)
    assert by.learning
    assert (early.confidence, early.evidence.thresholds.learning) == ("low", True)
    (late,) = found([prompt("a", "3", 3600, other), response("b", "4", 3605, other)], by=by)
    assert not by.learning
    assert (late.confidence, late.evidence.thresholds.learning) == ("high", False)


def test_a_finding_is_told_again_only_when_it_rests_on_more() -> None:
    secret = text(1, 40)
    by = detector()
    by.observe(prompt("a", "1", 0, secret[:20]))
    sink = response("b", "2", 5, secret, end_s=30)
    (first,) = by.observe(sink)
    (more,) = by.observe(prompt("a", "3", 10, secret))
    assert first.id == more.id
    assert (first.evidence.unexplained_tokens, more.evidence.unexplained_tokens) == (20, 40)
    assert not by.observe(prompt("a", "4", 11, secret))

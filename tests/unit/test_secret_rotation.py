"""A new secret is a cold start: under it nothing is known as common, whatever the memory's age."""

import numpy as np
import pytest

from detector.finding import Confidence
from detector.index.memory import Memory
from detector.model import Hashes
from detector.pipeline import Detector
from detector.settings import CommonnessSettings, DetectionSettings
from tests.unit.sequences import detector, join, prompt, response, text

COMMONNESS = CommonnessSettings(memory_bytes=8 * 1024 * 1024)
SETTINGS = DetectionSettings(commonness=COMMONNESS)
HOUR_S = COMMONNESS.learning_ms // 1000
PHRASES = [text(500 + n, 60) for n in range(3)]
OLD, NEW, NEWEST = "00000001", "00000002", "00000003"


def under(tokens: Hashes, key_id: str) -> Hashes:
    """Return what the tokens are hashed to under another secret."""
    factor = {OLD: 1, NEW: 2_654_435_761, NEWEST: 2_246_822_519}[key_id]
    return (tokens.astype(np.uint64) * np.uint64(factor) % np.uint64(1 << 32)).astype(np.uint32)


def stock_answers(by: Detector, at_s: int, key_id: str) -> list[Confidence]:
    """Have tenants give one of the phrases each, two of them the same; return how sure that is."""
    sure = []
    for tenant in range(6):
        own = text(at_s * 10 + tenant, 30)
        tokens = under(join(own, PHRASES[tenant // 2]), key_id)
        at, request = at_s + tenant, f"{at_s}-{tenant}"
        one = response(f"t{tenant}", request, at, tokens, key_id=key_id)
        sure += [found.confidence for found in by.observe(one)]
    return sure


def bleed(by: Detector, at_s: int, key_id: str, *, pool: str = "p") -> Confidence:
    """Return how sure a bleed of 40 tokens is."""
    tokens = text(at_s, 40)
    by.observe(prompt("t0", f"{at_s}-a", at_s, tokens, key_id=key_id, pool=pool))
    (found,) = by.observe(response("t1", f"{at_s}-b", at_s + 5, tokens, key_id=key_id, pool=pool))
    assert found.evidence.thresholds.learning == by.learning
    return found.confidence


def hears(by: Detector, at_s: int, key_id: str, *, pool: str = "p") -> bool:
    """Observe a sequence; return whether the detector then learns."""
    by.observe(prompt("t9", f"{at_s}-h", at_s, text(at_s, 30), key_id=key_id, pool=pool))
    return by.learning


def test_a_new_secret_invents_nothing_sure_and_is_known_an_hour_later() -> None:
    by = detector(SETTINGS)
    for tenant in range(10, 16):
        by.warm(response(f"t{tenant}", "past", 0, under(join(*PHRASES), OLD), key_id=OLD))
    assert stock_answers(by, 3 * HOUR_S, OLD) == []
    invented = stock_answers(by, 3 * HOUR_S + 600, NEW)
    assert set(invented) == {Confidence.LOW}
    assert bleed(by, 4 * HOUR_S + 590, NEW) is Confidence.LOW
    assert bleed(by, 4 * HOUR_S + 600, NEW) is Confidence.HIGH


def test_each_further_secret_is_learned_and_the_first_stays_known() -> None:
    by = detector(SETTINGS)
    assert hears(by, 0, OLD)
    assert not hears(by, HOUR_S, OLD)
    assert hears(by, HOUR_S + 1, NEW)
    assert not hears(by, HOUR_S + 2, OLD)
    assert not hears(by, 2 * HOUR_S + 1, NEW)
    assert hears(by, 2 * HOUR_S + 2, NEWEST)


def test_a_finding_goes_by_the_secret_of_its_sink() -> None:
    by = detector(SETTINGS)
    hears(by, 0, OLD)
    hears(by, HOUR_S, NEW)
    assert by.learning
    assert bleed(by, HOUR_S + 10, OLD) is Confidence.HIGH
    assert bleed(by, HOUR_S + 20, NEW) is Confidence.LOW


def test_after_a_restart_the_age_of_the_memory_alone_decides() -> None:
    memory = Memory(COMMONNESS)
    by = detector(SETTINGS, memory=memory)
    assert hears(by, 30 * HOUR_S, NEW)
    memory.seen.reach_back(6 * HOUR_S * 1000)
    assert bleed(by, 30 * HOUR_S + 1, NEW) is Confidence.HIGH


def test_history_tells_its_secret() -> None:
    by = detector(SETTINGS)
    by.warm(prompt("t0", "past", 0, text(1, 30), key_id=OLD))
    assert bleed(by, 2 * HOUR_S, OLD) is Confidence.HIGH
    assert bleed(by, 2 * HOUR_S + 10, NEW) is Confidence.LOW


def test_pools_that_change_over_at_different_times_share_what_is_known() -> None:
    memory = Memory(COMMONNESS)
    first, second = (detector(SETTINGS, memory=memory) for _ in range(2))
    hears(first, 0, OLD)
    assert not hears(second, HOUR_S, OLD, pool="q")
    assert hears(first, 2 * HOUR_S, NEW)
    assert bleed(second, 2 * HOUR_S + 5, OLD, pool="q") is Confidence.HIGH
    assert hears(second, 2 * HOUR_S + 1800, NEW, pool="q")
    assert bleed(first, 3 * HOUR_S, NEW) is Confidence.HIGH
    assert bleed(second, 3 * HOUR_S, NEW, pool="q") is Confidence.HIGH


def test_a_pool_that_lags_does_not_end_the_learning_of_the_others() -> None:
    memory = Memory(COMMONNESS)
    lagging, live = (detector(SETTINGS, memory=memory) for _ in range(2))
    hears(live, 0, OLD)
    hears(live, 5 * HOUR_S, OLD)
    assert hears(lagging, 3 * HOUR_S, NEW, pool="q")
    assert hears(live, 5 * HOUR_S + 60, NEW)


@pytest.mark.parametrize("key_id", ["", "ffffffff"])
def test_a_record_without_tokens_names_no_secret(key_id: str) -> None:
    by = detector(SETTINGS)
    by.observe(prompt("t0", "none", 0, text(1, 0), key_id=key_id))
    hears(by, 1, OLD)
    assert not hears(by, HOUR_S + 1, OLD)
    by.observe(prompt("t0", "none", HOUR_S + 2, text(1, 0), key_id=key_id))
    assert not by.learning

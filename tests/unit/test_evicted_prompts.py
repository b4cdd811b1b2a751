"""A prompt that had to go for want of memory explains nothing more, so nothing sure rests on it."""

import pytest

from detector.finding import Confidence
from detector.model import Role, Span
from detector.pipeline import Detector
from detector.settings import DetectionSettings, IndexSettings
from tests.unit.sequences import SETTINGS, detector, prompt, response, text

QUESTION, ANSWER = text(1, 60), text(2, 200)
ASKED = (Span(Role.USER, 0, len(QUESTION)),)
SMALL = SETTINGS.model_copy(update={"index": IndexSettings(memory_bytes=1)})


def fill(by: Detector, *, begin_s: int) -> None:
    """Show so much, one prompt a second, that a small index gives up what is older."""
    for number in range(begin_s, begin_s + 22):
        by.observe(prompt("z", f"f{number}", number, text(100 + number, 20_000)))


def ask(by: Detector, tenant: str, at_s: float) -> None:
    """Ask the question, as the request of that start."""
    by.observe(prompt(tenant, f"{at_s}", at_s, QUESTION, spans=ASKED))


def answer(by: Detector, tenant: str, at_s: float, *, end_s: float) -> list[Confidence]:
    """Give the answer to the request of that start; return how sure it is a bleed."""
    one = response(tenant, f"{at_s}", at_s, ANSWER, end_s=end_s)
    return [found.confidence for found in by.observe(one)]


def source_without_its_prompt(settings: DetectionSettings) -> tuple[list[Confidence], int]:
    """Return how sure it is and how much was evicted, between the source's prompt and answer."""
    by = detector(settings)
    ask(by, "a", 0)
    fill(by, begin_s=1)
    assert not answer(by, "a", 0, end_s=60)
    ask(by, "b", 70)
    return answer(by, "b", 70, end_s=75), by.evicted_sequences


@pytest.mark.parametrize("settings", [SETTINGS, SMALL])
def test_the_same_question_is_not_sure_once_the_prompt_of_its_source_was_evicted(
    settings: DetectionSettings,
) -> None:
    sure, evicted = source_without_its_prompt(settings)
    assert sure == ([Confidence.LOW] if evicted else [])
    assert (evicted > 0) == (settings is SMALL)


def test_the_same_question_is_not_sure_once_the_prompt_of_its_sink_was_evicted() -> None:
    """Between two answers the earlier request is the source: the sink's is long, and so long ago
    that its prompt went while the source's prompt, of a request before it, came anew."""
    by = detector(SMALL)
    ask(by, "b", 1)
    fill(by, begin_s=2)
    ask(by, "a", 0)
    assert not answer(by, "a", 0, end_s=60)
    assert by.evicted_sequences
    assert answer(by, "b", 1, end_s=61) == [Confidence.LOW]


def test_a_bleed_between_requests_that_came_after_stays_sure() -> None:
    by = detector(SMALL)
    fill(by, begin_s=0)
    assert by.evicted_sequences
    by.observe(prompt("a", "70", 70, text(3, 60), spans=ASKED))
    assert not answer(by, "a", 70, end_s=71)
    by.observe(prompt("b", "75", 75, text(4, 60), spans=ASKED))
    assert answer(by, "b", 75, end_s=76) == [Confidence.HIGH]


def test_requests_whose_prompts_never_came_stay_sure_where_nothing_was_evicted() -> None:
    by = detector()
    fill(by, begin_s=0)
    assert not answer(by, "a", 0, end_s=60)
    assert answer(by, "b", 5, end_s=61) == [Confidence.HIGH]
    assert by.evicted_sequences == 0


def test_an_eviction_that_has_left_the_window_lowers_nothing() -> None:
    by = detector(SMALL)
    fill(by, begin_s=0)
    assert by.evicted_sequences
    assert not answer(by, "a", 1000, end_s=1001)
    assert answer(by, "b", 1005, end_s=1006) == [Confidence.HIGH]

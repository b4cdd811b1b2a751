"""What a sample tells of the shingles between: explained if a neighbour is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.finding import Confidence
from detector.kernels.between import spread
from detector.match.reasons import CODES, UNEXPLAINED, Reason
from detector.settings import DetectionSettings, IndexSettings
from tests.unit.sequences import LEARNED, detector, found, join, prompt, response, text

COMMON = CODES[Reason.COMMON]
WINNOWED = DetectionSettings(
    commonness=LEARNED, index=IndexSettings(sampling="winnow", winnow_window=8)
)

marks = st.lists(st.tuples(st.sampled_from([UNEXPLAINED, COMMON]), st.booleans()), max_size=40)


@given(marks)
def test_each_unknown_one_is_as_explained_as_its_neighbours(drawn: list[tuple[int, bool]]) -> None:
    codes = np.array([code if known else UNEXPLAINED for code, known in drawn], np.uint8)
    known = np.array([known for _, known in drawn], np.bool_)
    for at, code in enumerate(spread(codes, known)):
        if known[at]:
            assert code == codes[at]
            continue
        before = codes[:at][known[:at]][-1:].tolist()
        after = codes[at + 1 :][known[at + 1 :]][:1].tolist()
        assert code == max([UNEXPLAINED, *before, *after])


def test_a_stock_phrase_in_a_bleed_counts_no_more_than_where_all_is_remembered() -> None:
    """Of the tokens beside it at most a window less one is lost on each side."""
    lengths = []
    for settings in (WINNOWED, DetectionSettings(commonness=LEARNED)):
        by = detector(settings)
        phrase, secret = text(1, 60), text(2, 40)
        for tenant in "xyz":
            by.warm(prompt(tenant, tenant, -1000, join(text(ord(tenant), 30), phrase)))
        bled = join(secret, phrase, text(3, 40))
        traffic = [prompt("a", "1", 0, bled), response("b", "2", 5, join(text(4, 30), bled))]
        (finding,) = found(traffic, by=by)
        lengths.append(finding.evidence.unexplained_tokens)
    assert lengths[1] - 7 <= lengths[0] <= lengths[1]


def test_what_the_own_prompt_explains_says_nothing_of_the_tokens_beside_it() -> None:
    """The own prompt is known shingle by shingle, sampled or not."""
    lengths = []
    for settings in (WINNOWED, DetectionSettings(commonness=LEARNED)):
        asked, secret = text(1, 40), text(2, 40)
        bled = join(asked, secret)
        traffic = [
            prompt("a", "1", 0, bled),
            prompt("b", "2", 4, join(text(5, 10), asked)),
            response("b", "2", 4, bled, end_s=9),
        ]
        (finding,) = found(traffic, by=detector(settings))
        lengths.append(finding.evidence.unexplained_tokens)
    assert lengths[0] == lengths[1]


def test_what_others_have_shown_is_explained_though_this_text_does_not_sample_it() -> None:
    """The only shingle of a stock answer of ten tokens is always remembered, here by chance."""
    by, high = detector(WINNOWED), 0
    for number in range(100):
        stock = text(10**6 + number, 10)
        for tenant in "xyz":
            by.warm(response(tenant, f"{tenant}{number}", -1000, stock))
        same = join(text(2 * 10**6 + number, 6), stock)
        around = [text(side * 10**6 + number, 30) for side in (3, 4, 5, 6)]
        traffic = [
            prompt("a", f"a{number}", 10 * number, join(around[0], same, around[1])),
            response("b", f"b{number}", 10 * number + 5, join(around[2], same, around[3])),
        ]
        high += any(one.confidence is Confidence.HIGH for one in found(traffic, by=by))
    assert high == 0


@pytest.mark.parametrize("settings", [WINNOWED, DetectionSettings(commonness=LEARNED)])
def test_shares_of_shingles_are_the_same_whatever_is_sampled(settings: DetectionSettings) -> None:
    """A whole response bled: all of it overlaps, and nothing explains it."""
    by, bled = detector(settings), text(1, 1000)
    found([prompt("a", "1", 0, bled), response("b", "2", 5, bled)], by=by)
    assert by.stats.response_shingles == 991
    assert by.stats.overlapping_shingles == 991
    assert by.stats.unexplained_shingles == 991


def test_shingles_of_low_complexity_count_among_those_of_responses() -> None:
    by = detector()
    by.observe(response("a", "1", 0, np.resize(text(3, 2), 100)))
    assert by.stats.response_shingles == 91
    assert by.stats.overlapping_shingles == 0

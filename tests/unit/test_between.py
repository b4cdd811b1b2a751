"""What a sample tells of the shingles between: explained if a neighbour is."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.match.between import spread
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

"""Role spans by marker ids: every known family, custom ones, and prompts that follow none."""

import time

import numpy as np
import pytest
from pydantic import ValidationError

from detector.errors import RecordError
from detector.model import Role, Span
from ingest.chat_template import MAX_MARKERS, ChatTemplate, ChatTemplateSettings
from ingest.template_families import FAMILIES, Family

AUTO = ChatTemplate(ChatTemplateSettings())
S, U, A, T, X = Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TEMPLATE


def _roles(ids: list[int], template: ChatTemplate = AUTO) -> list[tuple[Role, list[int]]]:
    return [(span.role, ids[span.start : span.end]) for span in template.spans(ids)]


def test_chatml() -> None:
    ids = [151644, 8948, 198, 50, 51, 151645, 198, 151644, 872, 198, 60, 198, 151645, 198]
    ids += [151644, 77091, 198]
    assert AUTO.spans(ids) == (
        Span(X, 0, 3),
        Span(S, 3, 5),
        Span(X, 5, 10),
        Span(U, 10, 12),
        Span(X, 12, 17),
    )


def test_chatml_keeps_a_leading_line_break_of_the_content() -> None:
    ids = [151644, 872, 198, 198, 60, 151645, 198, 151644, 77091, 198]
    assert _roles(ids)[1] == (U, [198, 60])


def test_chatml_tool_results_are_tool_and_leave_no_last_user_turn() -> None:
    ids = [151644, 872, 198, 9, 9, 151645, 198, 151644, 77091, 198, 8, 151645, 198]
    ids += [151644, 872, 198, 151665, 198, 70, 71, 198, 151666, 151645, 198, 151644, 77091, 198]
    assert [part for part in _roles(ids) if part[0] is not X] == [
        (U, [9, 9]),
        (A, [8]),
        (T, [198, 70, 71, 198]),
    ]


def test_llama3() -> None:
    ids = [128000, 128006, 9125, 128007, 271, 5, 128009, 128006, 882, 128007, 271, 6, 7, 128009]
    ids += [128006, 575, 27993, 128007, 271, 8, 128009, 128006, 78191, 128007, 271]
    assert [part for part in _roles(ids) if part[0] is not X] == [(S, [5]), (U, [6, 7]), (T, [8])]
    assert AUTO.spans(ids)[0] == Span(X, 0, 5)


def test_deepseek_system_prompt_follows_the_first_id() -> None:
    ids = [0, 5, 6, 128803, 7, 128804, 8, 1, 128803, 9, 128804, 128810, 4, 128811]
    assert [part for part in _roles(ids) if part[0] is not X] == [
        (S, [5, 6]),
        (U, [7]),
        (A, [8]),
        (U, [9]),
        (T, [4]),
    ]


def test_mistral() -> None:
    ids = [1, 17, 100, 18, 5, 101, 6, 3, 102, 4, 9, 103, 2, 7, 104, 8, 105, 2, 3, 106, 4]
    parts = [part for part in _roles(ids) if part[0] is not X]
    assert parts == [
        (S, [100]),
        (S, [101]),
        (U, [102]),
        (A, [103]),
        (T, [104]),
        (A, [105]),
        (U, [106]),
    ]
    old = [1, 6, 100, 7, 3, 102, 4, 5, 103, 2, 8, 104, 9, 105]
    assert [role for role, _ in _roles(old) if role is not X] == [S, U, A, T, A]


@pytest.mark.parametrize(
    "ids",
    [
        [],
        [151644],
        [5, 6, 7],
        [151644, 872, 198, 5],  # one marker proves nothing
        [0, 1, 2, 3],  # text of another tokenizer that begins like DeepSeek
        [1, 3, 5, 7],
        [151644, 872] * (MAX_MARKERS + 1),
    ],
)
def test_an_unknown_template_has_no_spans(ids: list[int]) -> None:
    assert AUTO.spans(ids) == ()


def test_an_unknown_role_or_a_header_without_end_leaves_the_text_unclaimed() -> None:
    ids = [151644, 999, 198, 5, 6, 151645, 198, 151644, 872, *range(300, 320), 151645]
    assert AUTO.spans(ids) == (Span(X, 0, 3), Span(X, 5, 8), Span(X, 29, 30))


def test_a_family_can_be_set_and_switched_off() -> None:
    ids = [7, 151644, 872, 198, 5, 151645]
    assert AUTO.spans(ids) == ()
    assert AUTO.family([151644, 872, 198]) is FAMILIES[0]
    fixed = ChatTemplate(ChatTemplateSettings(family="chatml"))
    assert [role for role, _ in _roles(ids, fixed)] == [X, U, X]
    assert ChatTemplate(ChatTemplateSettings(family="none")).spans(ids[1:]) == ()


def test_a_custom_family_comes_first() -> None:
    custom = Family(name="ours", starts=((900,),), roles={900: U, 901: A}, stops=frozenset({902}))
    ids = [900, 1, 2, 901, 3]
    expected = [(X, [900]), (U, [1, 2]), (X, [901]), (A, [3])]
    for settings in (
        ChatTemplateSettings(custom=custom),
        ChatTemplateSettings(family="custom", custom=custom),
    ):
        assert _roles(ids, ChatTemplate(settings)) == expected
    assert custom.template_ids == {900, 901, 902}
    with pytest.raises(ValidationError, match="no custom family"):
        ChatTemplateSettings(family="custom")


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_families_are_consistent(family: Family) -> None:
    assert family.needs <= family.markers
    assert not family.closers & frozenset(family.roles)
    assert not family.closers & family.headers
    assert family.stops
    assert bool(family.headers) == bool(family.role_names)


def test_random_ids_give_ascending_disjoint_spans_within_the_prompt() -> None:
    random = np.random.default_rng(1)
    for family in FAMILIES:
        pool = np.array(sorted(family.template_ids | set(family.role_names) | {50, 198, 271}))
        for _ in range(200):
            ids = [*family.starts[0], *random.choice(pool, random.integers(0, 60)).tolist()]
            end = 0
            for span in AUTO.spans(ids):
                assert end <= span.start < span.end <= len(ids)
                end = span.end


def test_a_million_tokens_take_milliseconds() -> None:
    ids = np.full(1_000_000, 500, dtype=np.uint32)
    ids[:3] = 151644, 872, 198
    ids[-1] = 151645
    begin = time.perf_counter()
    assert len(AUTO.spans(ids)) == 3
    assert time.perf_counter() - begin < 0.5


def test_ids_that_are_none_are_refused() -> None:
    with pytest.raises(RecordError):
        AUTO.spans([151644, -1])

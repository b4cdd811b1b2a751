"""Role spans by marker ids: every known family, custom ones, and prompts that follow none."""

import itertools
import time
from typing import NamedTuple

import numpy as np
import pytest
from pydantic import ValidationError

from detector.errors import RecordError
from detector.model import Role, Span
from ingest.chat_template import MAX_MARKERS, ChatTemplate, ChatTemplateSettings
from ingest.template_families import FAMILIES, Family

AUTO = ChatTemplate(ChatTemplateSettings())
S, U, A, T, X = Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL, Role.TEMPLATE


class Form(NamedTuple):
    """How one family writes a conversation: `heads` opens and `tails` ends a role's message."""

    begin: list[int]
    heads: dict[Role, list[int]]
    tails: dict[Role, list[int]]
    bare: bool = True  # known without its first id
    cut: bool = True  # known without its first message


def _form(begin: list[int], heads: dict[Role, list[int]], tail: list[int], **known: bool) -> Form:
    return Form(begin, heads, dict.fromkeys(heads, tail), **known)


def _named(
    before: list[int], names: dict[Role, list[int]], after: list[int]
) -> dict[Role, list[int]]:
    return {role: [*before, *name, *after] for role, name in names.items()}


_CL100K = {S: [9125], U: [882], A: [78191], T: [14506]}

FORMS: dict[str, Form] = {
    "chatml": _form(
        [], _named([151644], {S: [8948], U: [872], A: [77091], T: [14172]}, [198]), [151645, 198]
    ),
    "llama3": _form([128000], _named([128006], _CL100K, [128007, 271]), [128009]),
    "deepseek": Form(
        [0],
        {S: [], U: [128803], A: [128804], T: [128810]},
        {S: [], U: [], A: [1], T: [128811]},
        bare=False,
    ),
    "yi": _form([1], _named([6], {S: [10707], U: [3903], A: [765, 13611]}, [144]), [7, 144]),
    "internlm2": _form(
        [1],
        _named([92543], {S: [9081], U: [1008], A: [525, 11353], T: [23625]}, [364]),
        [92542, 364],
    ),
    "mistral": Form(
        [1],
        {S: [17], U: [3], A: [4], T: [7]},
        {S: [18], U: [], A: [2], T: [8]},
        bare=False,
        cut=False,
    ),
    "mistral-spm": Form(
        [1],
        {S: [16], U: [3], A: [4], T: [8]},
        {S: [17], U: [], A: [2], T: [9]},
        bare=False,
        cut=False,
    ),
    "gemma2": _form([2], _named([106], {U: [1645], A: [2516]}, [108]), [107, 108]),
    "gemma3": _form([2], _named([105], {U: [2364], A: [4368]}, [107]), [106, 107]),
    "glm4": _form(
        [151331, 151333],
        _named([], {S: [151335], U: [151336], A: [151337], T: [151338]}, [198]),
        [],
    ),
    "chatglm3": _form(
        [64790, 64792],
        _named([], {S: [64794], U: [64795], A: [64796], T: [64797]}, [30910, 13]),
        [],
        bare=False,
        cut=False,
    ),
    "phi3": _form([1], {S: [32006], U: [32010], A: [32001]}, [32007]),
    "phi4": _form([100257], _named([100264], _CL100K, [100266]), [100265]),
    "phi4-mini": _form([199999], {S: [200022], U: [200021], A: [200019], T: [200023]}, [200020]),
    "gpt-oss": _form(
        [199998],
        {
            S: [200006, 17360, 200008],
            U: [200006, 1428, 200008],
            A: [200006, 173781, 200005, 17196, 200008],
            # functions.get_weather to=assistant, channel commentary
            T: [200006, 44580, 775, 170154, 316, 28, 173781, 200005, 12606, 815, 200008],
        },
        [200007],
    ),
    "llama4": _form(
        [200000],
        _named([200005], {S: [15651], U: [1556], A: [140680], T: [607, 27993]}, [200006, 368]),
        [200008],
    ),
    "command-r": _form(
        [5], _named([255000], {S: [255008], U: [255006], A: [255007]}, []), [255001]
    ),
    "kimi-k2": _form(
        [163584],
        {
            S: [163594, 900, 163601],  # any name
            U: [163587, 2482, 163601],
            A: [163588, 69702, 163601],
        },
        [163586],
    ),
}

TALK = [S, U, A, U, A, T, A, U]


def _talk(name: str, roles: list[Role]) -> list[tuple[Role, list[int]]]:
    """Return messages of the roles that the family has, each of three ids of its own."""
    own = [role for role in roles if role in FORMS[name].heads]
    return [(role, [40_000 + 10 * at, 40_001, 40_002]) for at, role in enumerate(own)]


def _written(name: str, talk: list[tuple[Role, list[int]]]) -> list[int]:
    """Return the messages and the header that asks for an answer, without the first ids."""
    form = FORMS[name]
    parts = [[*form.heads[role], *text, *form.tails[role]] for role, text in talk]
    return [*itertools.chain(*parts), *form.heads[A]]


def _said(ids: list[int]) -> list[tuple[Role, list[int]]]:
    return [part for part in _roles(ids) if part[0] is not X]


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


AMBIGUOUS = "mistral-spm"
"""Without a system prompt it begins like the other family of Mistral."""


@pytest.mark.parametrize(
    ("name", "roles"),
    [
        (name, roles)
        for name in FORMS
        for roles in (TALK, TALK[1:], [U], [U, A, U])
        if name != AMBIGUOUS or roles[0] is not U
    ],
)
def test_a_conversation_is_read_as_it_was_written(name: str, roles: list[Role]) -> None:
    form, talk = FORMS[name], _talk(name, roles)
    ids = [*form.begin, *_written(name, talk)]
    family = AUTO.family(ids)
    assert family is not None
    assert family.name == name
    assert _said(ids) == talk
    assert AUTO.spans(ids)[-1].role is X
    assert AUTO.spans(ids)[-1].end == len(ids)
    assert _said([*form.begin, *ids]) == talk  # an engine put the first ids before its own
    if form.bare:
        assert _said(ids[len(form.begin) :]) == talk


@pytest.mark.parametrize("name", [name for name, form in FORMS.items() if form.cut])
def test_a_prompt_without_its_beginning_is_known_by_how_messages_join(name: str) -> None:
    form, talk = FORMS[name], _talk(name, TALK[1:])
    ids = [*form.begin, *_written(name, talk)]
    cut = ids[len(form.begin) + len(form.heads[U]) + 1 :]
    assert _said(cut) == talk[1:]


@pytest.mark.parametrize("name", [name for name in FORMS if name != AMBIGUOUS])
def test_a_message_without_its_closer_ends_at_the_next_one(name: str) -> None:
    form, talk = FORMS[name], _talk(name, [U, A, U])
    heads = [[*form.heads[role], *text] for role, text in talk]
    ids = [*form.begin, *itertools.chain(*heads), *form.tails[U], *form.heads[A]]
    assert _said(ids) == talk


@pytest.mark.parametrize("name", FORMS)
def test_no_other_family_claims_a_prompt(name: str) -> None:
    form = FORMS[name]
    whole = [*form.begin, *_written(name, _talk(name, TALK))]
    for ids in (whole, whole[len(form.begin) :] if form.bare else whole):
        starts = [(family, start) for family in FAMILIES for start in family.starts]
        begun = [family for family, start in starts if tuple(ids[: len(start)]) == start]
        alone = [ChatTemplate(ChatTemplateSettings(family="custom", custom=one)) for one in begun]
        claims = {one.name for one, by in zip(begun, alone, strict=True) if by.spans(ids)}
        assert claims == {name}
        seams = [(family.name, seam) for family in FAMILIES for seam in family.seams]
        windows = {tuple(ids[at : at + size]) for at in range(len(ids)) for size in range(2, 6)}
        assert {other for other, seam in seams if seam in windows} <= {name}


def test_every_family_has_a_form_and_can_be_set() -> None:
    assert list(FORMS) == [family.name for family in FAMILIES]
    for family in FAMILIES:
        settings = ChatTemplateSettings.model_validate({"family": family.name})
        assert ChatTemplate(settings).family([]) is family


def test_text_of_any_vocabulary_is_of_no_family() -> None:
    random = np.random.default_rng(2)
    for size in (300, 50_000, 262_144):
        for _ in range(300):
            assert AUTO.spans(random.integers(0, size, 200).astype(np.uint32)) == ()


def test_a_header_that_the_prompt_ends_in_is_template() -> None:
    ids = [200006, 1428, 200008, 5, 200007, 200006, 173781]
    assert AUTO.spans(ids) == (Span(X, 0, 3), Span(U, 3, 4), Span(X, 4, 7))


def test_the_vision_tokenizer_of_phi3_keeps_line_breaks() -> None:
    ids = [1, 32010, 29871, 13, 5, 6, 32007, 29871, 13, 32001]
    assert _said(ids) == [(U, [5, 6])]


@pytest.mark.parametrize("name", FORMS)
def test_a_prompt_of_500_tokens_takes_microseconds(name: str) -> None:
    form = FORMS[name]
    talk = [(role, [40_000 + at] * 160) for at, role in enumerate([U, A, U])]
    ids = np.array([*form.begin, *_written(name, talk)], dtype=np.uint32)
    best = 1.0
    for _ in range(200):
        begin = time.perf_counter()
        AUTO.spans(ids)
        best = min(best, time.perf_counter() - begin)
    assert best < 200e-6  # about a tenth of it on an idle machine


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_families_are_consistent(family: Family) -> None:
    assert family.needs <= family.markers
    assert not family.closers & frozenset(family.roles)
    assert not family.closers & family.headers
    assert family.stops
    assert bool(family.headers) == bool(family.role_names)
    assert all(set(start) & family.markers for start in family.starts)
    assert all(seam[0] in family.markers for seam in family.seams)


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

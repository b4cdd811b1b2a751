"""Same question: what a conversation repeats is judged where it stood first."""

import numpy as np

from detector.match.question import shown_in_same_turns
from detector.model import Hashes, Role, Sequence, Span
from detector.sketch.shingle import shingle_keys
from tests.unit.sequences import join, prompt, text

QUESTION, OTHER = text(1, 24), text(2, 24)
ANSWER = text(3, 30)
HALF = 0.5


def conversation(*turns: tuple[Role, Hashes]) -> Sequence:
    """Return a prompt of turns that follow one another."""
    spans, at = [], 0
    for role, tokens in turns:
        spans.append(Span(role, at, at + len(tokens)))
        at += len(tokens)
    return prompt("a", "1", 0, join(*(tokens for _, tokens in turns)), spans=tuple(spans))


def shown(*prompts: Sequence) -> set[int]:
    return set(shown_in_same_turns(prompts, QUESTION, HALF).tolist())


def keys(tokens: Hashes) -> set[int]:
    return set(shingle_keys(tokens).tolist())


def test_the_question_and_its_answer_are_shown_in_turns_of_the_same_question() -> None:
    asked = (Role.USER, QUESTION), (Role.ASSISTANT, ANSWER), (Role.USER, OTHER)
    found = shown(conversation(*asked))
    assert keys(QUESTION) | keys(ANSWER) <= found
    assert not keys(OTHER) & found


def test_a_later_turn_that_says_it_again_changes_nothing() -> None:
    asked = (Role.USER, QUESTION), (Role.ASSISTANT, ANSWER)
    again = (Role.USER, OTHER), (Role.ASSISTANT, ANSWER)
    assert keys(ANSWER) <= shown(conversation(*asked, *again))
    assert not keys(ANSWER) & shown(conversation(*again, *asked))


def test_what_was_in_a_system_prompt_or_tool_output_before_stays_private() -> None:
    for role in (Role.SYSTEM, Role.TOOL):
        asked = (role, ANSWER), (Role.USER, QUESTION), (Role.ASSISTANT, ANSWER)
        found = shown(conversation(*asked))
        assert keys(QUESTION) <= found
        assert not keys(ANSWER) & found


def test_the_parts_of_a_prompt_are_one_conversation() -> None:
    first = conversation((Role.SYSTEM, ANSWER))
    second = conversation((Role.USER, QUESTION), (Role.ASSISTANT, ANSWER))
    assert not keys(ANSWER) & shown(first, second)
    assert keys(ANSWER) <= shown(second, first)


def test_without_the_question_nothing_is_shown() -> None:
    asked = conversation((Role.USER, OTHER), (Role.ASSISTANT, ANSWER))
    assert shown(asked) == shown() == set()
    assert len(shown_in_same_turns([asked], None, HALF)) == 0
    assert shown_in_same_turns([], QUESTION, HALF).dtype == np.int64

"""Corpus, tokenizer and chat template of the sample traffic."""

import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detector.errors import InputError
from detector.model import Role, Span
from detector.sample.chatml import Message, content_spans, messages_of, render
from detector.sample.corpus import MAX_CHARS, MIN_CHARS, MODULES, PassageKind, collect
from detector.sample.language import Language, load_language
from detector.sample.tokenizer import IM_END, IM_START, VOCABULARY_LIMIT, Tokenizer


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language()


def test_corpus_has_all_kinds_without_duplicates() -> None:
    passages = collect()
    assert {passage.kind for passage in passages} == set(PassageKind)
    assert len(set(passages)) == len(passages) > 1000
    assert all(MIN_CHARS <= len(passage.text) <= MAX_CHARS for passage in passages)


def test_corpus_is_the_same_every_time_and_fast() -> None:
    start = time.process_time()
    first = collect()
    assert time.process_time() - start < 5.0
    assert collect() == first


def test_missing_library_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="standard library's sources, found 0 of") as caught:
        collect(tmp_path)
    assert caught.value.where == str(tmp_path)
    assert "zipped" in caught.value.hint


def test_broken_sources_are_passed_over(tmp_path: Path) -> None:
    for name in MODULES:
        path = tmp_path.joinpath(*name.split(".")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("def broken(:\n", encoding="utf-8")
    assert collect(tmp_path) == ()


@given(st.text())
def test_encoding_loses_nothing(text: str) -> None:
    tokenizer = Tokenizer()
    tokenizer.learn("Some words, an\n    indent and 123.")
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text.encode("utf-8", "replace").decode()
    assert all(0 <= number < VOCABULARY_LIMIT for number in ids)


def test_learning_agrees_with_encoding(language: Language) -> None:
    tokenizer = language.tokenizer
    text = "def frobnicate(x):\n    return x ** 2  # squared"
    assert tokenizer.learn(text) == tokenizer.encode(text)
    assert all(number < VOCABULARY_LIMIT for number in tokenizer.known_ids())


def test_reserved_ids_are_those_of_qwen(language: Language) -> None:
    tokenizer = language.tokenizer
    assert tokenizer.encode("system") == [8948]
    assert tokenizer.encode("user") == [872]
    assert tokenizer.encode("assistant") == [77091]
    assert tokenizer.encode("\n") == [198]
    assert tokenizer.decode([151644, 8948, 198, 151645]) == "<|im_start|>system\n<|im_end|>"


def test_markers_in_text_stay_text(language: Language) -> None:
    ids = language.tokenizer.encode("<|im_end|>\n<|im_start|>system")
    assert not {IM_START, IM_END} & set(ids)


def test_unknown_id_decodes_to_the_replacement_character(language: Language) -> None:
    assert language.tokenizer.decode([151643]) == "\ufffd"


def test_template_round_trip() -> None:
    messages = (
        Message(Role.SYSTEM, (7, 8)),
        Message(Role.USER, (9,)),
        Message(Role.ASSISTANT, ()),
        Message(Role.USER, (5, 198, 6)),
    )
    prompt = render(messages)
    assert messages_of(prompt) == messages
    assert next(content_spans(prompt)) == Span(Role.SYSTEM, 3, 5)
    assert prompt[-3:] == (IM_START, 77091, 198)


def test_babble_is_seeded_and_about_as_long_as_asked(language: Language) -> None:
    first = language.prose.write(Random(3), 200)
    assert first == language.prose.write(Random(3), 200)
    assert first != language.prose.write(Random(4), 200)
    assert 200 <= len(first) <= 220

"""Sessions: what a conversation was told of once is not told again, anything new is."""

import numpy as np
import pytest

from detector.match.sessions import SessionRepeats
from tests.unit.sequences import found, join, pairs, prompt, response, text

KEEP = 960_000
ONE, OTHER = np.arange(20, dtype=np.int64), np.arange(100, 120, dtype=np.int64)
SESSION = ("b", "s", 1)


@pytest.fixture
def sessions() -> SessionRepeats:
    repeats = SessionRepeats(keep_ms=KEEP)
    assert not repeats.is_repeat(SESSION, ONE, 0)
    return repeats


def test_the_same_shingles_and_parts_of_them_are_repeats(sessions: SessionRepeats) -> None:
    assert sessions.is_repeat(SESSION, ONE, 1000)
    assert sessions.is_repeat(SESSION, ONE[5:9], KEEP)
    assert sessions.repeats == 2


def test_anything_new_is_told_and_remembered(sessions: SessionRepeats) -> None:
    both = np.concatenate([ONE, OTHER])
    assert not sessions.is_repeat(SESSION, both, 1000)
    assert sessions.is_repeat(SESSION, OTHER, 2000)
    assert sessions.is_repeat(SESSION, both, 2000)


@pytest.mark.parametrize("other", [("c", "s", 1), ("b", "t", 1), ("b", "s", 2)])
def test_another_tenant_session_or_source_is_told(
    sessions: SessionRepeats, other: tuple[str, str, int]
) -> None:
    assert not sessions.is_repeat(other, ONE, 1000)
    assert sessions.repeats == 0


def test_what_is_old_is_forgotten(sessions: SessionRepeats) -> None:
    assert not sessions.is_repeat(SESSION, ONE, KEEP + 1)


SECRET, NEW = text(1, 30), text(2, 30)


def test_a_conversation_makes_one_finding() -> None:
    source = prompt("a", "1", 0, join(SECRET, NEW))
    turns = [response("b", f"2{n}", 5 + n, SECRET, session="s") for n in range(4)]
    assert len(found([source, *turns])) == 1
    apart = [response("b", f"2{n}", 5 + n, SECRET, session=f"s{n}") for n in range(4)]
    assert len(found([source, *apart])) == 4
    unknown = [response("b", f"2{n}", 5 + n, SECRET) for n in range(4)]
    assert len(found([source, *unknown])) == 4


def test_a_later_turn_with_more_of_it_is_found() -> None:
    source = prompt("a", "1", 0, join(SECRET, NEW))
    turns = [
        response("b", "20", 5, SECRET, session="s"),
        response("b", "21", 8, join(SECRET, NEW), session="s"),
    ]
    assert pairs(found([source, *turns])) == {("20", "a"), ("21", "a")}

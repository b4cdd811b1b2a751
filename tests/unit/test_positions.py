"""Positions of sequences: given up when that is worth it, and never more than rows can name."""

import pytest

from detector import pipeline
from detector.kernels import postings
from detector.pipeline import Detector
from tests.unit.sequences import detector, join, pairs, prompt, response, text


class Renumbered(list[int]):
    """Positions that each renumbering of a detector's index has given up."""

    def __init__(self, by: Detector, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__()
        renumber = by._index.renumber

        def counted() -> int:
            self.append(renumber())
            return self[-1]

        monkeypatch.setattr(by._index, "renumber", counted)


def bleeds(by: Detector, number: int, at_s: float) -> bool:
    """Bleed a secret of its own; return whether it is found."""
    secret = text(10_000 + number, 40)
    by.observe(prompt("a", f"{number}", at_s, secret))
    sink = response("b", f"{number}", at_s, join(secret, text(20_000 + number, 9)))
    return pairs(by.observe(sink)) == {(f"{number}", "a")}


def test_nothing_is_renumbered_while_everything_is_live(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "RENUMBER_AT", 50)
    by = detector()
    renumbered = Renumbered(by, monkeypatch)
    for number in range(300):
        by.observe(prompt("a", f"{number}", number / 10, text(number, 20)))
    assert renumbered == []


def test_positions_are_given_up_once_a_quarter_of_them_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A window of 97 sequences, one every 10 s, of which renumbering begins at 50."""
    monkeypatch.setattr(pipeline, "RENUMBER_AT", 50)
    by = detector()
    renumbered = Renumbered(by, monkeypatch)
    for number in range(400):
        by.observe(prompt("a", f"{number}", number * 10, text(number, 20)))
        assert len(by._store) <= 97 / 0.75 + 1
    assert len(renumbered) > 5
    assert min(renumbered) > 30
    assert bleeds(by, 400, 4000)
    assert by.evicted_sequences == 0


def test_sequences_beyond_what_rows_can_name_push_the_oldest_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postings, "MAX_SEQUENCES", 100)
    by = detector()
    renumbered = Renumbered(by, monkeypatch)
    for number in range(150):
        assert bleeds(by, number, number / 10), number
        assert len(by._store) <= 100
    assert by.evicted_sequences == sum(renumbered) == 200
    assert set(renumbered) == {10}


def test_what_has_expired_makes_place_without_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "MAX_SEQUENCES", 110)
    by = detector()
    renumbered = Renumbered(by, monkeypatch)
    for number in range(400):
        by.observe(prompt("a", f"{number}", number * 10, text(number, 20)))
        assert len(by._store) <= 110
    assert len(renumbered) > 20
    assert by.evicted_sequences == 0


def some_bleeds(by: Detector) -> set[tuple[str, str]]:
    """Show long answers, a fifth of which hold a piece of an earlier one; return what is found."""
    found = set()
    for number in range(400):
        tokens = text(number, 1500)
        if number % 5 == 0 and number > 3:
            tokens = join(tokens, text(number - 3, 1500)[100:160])
        found |= pairs(by.observe(response(f"t{number % 9}", f"{number}", number * 20, tokens)))
    return found


def test_renumbering_while_the_index_grows_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = some_bleeds(detector())
    monkeypatch.setattr(pipeline, "RENUMBER_AT", 40)
    monkeypatch.setattr(pipeline, "RENUMBER_SHARE", 0)
    by = detector()
    growing = []
    renumber = by._index.renumber

    def noted() -> int:
        growing.append(by._index._table.is_growing)
        return renumber()

    monkeypatch.setattr(by._index, "renumber", noted)
    assert some_bleeds(by) == wanted
    assert len(wanted) > 60
    assert any(growing)

"""Everything is disturbed in turn, but what is spared only at the very beginning."""

from random import Random

from tests.cluster.disturb import KINDS, PROCESSES, SPARED
from tests.cluster.turns import Turns
from tests.content.tree import ROOT

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")


def test_each_comes_before_one_comes_again() -> None:
    turns = Turns("abcde", once="", rng=Random(1))
    rounds = [[turns.next() for _ in "abcde"] for _ in range(3)]
    assert [sorted(each) for each in rounds] == [[*"abcde"]] * 3
    assert rounds[0] != rounds[1]


def test_what_is_spared_comes_first_and_never_again() -> None:
    turns = Turns("abcde", once="bd", rng=Random(1))
    given = [turns.next() for _ in range(20)]
    assert sorted(given[:2]) == ["b", "d"]
    assert sorted(given[2:5]) == ["a", "c", "e"]
    assert not {"b", "d"}.intersection(given[5:])


def test_one_process_of_each_kind_is_spared() -> None:
    kinds = {name.rstrip("-0123456789") for name in PROCESSES}
    assert sorted(name.rstrip("-0123456789") for name in SPARED) == sorted(kinds)


def test_the_page_names_everything_that_goes_wrong_and_whom_it_spares() -> None:
    first = {line.split(" | ")[0].removeprefix("| ") for line in PAGE.splitlines()}
    assert set(KINDS) <= first
    assert all(f"`{name}`" in PAGE for name in SPARED)

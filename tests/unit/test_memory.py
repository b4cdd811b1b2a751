"""Detectors of different pools share one memory of what is common, and numbers outlive marks."""

from detector.index.memory import Memory, PartyNumbers
from tests.unit.sequences import LEARNED, SETTINGS, detector, found, pairs, prompt, response, text

KEEP_MS = 1_000


def test_a_number_lives_until_it_was_not_used_for_long() -> None:
    numbers = PartyNumbers(keep_ms=KEEP_MS)
    assert [numbers.number(name, 0) for name in ("a", "b", "a")] == [1, 2, 1]
    assert numbers.number("a", 999) == 1
    assert numbers.number("c", 1_000) == 3
    assert numbers.number("b", 1_998) == 2
    assert numbers.number("a", 2_000) == 4  # not seen for more than a second
    assert len(numbers) == 3


def test_a_name_in_steady_use_keeps_its_number_whenever_another_comes() -> None:
    numbers = PartyNumbers(keep_ms=KEEP_MS)
    for at_ms in range(0, 50_000, 700):
        assert numbers.number("steady", at_ms) == 1
    assert numbers.number("new", 50_000) == 2
    assert numbers.number("steady", 50_001) == 1


def test_names_of_the_past_cost_nothing() -> None:
    numbers = PartyNumbers(keep_ms=KEEP_MS)
    given = [numbers.number(f"t{at}", at) for at in range(20_000)]
    assert given == list(range(1, 20_001))
    assert len(numbers) <= 2 * KEEP_MS


def test_what_others_show_in_another_detector_is_common_here() -> None:
    phrase = text(1, 30)
    bleed = [prompt("a", "1", 10, phrase), response("b", "2", 15, phrase)]
    assert found(bleed)
    memory = Memory(LEARNED)
    other = detector(SETTINGS, memory=memory)
    other.observe(prompt("c", "0", 5, phrase, pool="q"))
    assert not found(bleed, by=detector(SETTINGS, memory=memory))


def test_what_was_tainted_in_one_detector_is_never_learned_in_another() -> None:
    memory = Memory(LEARNED)
    secret = text(1, 30)
    here, there = (detector(SETTINGS, memory=memory) for _ in range(2))
    assert found([prompt("a", "1", 0, secret), response("b", "2", 5, secret)], by=here)
    there.observe(prompt("c", "3", 10, secret, pool="q"))
    again = [prompt("a", "4", 20, secret), response("d", "5", 25, secret)]
    assert ("5", "a") in pairs(found(again, by=here))


def test_the_clock_of_the_memory_is_the_newest_of_all() -> None:
    memory = Memory(LEARNED)
    ahead, behind = (detector(SETTINGS, memory=memory) for _ in range(2))
    ahead.observe(prompt("a", "1", 500, text(1, 30)))
    behind.observe(prompt("b", "2", 100, text(2, 30)))
    assert memory.now_ms == 500_000


def test_an_index_keeps_to_the_bytes_it_is_given() -> None:
    small = detector(SETTINGS, index_bytes=12 * 1024 * 1024)
    for number in range(60):
        small.observe(prompt("a", f"a{number}", number, text(number, 30_000)))
    assert small.index_bytes <= 12 * 1024 * 1024
    assert small.evicted_sequences > 0

"""How fast an output is called: backoff, circuit breaker, rate."""

from hypothesis import given
from hypothesis import strategies as st

from exporters.outputs.http_door import LONGEST_WAIT_MS
from exporters.sending.breaker import LONGEST_MS as LONGEST_PAUSE_MS
from exporters.sending.breaker import OPEN_MS, TOLERATED, UNSEEN_MS, Breaker
from exporters.sending.rate import Rate
from exporters.sending.schedule import FIRST_MS, LONGEST_MS, backoff_ms


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_wait_is_between_half_and_all_of_what_doubling_gives(
    attempts: int, chance: float
) -> None:
    whole = min(FIRST_MS * 2 ** min(attempts - 1, 30), LONGEST_MS)
    assert whole // 2 <= backoff_ms(attempts, chance) <= whole


def test_a_breaker_opens_after_failures_in_a_row_and_closes_after_a_success() -> None:
    breaker = Breaker()
    for _ in range(TOLERATED - 1):
        breaker.failed(now_ms=1_000)
    breaker.succeeded()
    for _ in range(TOLERATED - 1):
        breaker.failed(now_ms=1_000)
    assert breaker.opens_ms(1_000) == 1_000
    breaker.failed(now_ms=1_000)
    assert breaker.opens_ms(1_000) == 1_000 + OPEN_MS
    breaker.failed(now_ms=50_000)  # the trial failed
    assert breaker.opens_ms(50_000) == 50_000 + OPEN_MS
    breaker.succeeded()
    assert not breaker.is_failing
    breaker.failed(now_ms=90_000)
    assert breaker.opens_ms(90_000) == 90_000


def test_a_pause_is_never_shortened() -> None:
    breaker = Breaker()
    breaker.pause(until_ms=9_000)
    breaker.pause(until_ms=5_000)
    assert breaker.opens_ms(1_000) == 9_000


def test_a_pause_holds_for_as_long_as_any_receiver_may_ask_for_and_no_longer() -> None:
    assert LONGEST_PAUSE_MS == LONGEST_WAIT_MS
    breaker, until_ms = Breaker(), 5 * LONGEST_PAUSE_MS
    breaker.pause(until_ms=until_ms)
    assert breaker.opens_ms(until_ms - LONGEST_PAUSE_MS) == until_ms
    assert breaker.opens_ms(until_ms) == until_ms
    assert breaker.opens_ms(1_000) == 1_000  # the clock was set back
    for _ in range(TOLERATED):
        breaker.failed(now_ms=1_000)
    assert breaker.opens_ms(1_000) == 1_000 + OPEN_MS


def test_failing_is_counted_from_the_first_failure_of_those_in_a_row() -> None:
    breaker = Breaker()
    assert breaker.failing_ms(1_000) == 0
    for at_ms in (1_000, 1_000 + UNSEEN_MS, 1_000 + 2 * UNSEEN_MS):
        breaker.failed(now_ms=at_ms)
        assert breaker.failing_ms(at_ms) == at_ms - 1_000
    last_ms = 1_000 + 2 * UNSEEN_MS
    assert breaker.failing_ms(last_ms + UNSEEN_MS) == 3 * UNSEEN_MS
    assert breaker.failing_ms(last_ms + UNSEEN_MS + 1) == 0
    breaker.failed(now_ms=last_ms + UNSEEN_MS + 1)
    assert breaker.failing_ms(last_ms + UNSEEN_MS + 6) == 5
    assert breaker.failing_ms(1_000) == 0  # the clock was set back
    breaker.succeeded()
    assert breaker.failing_ms(last_ms + UNSEEN_MS + 7) == 0


@given(st.integers(1, 600), st.lists(st.integers(0, 5_000), max_size=300))
def test_no_minute_has_more_than_twice_the_rate(per_minute: int, gaps_ms: list[int]) -> None:
    rate, now_ms = Rate(per_minute), 1_800_000_000_000
    taken: list[int] = []
    for gap_ms in gaps_ms:
        now_ms += gap_ms
        if rate.free_at_ms(now_ms) == now_ms:
            rate.take(now_ms)
            taken.append(now_ms)
    for begin_ms in taken:
        assert sum(begin_ms <= at_ms < begin_ms + 60_000 for at_ms in taken) <= 2 * per_minute


@given(st.integers(1, 600), st.integers(0, 1_000))
def test_what_must_wait_is_free_when_it_was_told(per_minute: int, more: int) -> None:
    rate, now_ms = Rate(per_minute), 1_800_000_000_000
    for _ in range(per_minute):
        rate.take(now_ms)
    at_ms = rate.free_at_ms(now_ms)
    assert now_ms < at_ms <= now_ms + 60_000 // per_minute + 2
    assert rate.free_at_ms(at_ms + more) == at_ms + more

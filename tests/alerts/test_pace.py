"""How fast an output is called: backoff, circuit breaker, rate."""

from hypothesis import given
from hypothesis import strategies as st

from exporters.sending.breaker import OPEN_MS, TOLERATED, Breaker
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
    assert breaker.until_ms == 0
    breaker.failed(now_ms=1_000)
    assert breaker.until_ms == 1_000 + OPEN_MS
    breaker.failed(now_ms=50_000)  # the trial failed
    assert breaker.until_ms == 50_000 + OPEN_MS
    breaker.succeeded()
    assert not breaker.is_failing
    breaker.failed(now_ms=90_000)
    assert breaker.until_ms < 90_000


def test_a_pause_is_never_shortened() -> None:
    breaker = Breaker()
    breaker.pause(until_ms=9_000)
    breaker.pause(until_ms=5_000)
    assert breaker.until_ms == 9_000


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

"""Unreleased tokens: exact at idle, bounded under load, never made up."""

from ingest.schema_records import Quality
from ingest.scrape.unreleased import BUSY_SCRAPES, UNKNOWN, Fill, RankMemory, Unreleased


def fill(
    used: int | None,
    *,
    idle: bool | None = True,
    held: int = 0,
    running: int | None = None,
    whole: bool = True,
) -> Fill:
    return Fill(used, held, running, idle, whole)


def test_idle_is_exact_once_it_has_lasted() -> None:
    memory = RankMemory()
    assert memory.unreleased(fill(273), 0) == (273, Quality.ESTIMATE)
    assert memory.unreleased(fill(273), 999) == (273, Quality.ESTIMATE)
    assert memory.unreleased(fill(273), 1_000) == (273, Quality.EXACT)


def test_a_fill_that_still_moves_at_idle_is_not_exact() -> None:
    memory = RankMemory()
    memory.unreleased(fill(300), 0)
    assert memory.unreleased(fill(273), 5_000).quality == Quality.ESTIMATE
    assert memory.unreleased(fill(273), 10_000) == (273, Quality.EXACT)


def test_nothing_used_at_idle_is_zero_and_known() -> None:
    memory = RankMemory()
    memory.unreleased(fill(0), 0)
    assert memory.unreleased(fill(0), 5_000) == (0, Quality.EXACT)


def test_what_sessions_hold_is_released() -> None:
    memory = RankMemory()
    memory.unreleased(fill(100, held=60), 0)
    assert memory.unreleased(fill(100, held=60), 5_000) == (40, Quality.EXACT)
    assert memory.unreleased(fill(100, held=120), 10_000).tokens == 0


def test_what_may_be_explained_otherwise_is_never_exact() -> None:
    memory = RankMemory()
    for at_ms in range(0, 60_000, 5_000):
        assert memory.unreleased(fill(64, whole=False), at_ms) == (64, Quality.ESTIMATE)


def test_without_fill_or_load_nothing_is_said() -> None:
    memory = RankMemory()
    assert memory.unreleased(fill(None), 0) == UNKNOWN
    assert memory.unreleased(fill(5, idle=None), 0) == UNKNOWN
    assert memory.unreleased(fill(5, idle=False), 0) == UNKNOWN
    assert Unreleased(None, Quality.UNKNOWN) == UNKNOWN


def test_under_load_what_was_exact_stays_as_a_bound() -> None:
    memory = RankMemory()
    memory.unreleased(fill(200), 0)
    memory.unreleased(fill(200), 5_000)
    assert memory.unreleased(fill(900, idle=False), 10_000) == (200, Quality.ESTIMATE)
    # less is used than was not released: somebody cleared the pool
    assert memory.unreleased(fill(150, idle=False), 15_000) == (150, Quality.ESTIMATE)


def test_under_load_a_floor_over_a_minute_shows_a_leak() -> None:
    memory = RankMemory()
    busy = [(1_000, 300), (420, 300), (900, 400)] * (BUSY_SCRAPES // 3)
    seen = [memory.unreleased(fill(u, idle=False, running=r), 0) for u, r in busy]
    assert set(seen[:-1]) == {UNKNOWN}
    assert seen[-1] == (120, Quality.ESTIMATE)


def test_a_failed_scrape_begins_idleness_anew() -> None:
    memory = RankMemory()
    memory.unreleased(fill(7), 0)
    memory.interrupt()
    assert memory.unreleased(fill(7), 5_000).quality == Quality.ESTIMATE
    assert memory.unreleased(fill(7), 10_000).quality == Quality.EXACT
    memory.interrupt()
    assert memory.unreleased(fill(90, idle=False), 15_000) == UNKNOWN


def test_a_busy_moment_begins_idleness_anew() -> None:
    memory = RankMemory()
    memory.unreleased(fill(7), 0)
    memory.unreleased(fill(90, idle=False), 5_000)
    assert memory.unreleased(fill(7), 10_000).quality == Quality.ESTIMATE

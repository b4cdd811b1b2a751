"""A pool with fifty times the traffic of the others: theirs is found all the same, and as soon."""

import numpy as np

from detector.model import Sequence
from detector.settings import DetectionSettings
from tests.unit.sequences import LEARNED, join, pairs, prompt, response, text
from tests.unit.streams import Stream, live_order, surest

BUSY_RATE = 50
QUIET_POOLS = 7
MINUTES = 5
TOKENS = 150

MOST_DELAY_MS = 1_500
"""A second until something else ends in the partition, and the hold."""


def traffic() -> tuple[list[Sequence], set[tuple[str, str]]]:
    """Return requests of a busy and seven quiet pools, one bleed a minute in each quiet one."""
    draw = np.random.default_rng(3)
    made: list[Sequence] = []
    wanted: set[tuple[str, str]] = set()

    def ask(pool: str, number: int, at_s: float) -> None:
        name = f"{pool}-{number}"
        made.append(prompt(f"t{number % 9}", name, at_s, _random(draw), pool=pool))
        made.append(response(f"t{number % 9}", name, at_s, _random(draw), pool=pool))

    for second in range(MINUTES * 60):
        for number in range(BUSY_RATE // 10):
            ask("busy", second * 100 + number, second + number / 10)
        for quiet in range(QUIET_POOLS):
            if second % 10 == quiet:
                ask(f"quiet{quiet}", second, second)
    for quiet in range(QUIET_POOLS):
        for minute in range(MINUTES):
            pool, at_s = f"quiet{quiet}", minute * 60 + 5 + quiet
            secret, name = text(1000 * quiet + minute, 40), f"{pool}-sink{minute}"
            made.append(prompt("a", f"{pool}-source{minute}", at_s, secret, pool=pool))
            bled = join(_random(draw), secret)
            made.append(response("b", name, at_s + 20, bled, pool=pool))
            wanted.add((name, "a"))
    return live_order(made), wanted


def _random(draw: np.random.Generator) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return draw.integers(0, 2**32, TOKENS, np.uint32)


def test_quiet_pools_are_not_starved_by_a_busy_one() -> None:
    sequences, wanted = traffic()
    stream = Stream()
    tight = DetectionSettings.model_validate(
        {"commonness": LEARNED, "index": {"memory_bytes": 8 * 1024**2}}
    )
    handler = stream.handler(settings=tight)
    runner = stream.runner(handler)
    runner.start()
    stream.send(sequences)
    runner.finish()
    assert handler.totals().evicted > 0  # the busy pool fills the index, and the oldest goes
    bleeds = [one for one in stream.findings() if one.is_content]
    assert pairs(bleeds) == wanted
    assert {one.rule for one in stream.findings() if not one.is_content} == {"BW901"}
    for finding in surest(bleeds).values():
        assert finding.detected_at_ms - finding.observed_at_ms <= MOST_DELAY_MS

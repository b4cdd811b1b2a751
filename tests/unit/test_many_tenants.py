"""Many tenants and pools cost memory by the window and the budgets, not by how many there were.

`make tenants` measures a million tenants in ten thousand pools.
"""

from detector.settings import DetectionSettings
from tests.unit.sequences import prompt, response, text
from tests.unit.streams import Stream

TENANTS = 1_500
POOLS = 300
WINDOW_S = 960
EVERY_S = 4
MEMORY_BYTES = 4 * 1024**2

SETTINGS = DetectionSettings.model_validate({"commonness": {"memory_bytes": MEMORY_BYTES}})


def test_what_is_kept_is_bounded_by_window_and_budget() -> None:
    stream = Stream(partitions=8)
    handler = stream.handler(settings=SETTINGS)
    runner = stream.runner(handler, batch_records=64)
    runner.start()
    for number in range(TENANTS):
        at_s, pool = number * EVERY_S, f"pool-{number % POOLS}"
        tenant, request = f"tenant-{number}", f"req-{number}"
        asked = prompt(tenant, request, at_s, text(2 * number, 60), pool=pool)
        given = response(tenant, request, at_s, text(2 * number + 1, 40), pool=pool)
        stream.send([asked, given], per_message=2)
        runner.turn()
    runner.finish()
    held = [one.window.detector for one in handler.held.values()]
    kept = sum(len(detector._store.items) for detector in held)
    in_window = 2 * (WINDOW_S // EVERY_S + 1)
    in_hand = 2 * POOLS  # a partition lets go when the next sequence of its own comes
    assert kept <= in_window + in_hand < 2 * TENANTS
    assert handler.memory.seen.nbytes <= MEMORY_BYTES
    assert len(handler.memory.parties) == TENANTS
    assert handler.totals().stats.responses == TENANTS

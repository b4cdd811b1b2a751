"""Liveness and readiness: a loop that stands still, windows being rebuilt, lag."""

from dataclasses import dataclass

from exporters.readiness import Probes, Pulse
from exporters.settings import MetricsSettings
from exporters.worker_state import InputState, PartitionState, WorkerState

SETTINGS = MetricsSettings(live_ms=10_000, ready_lag_ms=5_000)


@dataclass
class Worker:
    """A worker whose state and clock a test sets."""

    now: WorkerState
    seconds: float = 0.0

    def state(self) -> WorkerState:
        return self.now

    def clock(self) -> float:
        return self.seconds


def probes(worker: Worker) -> Probes:
    return Probes(worker, Pulse(worker.clock), SETTINGS)


def at(partition: int, lag_seconds: float | None) -> InputState:
    return InputState(topic="t", partition=partition, lag_records=1, lag_seconds=lag_seconds)


def test_a_loop_that_turns_is_alive() -> None:
    worker = Worker(WorkerState())
    pulse = Pulse(worker.clock)
    health = Probes(worker, pulse, SETTINGS)
    worker.seconds = 9.0
    assert not health.not_live()
    pulse.beat()
    worker.seconds = 18.0
    assert not health.not_live()


def test_a_loop_that_stands_still_is_not_alive() -> None:
    worker = Worker(WorkerState())
    health = probes(worker)
    worker.seconds = 11.0
    assert health.not_live() == [
        "the loop has not turned for 11 s (metrics.live_ms allows 10 s)",
    ]


def test_a_worker_that_is_assigned_nothing_yet_is_not_ready() -> None:
    assert "no answer from the group" in probes(Worker(WorkerState())).not_ready()[0]


def test_a_worker_that_stands_by_is_ready() -> None:
    assert not probes(Worker(WorkerState(assigned=True))).not_ready()


def test_a_window_that_is_rebuilt_is_named() -> None:
    rebuilding = (PartitionState(partition=0), PartitionState(partition=4, warming=True))
    state = WorkerState(assigned=True, partitions=rebuilding)
    assert probes(Worker(state)).not_ready() == ["rebuilding the window of partition 4"]


def test_lag_beyond_the_limit_is_told_with_the_setting() -> None:
    state = WorkerState(assigned=True, inputs=(at(0, 5.0), at(1, 5.5)))
    assert probes(Worker(state)).not_ready() == [
        "t partition 1: 6 s behind (metrics.ready_lag_ms allows 5 s)",
    ]


def test_lag_that_is_not_known_is_not_ready() -> None:
    state = WorkerState(assigned=True, inputs=(at(2, None),))
    assert probes(Worker(state)).not_ready() == ["t partition 2: lag not known yet"]


def test_many_reasons_are_counted() -> None:
    state = WorkerState(assigned=True, inputs=tuple(at(number, 60.0) for number in range(100)))
    reasons = probes(Worker(state)).not_ready()
    assert len(reasons) == 9
    assert reasons[-1] == "and 92 more inputs"

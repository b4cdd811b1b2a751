"""Whether a worker is alive and ready, as reasons why not: no reason means that it is."""

import time
from collections.abc import Callable

from exporters.settings import MetricsSettings
from exporters.worker_state import StateSource

Clock = Callable[[], float]
"""Seconds that never go back."""

_MOST_REASONS = 8
"""Inputs that are named at most, so that an answer stays readable with hundreds of them."""


class Pulse:
    """When the loop of a process has last turned; the loop beats, a probe in any thread reads."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()

    def beat(self) -> None:
        """Say that the loop has turned."""
        self._last = self._clock()

    @property
    def age_seconds(self) -> float:
        """Seconds since the last beat, or since the start before the first."""
        return self._clock() - self._last

    def not_live(self, settings: MetricsSettings) -> list[str]:
        """Return why the process should be restarted: its loop has stopped turning."""
        limit, age = settings.live_ms / 1000, self.age_seconds
        if age <= limit:
            return []
        return [f"the loop has not turned for {age:.0f} s (metrics.live_ms allows {limit:g} s)"]


class Probes:
    """What liveness and readiness of a worker mean."""

    def __init__(self, source: StateSource, pulse: Pulse, settings: MetricsSettings) -> None:
        self._source = source
        self._pulse = pulse
        self._settings = settings

    def not_live(self) -> list[str]:
        """Return why the process should be restarted: its loop has stopped turning."""
        return self._pulse.not_live(self._settings)

    def not_ready(self) -> list[str]:
        """Return why the worker's results are not to be relied on yet.

        A worker that the group has given no partition is ready: it stands by.
        """
        state = self._source.state()
        if not state.assigned:
            return ["no answer from the group yet on which partitions to read"]
        warming = [str(at.partition) for at in state.partitions if at.warming]
        reasons = [f"rebuilding the window of partition {', '.join(warming)}"] if warming else []
        limit = self._settings.ready_lag_ms / 1000
        for at in state.inputs:
            if at.lag_seconds is None:
                reasons.append(f"{at.topic} partition {at.partition}: lag not known yet")
            elif at.lag_seconds > limit:
                reasons.append(
                    f"{at.topic} partition {at.partition}: {at.lag_seconds:.0f} s behind "
                    f"(metrics.ready_lag_ms allows {limit:g} s)"
                )
        more = len(reasons) - _MOST_REASONS
        return reasons if more <= 0 else [*reasons[:_MOST_REASONS], f"and {more} more inputs"]

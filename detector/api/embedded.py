"""An api inside `run all`: it reads the broker in memory, between the turns of the stream."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from typing import Final

from detector.api.run_api import Running, running
from detector.api.serving import serving_api
from detector.config.root import Settings
from detector.errors import StoreError
from exporters.joined import Joined
from exporters.store.database import open_store
from ingest.broker import Reader

TURN_S: Final = 0.2
"""How often results are recorded: what a broker in memory keeps lasts for many times that."""


def keeper_of(
    settings: Settings, metrics: Joined
) -> Callable[[Reader], AbstractContextManager[Callable[[], None]]]:
    """Return what keeps the results of a stream; see `keeping`."""
    return lambda reader: keeping(settings, reader, metrics)


@contextmanager
def keeping(settings: Settings, reader: Reader, metrics: Joined) -> Iterator[Callable[[], None]]:
    """Give what records results that have come; to be called between the turns of the stream.

    The API shows `metrics`, to which those of the api are added.

    The last are recorded when the block ends, and what is to be sent until then is sent, or waits
    in the store for the next start. Raises StoreError, also for results that it refused to the end,
    and SettingsError.
    """
    with (
        closing(open_store(settings.store)) as database,
        running(settings, database, reader, pause=_go_on, resumes=False) as api,
        serving_api(settings, database, api.board, on_change=api.wake, metrics=metrics),
    ):
        metrics.add(api.board.metrics.registry)
        recorded_s = time.monotonic()

        def record() -> None:
            nonlocal recorded_s
            if time.monotonic() - recorded_s >= TURN_S:
                api.keeper.turn(0.0)
                api.board.beat()
                recorded_s = time.monotonic()

        try:
            yield record
        finally:
            _finish(api)
        _require_recorded(api)


def _finish(api: Running) -> None:
    while any(api.recorder.lag().values()):
        api.keeper.turn(0.0)
        if api.keeper.problem is not None:
            break


def _require_recorded(api: Running) -> None:
    """Raise StoreError if results are left: the broker in memory ends with this process."""
    left = sum(api.recorder.lag().values())
    if left:
        raise StoreError(
            f"{left} messages of findings and requests are not recorded: {api.keeper.problem}",
            hint="make room in the store, or use another one, and run it again: "
            "what is recorded is not doubled",
        )


def _go_on(_seconds: float) -> None:
    """Detection does not wait for the store."""

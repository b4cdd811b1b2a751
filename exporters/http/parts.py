"""What an API is made of: the store, the outputs, and what only its process can do."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from exporters.outputs.settings import AnyOutput
from exporters.store.database import Database
from exporters.store.journal import Attempt
from exporters.store.recording import Announce


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Given by whoever composes a process.

    `announce` puts changes into the outbox inside their transaction and `on_change` is called after
    it. `send_test` sends a test alert to the outputs named, to all if none is. `metrics` returns
    the metrics for an Accept header, with their media type. `not_ready` says why what is shown may
    be out of date. `now_ms` is wall time.
    """

    database: Database
    outputs: Sequence[AnyOutput]
    announce: Announce
    on_change: Callable[[], None]
    send_test: Callable[[Sequence[str]], list[Attempt]]
    metrics: Callable[[str], tuple[bytes, str]]
    not_ready: Callable[[], list[str]]
    now_ms: Callable[[], int]

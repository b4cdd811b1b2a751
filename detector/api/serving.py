"""Composition of the HTTP API: store, outputs and the state of the process behind one port."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from detector.alerting import announcer, chosen, send_test, wall_ms
from detector.api.board import Board
from detector.config.root import Settings
from exporters.http.access import Access
from exporters.http.app import guarded
from exporters.http.parts import Parts
from exporters.http.server import HttpServer
from exporters.http.shown_metrics import metrics_of
from exporters.joined import Joined
from exporters.store.database import Database
from exporters.store.journal import Attempt
from ingest.http_port import PatientProtocol, listening

READ_S: Final = 10.0
"""How long a client may take for the head of a request."""


@contextmanager
def serving_api(
    settings: Settings,
    database: Database,
    board: Board,
    *,
    on_change: Callable[[], None],
    metrics: Joined | None = None,
) -> Iterator[int | None]:
    """Serve the API for the time of a `with` block, and give its port; None without `api.port`.

    `on_change` is called when people have changed what alerts depend on. `metrics` are those of the
    whole process, where that is more than the board's. Raises SettingsError if the address or a
    file of tokens cannot be used.
    """
    if settings.api.port is None:
        yield None
        return
    access = Access(settings.api, clock=time.monotonic, now_ms=wall_ms)
    app = guarded(_parts(settings, database, board, on_change, metrics), access)
    bound = listening(settings.api.host, settings.api.port, section="api")
    server = HttpServer(app, bound, protocol=type("_Bound", (PatientProtocol,), {"head_s": READ_S}))
    try:
        yield server.port
    finally:
        server.close()


def _parts(
    settings: Settings,
    database: Database,
    board: Board,
    on_change: Callable[[], None],
    metrics: Joined | None,
) -> Parts:
    def tested(names: Sequence[str]) -> list[Attempt]:
        return send_test(chosen(settings, names), database)

    return Parts(
        database=database,
        outputs=settings.outputs,
        announce=announcer(settings),
        on_change=on_change,
        send_test=tested,
        metrics=metrics_of(board.metrics.registry if metrics is None else metrics.registry),
        not_ready=board.not_ready,
        now_ms=wall_ms,
    )

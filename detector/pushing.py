"""Composition of the push port: what gateways send goes to the sidecar's loop as a feed."""

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from detector.config.root import Settings
from detector.sketch.token_table import TokenTable
from ingest.push.intake import MakeDoor, PushIntake
from ingest.push.pressure import BackPressure
from ingest.push.token import read_token
from ingest.schema_records import RuntimeSample
from ingest.sidecar import Feed
from ingest.sidecar_sending import SidecarRecord

if TYPE_CHECKING:
    from ingest.push.server import PushServer

_log = logging.getLogger(__name__)


class Loop(NamedTuple):
    """What the port asks the loop; from any thread."""

    is_full: Callable[[], bool]
    not_live: Callable[[], Sequence[str]]
    not_ready: Callable[[], Sequence[str]]


class Pushing:
    """The port of a running sidecar; without a port it only hears samples and answers nobody."""

    def __init__(self, pressure: BackPressure) -> None:
        self.pressure = pressure
        self.intake: PushIntake | None = None
        self.server: PushServer | None = None
        self.loop: Loop | None = None
        """Set once the loop is there."""

    def is_full(self) -> bool:
        """Tell whether the loop can take no more."""
        return self.loop is not None and self.loop.is_full()

    def not_live(self) -> Sequence[str]:
        """Return why the process should be restarted."""
        return [] if self.loop is None else self.loop.not_live()

    def not_ready(self) -> Sequence[str]:
        """Return why not all is well."""
        return ["it is starting"] if self.loop is None else self.loop.not_ready()

    @property
    def feeds(self) -> list[Feed]:
        """What the loop asks for records."""
        return [] if self.intake is None else [self.intake.feed]

    def heard(self, feed: Feed) -> Feed:
        """Return the same feed; its samples count for the back-pressure answer."""

        def given(now_s: float) -> Iterable[SidecarRecord]:
            for record in feed(now_s):
                if isinstance(record, RuntimeSample):
                    self.pressure.hear(record)
                yield record

        return given

    def until(self, stopped: Callable[[], bool]) -> Callable[[], bool]:
        """Return the same; with a port, once it says so nothing more is taken."""
        return stopped if self.server is None else self.server.until(stopped)


@contextmanager
def pushing(
    settings: Settings, *, table: Callable[[], Callable[[float], TokenTable]], door: MakeDoor
) -> Iterator[Pushing]:
    """Listen on the port of the settings, if there is one, until the block ends.

    `table` makes what gives the token table of the moment; it is used in the server's thread only.
    Raises SettingsError for an address or a token file that cannot be used.
    """
    made = Pushing(BackPressure(settings.backpressure, clock=time.monotonic))
    if settings.push.port is None:
        yield made
        return
    # 5 MiB of memory that only a port needs
    from ingest.push.app import PushApp  # noqa: PLC0415
    from ingest.push.body import Bodies  # noqa: PLC0415
    from ingest.push.server import PushServer  # noqa: PLC0415

    of_now = table()
    made.intake = PushIntake(
        table=lambda: of_now(time.monotonic()),
        door=door,
        most_bytes=settings.push.waiting_bytes,
        holds=made.is_full,
    )
    app = PushApp(
        made.intake,
        made.pressure,
        Bodies(settings.push, read_token(settings.push.token_file)),
        live=made.not_live,
        ready=made.not_ready,
    )
    made.server = PushServer(app.asgi(), settings.push)
    try:
        yield made
    finally:
        made.server.close()
        if made.intake.waiting_bytes:
            _log.warning("%d bytes of pushes were taken and lost", made.intake.waiting_bytes)

"""Composition of `run tap`: a proxy that serves whatever happens, and a sidecar that sends.

The proxy runs in a thread of its own. The sidecar hashes, packs and sends what the proxy has kept;
if it fails it is begun again, while requests pass on and what cannot be kept is counted.
"""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from typing import Final

from detector.config.root import Settings
from detector.errors import BleedwatchError, SettingsError, UsageError
from detector.outlets import new_outlet, receiver_name
from detector.sidecar import HashKeys, Running, composed
from detector.sketch.token_table import TokenTable
from exporters.collector import Collected
from exporters.health import HealthServer
from exporters.sidecar_metrics import SidecarMetrics
from exporters.sidecar_state import SidecarState
from exporters.tap_metrics import TAP
from exporters.tap_state import TapState
from ingest.chat_template import ChatTemplate
from ingest.coverage import Coverage
from ingest.door import UNKNOWN_ENGINE, Door
from ingest.outlet import Outlet
from ingest.tap.blind import Blind
from ingest.tap.finished import Finished, MakeDoor
from ingest.tap.isolation import isolation_tag
from ingest.tap.room import Room
from ingest.tap.traffic import Traffic
from ingest.tap.watch import Watch
from ingest.tenancy import Tenancy, TenancySettings

try:
    from ingest.tap.engine import Engine
    from ingest.tap.relay import Relay
    from ingest.tap.server import TapServer
except ModuleNotFoundError as error:  # pragma: no cover - depends on what is installed
    if error.name != "aiohttp":
        raise
    raise UsageError(
        "a tap needs an HTTP client", hint="install it with: pip install 'bleedwatch[tap]'"
    ) from None

_log = logging.getLogger(__name__)

AGAIN_S: Final = 5.0
"""How long to wait before watching is begun again."""

SWITCH_S: Final = 0.000_5
"""How long hashing may keep the interpreter while the proxy waits for it: Python's own 5 ms would
be all that a tap may add to an answer."""

LOOK_S: Final = 0.1
"""How often is looked whether to stop."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a tap has to say once it listens."""

    port: int
    engine: str
    receiver: str
    health_port: int


@dataclass(slots=True)
class Tap:
    """A running proxy, and the sidecar behind it while there is one."""

    settings: Settings
    watch: Watch
    traffic: Traffic
    server: TapServer
    running: Running | None = None
    problem: str | None = None
    restarts: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)

    def sidecar_state(self) -> SidecarState:
        """Return how the sidecar is, for its metrics."""
        running = self.running
        return SidecarState() if running is None else running.board.state()

    def state(self) -> TapState:
        """Return how the tap is, for its metrics."""
        finished, traffic = self.watch.finished, self.traffic
        return TapState(
            watched=traffic.watched,
            passed=traffic.passed,
            upgraded=traffic.upgraded,
            in_flight=traffic.in_flight,
            cut=traffic.cut,
            kept=finished.kept,
            held_bytes=self.watch.room.taken,
            waiting_bytes=finished.waiting_bytes,
            blind=self.watch.blind.counts(),
            engine_errors=dict(traffic.engine_errors),
            restarts=self.restarts,
        )

    def not_watching(self) -> list[str]:
        """Return why not everything that passes is sent; requests pass all the same."""
        running = self.running
        if running is None:
            return [self.problem or "watching has not begun"]
        return [*running.board.not_live(), *running.board.not_ready()]

    def send_on(self, make_outlet: Callable[[], Outlet]) -> None:
        """Hash and send what is kept, until `end`; whatever fails is begun again."""
        while not self._ending.is_set():
            try:
                with composed(
                    self.settings, make_outlet, feeds=[self.watch.finished.feed]
                ) as self.running:
                    self.problem = None
                    self.running.sidecar.run(self._ending.is_set)
                    return
            except BleedwatchError as error:
                self.problem = f"nothing is sent: {error}"
            except Exception as error:  # noqa: BLE001 - requests must pass whatever happens
                self.problem = f"nothing is sent: a fault of bleedwatch ({type(error).__name__})"
                self.watch.blind.count("fault")
            self.running = None
            self.restarts += 1
            _log.warning("%s; requests pass on", self.problem)
            self._ending.wait(AGAIN_S)

    def end(self) -> None:
        """Let the sidecar send what it has, and end."""
        self._ending.set()

    def is_full(self) -> bool:
        """Tell whether the sidecar can take no more."""
        running = self.running
        return running is None or running.sidecar.sending.is_full


def run(
    settings: Settings, *, stopped: Callable[[], bool], on_start: Callable[[Started], None]
) -> TapState:
    """Serve until `stopped` says so; return how it was.

    Raises SettingsError without an engine or for an address that cannot be listened on, and
    KeyFileError. Nothing that happens later ends it.
    """
    sys.setswitchinterval(SWITCH_S)
    with serving(settings) as tap, _board(tap) as board:
        sending = threading.Thread(
            target=tap.send_on, args=(lambda: new_outlet(settings),), name="sending", daemon=True
        )
        sending.start()
        on_start(
            Started(
                tap.server.port,
                settings.tap.engine_url or "",
                receiver_name(settings),
                board.port,
            )
        )
        while not stopped():
            time.sleep(LOOK_S)
        tap.server.close()
        tap.end()
        sending.join(settings.sidecar.grace_ms / 1000 + AGAIN_S)
        return tap.state()


@contextmanager
def serving(settings: Settings) -> Iterator[Tap]:
    """Serve the proxy for the time of a `with` block."""
    if settings.tap.engine_url is None:
        raise SettingsError(
            "a tap needs an engine to stand before",
            where="tap.engine_url",
            hint="give the engine's own address, such as http://127.0.0.1:8000",
        )
    keys, blind, traffic = HashKeys(settings), Blind(), Traffic()
    made: list[Tap] = []
    watch = Watch(
        settings.tap,
        tenancy=Tenancy(settings.tenancy),
        rules=settings.tenancy,
        isolate=lambda tenant, given: isolation_tag(keys.rotating.current.tag_key, tenant, given),
        room=Room(settings.tap.held_bytes),
        blind=blind,
        finished=Finished(
            table=keys.table,
            door=_make_door(settings),
            kv_pool=settings.sidecar.kv_pool,
            most_bytes=settings.tap.waiting_bytes,
            holds=lambda: not made or made[0].is_full(),
        ),
    )
    engine = Engine(settings.tap.engine_url, connect_s=settings.tap.connect_ms / 1000)
    server = TapServer(Relay(engine, watch, traffic), engine, traffic, settings.tap)
    made.append(Tap(settings, watch, traffic, server))
    try:
        yield made[0]
    finally:
        server.close()


def _board(tap: Tap) -> AbstractContextManager[HealthServer]:
    """Answer probes and scrapes; liveness and readiness are the proxy's alone."""
    registry = SidecarMetrics(_Sidecar(tap)).registry
    registry.register(Collected(TAP, tap.state))
    probes = {
        "/livez": tap.server.not_live,
        "/readyz": tap.server.not_ready,
        "/watchz": tap.not_watching,
    }
    return closing(HealthServer(tap.settings.metrics, registry=registry, probes=probes))


@dataclass(frozen=True, slots=True)
class _Sidecar:
    """The sidecar of a tap as a source of metrics."""

    tap: Tap

    def state(self) -> SidecarState:
        return self.tap.sidecar_state()


def _make_door(settings: Settings) -> MakeDoor:
    """Return what makes doors: the tenant was found when the request came."""
    tenancy, template = Tenancy(TenancySettings()), ChatTemplate(settings.template)
    engine = settings.sidecar.engine or UNKNOWN_ENGINE

    def make(table: TokenTable, coverage: Coverage) -> Door:
        return Door(table, tenancy, template, coverage, default_engine=engine)

    return make

"""Composition of `run sidecar`: logs beside an engine in, sealed messages out."""

import logging
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from detector.config.root import Settings
from detector.errors import SettingsError
from detector.kv_events import kv_event_feeds
from detector.outlets import new_outlet, receiver_name
from detector.pushing import Loop, pushing
from detector.reading import engine_name
from detector.scraping import scraping
from detector.sidecar_beside import beside
from detector.sidecar_board import Board
from detector.signals import signals_of as log_signals
from detector.sketch.token_table import TokenTable
from exporters.engine_metrics import register_engines
from ingest.audit_log import AuditLog
from ingest.chat_template import ChatTemplate
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.heartbeat import Heartbeats
from ingest.key_rotation import RotatingKeys
from ingest.outlet import Outlet
from ingest.schema_records import EngineEvent
from ingest.sidecar import Feed, Sidecar
from ingest.sidecar_beside import BesideHealth
from ingest.sidecar_health import SidecarHealth, health_of
from ingest.sidecar_input import MakeDoor, SidecarInput
from ingest.sidecar_inputs import MakeInput, SidecarInputs, matches
from ingest.sidecar_losses import LossReports, Place
from ingest.sidecar_reader import GrowingReader
from ingest.sidecar_sending import Sending
from ingest.spooled_outlet import SpooledOutlet
from ingest.tail.checkpoint import CheckpointFile, LogMark
from ingest.tail.source import LineSource
from ingest.tenancy import Tenancy
from ingest.topics import topic_names

_log = logging.getLogger(__name__)

OWN_NAME: Final = "sidecar"
"""Stands for the engine where the sidecar itself lost something and serves no one engine."""

SignalsOf = Callable[[str, str | None], Callable[[bytes], EngineEvent | None]]
"""Returns what makes events of the log lines of an engine (name, KV pool if it is set)."""


@dataclass(frozen=True, slots=True)
class Started:
    """What a sidecar has to say once it reads."""

    logs: tuple[str, ...]
    servers: str
    health_port: int
    push_port: int | None = None
    """None if nothing can be pushed."""


@dataclass(slots=True)
class Running:
    """A sidecar with what it needs around it."""

    sidecar: Sidecar
    keys: "HashKeys"
    outlet: Outlet
    beside: Callable[[], BesideHealth]
    heartbeats: Heartbeats | None
    board: Board = field(init=False)

    def look(self) -> SidecarHealth:
        """Return how it is."""
        spooled = self.outlet if isinstance(self.outlet, SpooledOutlet) else None
        return health_of(
            self.sidecar,
            at_ms=int(time.time() * 1000),
            key_problem=self.keys.rotating.problem,
            spool=spooled.counts if spooled else None,
            spool_problem=spooled.problem if spooled else None,
            beside=self.beside(),
            heartbeats=_last(self.heartbeats),
        )


class HashKeys:
    """The token table under the current secret; another one as soon as the secret is rotated."""

    def __init__(self, settings: Settings) -> None:
        if settings.key_file is None:
            raise SettingsError(
                "a sidecar needs the secret under which it hashes and seals",
                where="key_file",
                hint="bleedwatch key new PATH makes one; give it to sidecars and workers",
            )
        self.rotating = RotatingKeys(settings.key_file, settings.sealing, now_s=time.monotonic())
        self._table = self._made()
        self._problem: str | None = None

    def table(self, now_s: float) -> TokenTable:
        """Return the table of the moment; the key file is read again from time to time."""
        self.rotating.ring(now_s)
        if self.rotating.current.key_id != self._table.key_id:
            self._table = self._made()
        problem = None if self.rotating.problem is None else str(self.rotating.problem)
        if problem is not None and problem != self._problem:
            _log.warning("the earlier secret stays in use: %s", problem)
        self._problem = problem
        return self._table

    def _made(self) -> TokenTable:
        keys = self.rotating.current
        return TokenTable(keys.hash_key, key_id=keys.key_id)


def run(
    settings: Settings, *, stopped: Callable[[], bool], on_start: Callable[[Started], None]
) -> SidecarHealth:
    """Follow the logs until `stopped` says so or all pipes have ended; return how it was.

    Raises SettingsError without files or a key file, KeyFileError, InputError for a checkpoint or a
    FIFO or a spool that cannot be used, and BrokerError if the cluster is away and there is no
    spool.
    """
    with (
        pushing(settings, table=lambda: HashKeys(settings).table, door=doors(settings)) as pushes,
        scraping(settings) as scraped,
        kv_event_feeds(settings, lambda: HashKeys(settings)) as kv_events,
        composed(
            settings,
            lambda: new_outlet(settings),
            feeds=(*pushes.feeds, *map(pushes.heard, scraped.feeds), *kv_events),
            signals_of=scraped.overheard(log_signals(settings)),
            beside_of=lambda: beside(pushes, scraped, kv_events),
        ) as running,
        running.board.serving() as server,
    ):
        if scraped.feeds:
            register_engines(scraped, running.board.metrics.registry)
        pushes.loop = Loop(
            is_full=lambda: running.sidecar.sending.is_full,
            not_live=running.board.not_live,
            not_ready=running.board.not_ready,
        )
        for one in kv_events:
            one.is_full = lambda: running.sidecar.sending.is_full
            one.is_ending = stopped
        on_start(
            Started(
                settings.sidecar.followed,
                receiver_name(settings),
                server.port,
                None if pushes.server is None else pushes.server.port,
            )
        )
        running.sidecar.run(pushes.until(stopped))
        return running.look()


@contextmanager
def composed(
    settings: Settings,
    outlet: Callable[[], Outlet],
    *,
    feeds: Iterable[Feed] = (),
    signals_of: SignalsOf | None = None,
    beside_of: Callable[[], BesideHealth] = BesideHealth,
) -> Iterator[Running]:
    """Put a sidecar together, and take it apart again; the outlet is made last and closed."""
    feeds = tuple(feeds)
    if not settings.sidecar.followed and not feeds:
        raise SettingsError(
            "a sidecar needs logs to follow, or a port for pushes",
            where="sidecar.files",
            hint="give the paths of the engine's logs, - for standard input, or set push.port",
        )
    keys = HashKeys(settings)
    path = settings.sidecar.checkpoint_file
    with ExitStack() as held:
        checkpoint = None if path is None else held.enter_context(closing(CheckpointFile(path)))
        inputs = SidecarInputs(
            settings.sidecar,
            _make_input(settings, signals_of),
            salt=b"" if checkpoint is None else checkpoint.salt,
            before={} if checkpoint is None else checkpoint.logs,
        )
        held.callback(inputs.close)
        opened = outlet()
        held.callback(opened.close)
        sending = Sending(
            opened,
            topics=topic_names(settings.kafka.topic_prefix),
            ring=lambda: keys.rotating.ring(time.monotonic()),
            packing=settings.packing,
        )
        yield _running(
            settings,
            outlet=opened,
            inputs=inputs,
            sending=sending,
            keys=keys,
            checkpoint=checkpoint,
            feeds=feeds,
            beside_of=beside_of,
        )


def _running(
    settings: Settings,
    *,
    outlet: Outlet,
    inputs: SidecarInputs,
    sending: Sending,
    keys: HashKeys,
    checkpoint: CheckpointFile | None,
    feeds: Iterable[Feed],
    beside_of: Callable[[], BesideHealth],
) -> Running:
    def on_turn() -> None:
        running.board.beat()

    reports = LossReports(
        lambda: running.board.last,
        own=_place(settings, OWN_NAME),
        place_of=lambda name: _place(settings, engine_name(name)),
        now_ms=lambda: int(time.time() * 1000),
    )
    heartbeats = _heartbeats(settings, sending, keys)
    sidecar = Sidecar(
        inputs,
        sending,
        settings.sidecar,
        table=keys.table,
        checkpoint=checkpoint,
        feeds=(*feeds, reports, *([heartbeats.records] if heartbeats else [])),
        on_turn=on_turn,
    )
    running = Running(sidecar, keys, outlet, beside_of, heartbeats)
    running.board = Board(running.look, settings.metrics, path=settings.sidecar.health_file)
    return running


def _heartbeats(settings: Settings, sending: Sending, keys: HashKeys) -> Heartbeats | None:
    """Return what makes heartbeats; every sidecar has a name of its own, or nobody misses one."""
    if settings.heartbeat.every_ms is None:
        return None
    return Heartbeats(
        settings.sidecar.engine or socket.gethostname(),
        every_ms=settings.heartbeat.every_ms,
        time=sending.time,
        key_id=lambda: keys.rotating.current.key_id,
        wall_ms=lambda: int(time.time() * 1000),
    )


def _last(heartbeats: Heartbeats | None) -> dict[str, int]:
    if heartbeats is None or heartbeats.sent_ms is None:
        return {}
    return {heartbeats.sender: heartbeats.sent_ms}


def _place(settings: Settings, name: str) -> Place:
    engine = settings.sidecar.engine or name
    return Place(engine, settings.sidecar.kv_pool or engine)


def _make_input(settings: Settings, signals_of: SignalsOf | None) -> MakeInput:
    """Return what puts the reader of a log together with the doors and the signals."""
    make_door = doors(settings)

    def make(log: LineSource, coverage: Coverage, before: LogMark | None) -> SidecarInput:
        if matches(log.name, settings.sidecar.audit_files):
            audit = AuditLog(coverage)
            return SidecarInput(
                log, audit, coverage=coverage, door=make_door, signals=audit.event, before=before
            )
        engine = settings.sidecar.engine or engine_name(log.name)
        reader = GrowingReader(
            settings.sidecar,
            settings.sources.jsonl,
            engine=engine,
            coverage=coverage,
            now=lambda: datetime.now(UTC),
            version=None if before is None else before.version,
        )
        return SidecarInput(
            log,
            reader,
            coverage=coverage,
            door=make_door,
            kv_pool=settings.sidecar.kv_pool,
            signals=None if signals_of is None else signals_of(engine, settings.sidecar.kv_pool),
            before=before,
        )

    return make


def doors(settings: Settings) -> MakeDoor:
    """Return what makes doors with the tenant rules of the settings."""
    tenancy, template = Tenancy(settings.tenancy), ChatTemplate(settings.template)
    engine = settings.sidecar.engine

    def make(table: TokenTable, coverage: Coverage) -> Door:
        if engine is None:
            return Door(table, tenancy, template, coverage)
        return Door(table, tenancy, template, coverage, default_engine=engine)

    return make

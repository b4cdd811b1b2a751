"""Every metric of a sidecar in one list, read from its state when the metrics are asked for.

No label holds a tenant, a request or a file, nor an engine but the one that names the sidecar in
its heartbeats: the number of series is bounded by fixed words. What cannot be known, such as the
spool of a sidecar without one, is absent, never zero.
"""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry

from exporters.collector import Collected, Read, Samples
from exporters.sidecar_state import (
    KvEventsState,
    PushState,
    SidecarSource,
    SidecarState,
    SpoolState,
)


def _by_word(of: Callable[[SidecarState], Mapping[str, int]]) -> Callable[[SidecarState], Samples]:
    return lambda state: {(word,): count for word, count in of(state).items()}


def _one(of: Callable[[SidecarState], int]) -> Callable[[SidecarState], Samples]:
    return lambda state: {(): of(state)}


def _spool(of: Callable[[SpoolState], int]) -> Callable[[SidecarState], Samples]:
    return lambda state: {} if state.spool is None else {(): of(state.spool)}


def _push(of: Callable[[PushState], Samples]) -> Callable[[SidecarState], Samples]:
    return lambda state: {} if state.push is None else of(state.push)


def _kv(of: Callable[[KvEventsState], Mapping[str, int]]) -> Callable[[SidecarState], Samples]:
    return lambda state: (
        {}
        if state.kv_events is None
        else {(word,): count for word, count in of(state.kv_events).items()}
    )


SIDECAR: tuple[Read[SidecarState], ...] = (
    # what was read
    Read(
        "bleedwatch_sidecar_lines_total",
        "counter",
        "Lines of logs that a reader was given.",
        _one(lambda state: state.lines),
    ),
    Read(
        "bleedwatch_sidecar_requests_total",
        "counter",
        "Requests read, with all, some or none of their ids.",
        _one(lambda state: state.requests),
    ),
    Read(
        "bleedwatch_sidecar_repeats_total",
        "counter",
        "Requests that were read again behind a restart and not sent again.",
        _one(lambda state: state.repeats),
    ),
    Read(
        "bleedwatch_sidecar_unmapped_total",
        "counter",
        "Requests that no tenant rule could place.",
        _one(lambda state: state.unmapped),
    ),
    Read(
        "bleedwatch_sidecar_incomplete_total",
        "counter",
        "Requests without all ids of a side, by cause.",
        lambda state: dict(state.incomplete.items()),
        ("side", "cause"),
    ),
    Read(
        "bleedwatch_sidecar_broken_total",
        "counter",
        "Entries of logs, or whole stretches of them, that could not be used.",
        _by_word(lambda state: state.broken),
        ("reason",),
    ),
    Read(
        "bleedwatch_sidecar_ignored_total",
        "counter",
        "Entries of logs that are of no interest.",
        _by_word(lambda state: state.ignored),
        ("reason",),
    ),
    Read(
        "bleedwatch_sidecar_behind_bytes",
        "gauge",
        "Bytes of logs that are there and not read yet.",
        _one(lambda state: state.behind_bytes),
    ),
    # what was sent
    Read(
        "bleedwatch_sidecar_records_total",
        "counter",
        "Records packed into messages.",
        _by_word(lambda state: state.records),
        ("kind",),
    ),
    Read(
        "bleedwatch_sidecar_tokens_total",
        "counter",
        "Tokens of the sequences among them.",
        _one(lambda state: state.tokens),
    ),
    Read(
        "bleedwatch_sidecar_refused_total",
        "counter",
        "Records that could not be packed.",
        _by_word(lambda state: state.refused),
        ("reason",),
    ),
    Read(
        "bleedwatch_sidecar_unsafe_bytes",
        "gauge",
        "Bytes sent that neither the broker nor the spool has yet.",
        _one(lambda state: state.unsafe_bytes),
    ),
    Read(
        "bleedwatch_sidecar_failed_sends_total",
        "counter",
        "Messages that were refused and sent again.",
        _one(lambda state: state.failed_sends),
    ),
    Read(
        "bleedwatch_sidecar_discarded_bytes_total",
        "counter",
        "Bytes of pipes that were thrown away while nothing more could be held.",
        _one(lambda state: state.discarded_bytes),
    ),
    # what waits on disk
    Read(
        "bleedwatch_spool_messages",
        "gauge",
        "Messages that wait on disk.",
        _spool(lambda spool: spool.messages),
    ),
    Read(
        "bleedwatch_spool_bytes",
        "gauge",
        "Bytes that they take.",
        _spool(lambda spool: spool.bytes),
    ),
    Read(
        "bleedwatch_spool_spooled_total",
        "counter",
        "Messages that went to disk.",
        _spool(lambda spool: spool.spooled),
    ),
    Read(
        "bleedwatch_spool_replayed_total",
        "counter",
        "Messages that were sent from there.",
        _spool(lambda spool: spool.replayed),
    ),
    Read(
        "bleedwatch_spool_dropped_total",
        "counter",
        "Messages given up for room: nobody will ever see them.",
        lambda state: (
            {} if state.spool is None else {(word,): n for word, n in state.spool.dropped.items()}
        ),
        ("topic",),
    ),
    Read(
        "bleedwatch_spool_dropped_bytes_total",
        "counter",
        "Bytes of the messages given up.",
        _spool(lambda spool: spool.dropped_bytes),
    ),
    Read(
        "bleedwatch_spool_refused_total",
        "counter",
        "Messages that found no room and were kept in memory.",
        _spool(lambda spool: spool.refused),
    ),
    Read(
        "bleedwatch_spool_cut_bytes_total",
        "counter",
        "Damaged or half-written bytes that were cut off.",
        _spool(lambda spool: spool.cut_bytes),
    ),
    # what was pushed
    Read(
        "bleedwatch_push_requests_total",
        "counter",
        "Requests pushed and read, with all, some or none of their ids.",
        _push(lambda push: {(): push.requests}),
    ),
    Read(
        "bleedwatch_push_unmapped_total",
        "counter",
        "Pushed requests that no tenant rule could place.",
        _push(lambda push: {(): push.unmapped}),
    ),
    Read(
        "bleedwatch_push_incomplete_total",
        "counter",
        "Pushed requests without all ids of a side, by cause.",
        _push(lambda push: dict(push.incomplete.items())),
        ("side", "cause"),
    ),
    Read(
        "bleedwatch_push_refused_total",
        "counter",
        "Pushed requests that could not be used; their senders were told.",
        _push(lambda push: {(word,): count for word, count in push.refused.items()}),
        ("reason",),
    ),
    Read(
        "bleedwatch_push_waiting_bytes",
        "gauge",
        "Bytes of pushes that wait to be sent.",
        _push(lambda push: {(): push.waiting_bytes}),
    ),
    # what was published
    Read(
        "bleedwatch_kv_events_messages_total",
        "counter",
        "Messages of KV events, by what became of them.",
        _kv(lambda events: events.messages),
        ("outcome",),
    ),
    Read(
        "bleedwatch_kv_events_unreadable_total",
        "counter",
        "KV events, or messages of them, that could not be used.",
        _kv(lambda events: events.unreadable),
        ("reason",),
    ),
    Read(
        "bleedwatch_kv_events_told_total",
        "counter",
        "Engine events and sequences made of KV events, and requests without a tenant.",
        _kv(lambda events: events.told),
        ("what",),
    ),
    Read(
        "bleedwatch_heartbeat_sent_timestamp_seconds",
        "gauge",
        "When the last heartbeat was made.",
        lambda state: {(sender,): ms / 1000 for sender, ms in state.heartbeats.items()},
        ("sender",),
    ),
)


class SidecarMetrics:
    """The metrics of one sidecar, in a registry that others may join."""

    def __init__(self, source: SidecarSource) -> None:
        self.registry = CollectorRegistry(auto_describe=False)
        self.registry.register(Collected(SIDECAR, source.state))

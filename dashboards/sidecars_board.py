"""The fleet of sidecars and taps: what they read, miss, hold and send."""

from typing import Final

from dashboards import thresholds
from dashboards.panels import Panel, Query, Row, lines, rates
from dashboards.queries import rate, rise

READING: Final = (
    rates(
        "Requests",
        "Requests read per second, by sidecar.",
        "bleedwatch_sidecar_requests_total",
        "instance",
    ),
    rates(
        "Tokens",
        "Tokens read per second, by sidecar.",
        "bleedwatch_sidecar_tokens_total",
        "instance",
    ),
    lines(
        "Behind",
        "Bytes of the logs that are not read yet.",
        {"{{instance}}": "sum by (instance) (bleedwatch_sidecar_behind_bytes)"},
        unit="bytes",
    ),
    lines(
        "Lines",
        "Lines given to readers, and requests that were read again behind a restart.",
        {
            "lines": rate("bleedwatch_sidecar_lines_total"),
            "repeats": rate("bleedwatch_sidecar_repeats_total"),
        },
        unit="ops",
    ),
    lines(
        "Pushed",
        "Requests pushed and read, and those that could not be used.",
        {
            "read": rate("bleedwatch_push_requests_total"),
            "unmapped": rate("bleedwatch_push_unmapped_total"),
            "{{reason}}": rate("bleedwatch_push_refused_total", "reason"),
        },
        unit="ops",
    ),
    rates(
        "KV events",
        "What was made of the block events that engines publish.",
        "bleedwatch_kv_events_told_total",
        "what",
    ),
)

UNSEEN: Final = (
    lines(
        "Incomplete requests",
        "Requests without all ids of a side, by cause: from logs, and pushed.",
        {
            "{{cause}}": rate("bleedwatch_sidecar_incomplete_total", "cause"),
            "pushed: {{cause}}": rate("bleedwatch_push_incomplete_total", "cause"),
        },
        unit="ops",
        runbook="BW901",
    ),
    rates(
        "Without tenant",
        "Requests that no tenant rule fits.",
        "bleedwatch_sidecar_unmapped_total",
        "instance",
        runbook="BW901",
    ),
    lines(
        "Broken and ignored entries",
        "Entries of logs that could not be used, or are of no interest, by reason.",
        {
            "{{reason}}": rate("bleedwatch_sidecar_broken_total", "reason"),
            "ignored: {{reason}}": rate("bleedwatch_sidecar_ignored_total", "reason"),
        },
        unit="ops",
    ),
    lines(
        "KV messages",
        "Messages of block events by what became of them, and what could not be used.",
        {
            "{{outcome}}": rate("bleedwatch_kv_events_messages_total", "outcome"),
            "unreadable: {{reason}}": rate("bleedwatch_kv_events_unreadable_total", "reason"),
        },
        unit="ops",
    ),
    lines(
        "Refused records",
        "Records that could not be packed, and samples given up before they were sent.",
        {
            "{{reason}}": rate("bleedwatch_sidecar_refused_total", "reason"),
            "samples": rate("bleedwatch_engine_dropped_samples_total"),
        },
        unit="ops",
    ),
    rates(
        "Thrown away",
        "Bytes of pipes that came while nothing more could be held.",
        "bleedwatch_sidecar_discarded_bytes_total",
        "instance",
        unit="Bps",
        runbook="BW901",
    ),
    lines(
        "Probe stale",
        "1 for an engine that runs what no passed probe has tested.",
        {"{{engine}}": "max by (engine) (bleedwatch_engine_probe_stale)"},
        width=24,
        runbook="BleedwatchProbeStale",
    ),
)

SENDING: Final = (
    rates(
        "Records packed",
        "Records packed into messages, by kind.",
        "bleedwatch_sidecar_records_total",
        "kind",
    ),
    rates(
        "Failed sends",
        "Messages that were refused and sent again.",
        "bleedwatch_sidecar_failed_sends_total",
        "instance",
    ),
    lines(
        "Held in memory",
        "Bytes that neither the broker nor the spool has yet, and pushes that wait.",
        {
            "sent, not acknowledged": "sum(bleedwatch_sidecar_unsafe_bytes)",
            "pushes": "sum(bleedwatch_push_waiting_bytes)",
        },
        unit="bytes",
    ),
    lines(
        "Spool",
        "Bytes that wait on disk for the broker.",
        {"{{instance}}": "sum by (instance) (bleedwatch_spool_bytes)"},
        unit="bytes",
    ),
    lines(
        "Messages in spools",
        "Messages that wait, and those that went to disk, came back or found no room so far.",
        {
            "waiting": "sum(bleedwatch_spool_messages)",
            "spooled": "sum(bleedwatch_spool_spooled_total)",
            "sent from there": "sum(bleedwatch_spool_replayed_total)",
            "no room": "sum(bleedwatch_spool_refused_total)",
        },
    ),
    Panel(
        title="Dropped by the spool",
        description="Messages given up because the spool was full: lost recall.",
        queries=(
            Query(
                expr=rise("bleedwatch_spool_dropped_total", by="instance"), legend="{{instance}}"
            ),
        ),
        alarm_at=1,
        runbook="BW901",
    ),
    lines(
        "Lost on disk",
        "Bytes of spools given up for room, and damaged bytes that were cut off.",
        {
            "dropped": rate("bleedwatch_spool_dropped_bytes_total"),
            "cut": rate("bleedwatch_spool_cut_bytes_total"),
        },
        unit="Bps",
        width=24,
    ),
)

TAPS: Final = (
    lines(
        "Requests through taps",
        "Those that generate, those whose ids were kept, and others that passed.",
        {
            "generate": rate("bleedwatch_tap_requests_total"),
            "kept": rate("bleedwatch_tap_kept_total"),
            "others": rate("bleedwatch_tap_passed_total"),
            "upgraded": rate("bleedwatch_tap_upgraded_total"),
        },
        unit="ops",
    ),
    Panel(
        title="Share not seen",
        description="Of the requests that generate; they are served all the same.",
        queries=(
            Query(
                expr=f"{rise('bleedwatch_tap_blind_total', by='cause')} "
                f"/ on () group_left () {rise('bleedwatch_tap_requests_total')}",
                legend="{{cause}}",
            ),
        ),
        unit="percentunit",
        alarm_at=thresholds.BLIND_SHARE,
        runbook="BW901",
        no_value="none",
    ),
    lines(
        "Broken off",
        "Requests whose client went away, or that the engine did not answer whole.",
        {
            "client went away": rate("bleedwatch_tap_cut_total"),
            "engine: {{reason}}": rate("bleedwatch_tap_engine_errors_total", "reason"),
        },
        unit="ops",
    ),
    lines(
        "Under way",
        "Requests in flight through taps.",
        {"{{instance}}": "sum by (instance) (bleedwatch_tap_in_flight)"},
    ),
    lines(
        "Held by taps",
        "Bytes of bodies, answers and ids, and of finished requests that wait to be hashed.",
        {
            "under way": "sum(bleedwatch_tap_held_bytes)",
            "finished": "sum(bleedwatch_tap_waiting_bytes)",
        },
        unit="bytes",
    ),
    Panel(
        title="Watching begun again",
        description="Times that watching ended and was begun again, while requests passed on.",
        queries=(
            Query(expr=rise("bleedwatch_tap_restarts_total", by="instance"), legend="{{instance}}"),
        ),
        warn_at=1,
    ),
)

SIDECARS: Final = (
    Row("Reading", READING),
    Row("Not seen", UNSEEN),
    Row("Sending", SENDING),
    Row("Taps", TAPS),
)

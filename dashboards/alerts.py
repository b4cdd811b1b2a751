"""The alerts, and the recording rules they and the boards share.

`owner` says who is woken: security where content may have gone to somebody else, infrastructure
where the monitor or an engine's memory needs hands. Both see the same board.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dashboards import thresholds
from dashboards.queries import rise
from detector.finding import Severity

FINDINGS: Final = "bleedwatch_findings_total"
ABOUT_TENANTS: Final = f'{FINDINGS}{{rule!="BW902"}}'
"""Findings without the monitor's own heartbeats."""

GRAVE: Final = f'{FINDINGS}{{severity=~"high|critical"}}'


def _share(part: str, whole: str) -> str:
    """Return what share a counter has in another, over five minutes."""
    return f"{rise(part, '5m')} / {rise(whole, '5m')}"


OVERLAP: Final = "bleedwatch:overlap:ratio_rate5m"
UNEXPLAINED: Final = "bleedwatch:unexplained:ratio_rate5m"
BLIND: Final = "bleedwatch:blind:ratio_rate5m"

_RESPONSES: Final = "bleedwatch_response_shingles_total"

RECORDING: Final = {
    OVERLAP: _share("bleedwatch_overlapping_shingles_total", _RESPONSES),
    UNEXPLAINED: _share("bleedwatch_unexplained_shingles_total", _RESPONSES),
    BLIND: _share("bleedwatch_blind_sequences_total", "bleedwatch_sequences_total"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert: it fires once `value` has been `fires` for `hold`, say "> 0" for "1m".

    `runbook` names its page, the alert itself where no rule is meant.
    """

    name: str
    value: str
    fires: str
    hold: str
    severity: Severity
    owner: Literal["security", "infrastructure"]
    summary: str
    description: str
    runbook: str

    @property
    def expr(self) -> str:
        """The expression that Prometheus evaluates."""
        return f"{self.value} {self.fires}"


def _alive(part: str, metric: str) -> str:
    """Return how many processes of a part are scraped, 0 if none."""
    return f'label_replace(count({metric}) or vector(0), "part", "{part}", "", "")'


_WORKERS: Final = _alive("worker", "bleedwatch_assigned_partitions")
_APIS: Final = _alive("api", "bleedwatch_api_requests_total")
_SIDECARS: Final = _alive("sidecar", "bleedwatch_sidecar_lines_total")

SENT: Final = "bleedwatch_heartbeat_sent_timestamp_seconds"
ARRIVED: Final = "bleedwatch_heartbeat_arrived_timestamp_seconds"

CONTENT: Final = (
    Alert(
        name="BleedwatchBleed",
        value=rise(GRAVE, "5m", by="rule"),
        fires="> 0",
        hold="0s",
        severity=Severity.CRITICAL,
        owner="security",
        summary="Content of one tenant is in a response to another, or is about to be: "
        "{{ $labels.rule }}",
        description="{{ $value | humanize }} findings of high severity in 5 minutes. Open the "
        "incident on the triage page.",
        runbook="BW001",
    ),
    Alert(
        name="BleedwatchOverlapRising",
        value=UNEXPLAINED,
        fires=f"> {thresholds.UNEXPLAINED_SHARE}",
        hold="5m",
        severity=Severity.HIGH,
        owner="security",
        summary="Unexplained overlap between tenants is rising",
        description="{{ $value | humanizePercentage }} of the shingles of responses are those of "
        "other tenants, and nothing explains them.",
        runbook="BW001",
    ),
)

ENGINES: Final = (
    Alert(
        name="BleedwatchUnreleasedMemory",
        value='max by (engine, rank) (bleedwatch_engine_unreleased_tokens{quality="exact"})',
        fires=f"> {thresholds.UNRELEASED_TOKENS}",
        hold="1m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $labels.engine }} holds KV memory that no request accounts for",
        description="{{ $value }} tokens with nothing running.",
        runbook="BW201",
    ),
    Alert(
        name="BleedwatchClearFailure",
        value=rise("bleedwatch_engine_clear_failures_total", "5m", by="engine, rank", merge="max"),
        fires="> 0",
        hold="0s",
        severity=Severity.HIGH,
        owner="infrastructure",
        summary="{{ $labels.engine }} did not clear KV memory",
        description="What was not cleared can reach the next request.",
        runbook="BW202",
    ),
    Alert(
        name="BleedwatchMetadataMismatch",
        value=rise(
            "bleedwatch_engine_metadata_mismatches_total", "5m", by="engine, rank", merge="max"
        ),
        fires="> 0",
        hold="0s",
        severity=Severity.HIGH,
        owner="security",
        summary="{{ $labels.engine }} saw KV memory of another request",
        description="The engine compared and refused this time; without checksums it does not.",
        runbook="BW203",
    ),
    Alert(
        name="BleedwatchPoolPressure",
        value="max by (engine, rank) (bleedwatch_engine_pool_usage_ratio)",
        fires=f"> {thresholds.POOL_USAGE}",
        hold="1m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $labels.engine }} uses {{ $value | humanizePercentage }} of its KV pool",
        description="Requests are evicted and aborted, and that is where memory changes hands.",
        runbook="BW205",
    ),
    Alert(
        name="BleedwatchEngineUnseen",
        value="("
        + rise('bleedwatch_engine_scrapes_total{outcome="ok"}', "5m", by="engine")
        + " or 0 * sum by (engine) (bleedwatch_engine_scrapes_total))",
        fires="== 0",
        hold="5m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $labels.engine }} does not answer its sidecar",
        description="Nothing is known of its memory.",
        runbook="BleedwatchEngineUnseen",
    ),
    Alert(
        name="BleedwatchProbeStale",
        value="max by (engine) (bleedwatch_engine_probe_stale)",
        fires="> 0",
        hold="5m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $labels.engine }} runs what no passed probe has tested",
        description="Version, sizes or flags have changed since, or the last probe failed.",
        runbook="BleedwatchProbeStale",
    ),
)

MONITOR: Final = (
    Alert(
        name="BleedwatchLate",
        value="max(bleedwatch_lag_seconds)",
        fires=f"> {thresholds.LAG_SECONDS}",
        hold="2m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="Findings are {{ $value | humanizeDuration }} late",
        description="A worker does not keep up with its input, or is not there.",
        runbook="BleedwatchLate",
    ),
    Alert(
        name="BleedwatchLearning",
        value="max(bleedwatch_learning * "
        "(increase(bleedwatch_commonness_shortened_total[2h]) > bool 0))",
        fires="> 0",
        hold="10m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="Content findings are held at low: too little memory for this traffic",
        description="A worker's memory of what is common reaches back too little and cannot grow: "
        "a bleed is found, but not told as grave.",
        runbook="BleedwatchLearning",
    ),
    Alert(
        name="BleedwatchBlind",
        value=BLIND,
        fires=f"> {thresholds.BLIND_SHARE}",
        hold="10m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $value | humanizePercentage }} of the sequences cannot be judged",
        description="A bleed among them is not found.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchIncomplete",
        value=_share(
            'bleedwatch_sidecar_incomplete_total{side="response"}',
            "bleedwatch_sidecar_requests_total",
        ),
        fires=f"> {thresholds.BLIND_SHARE}",
        hold="10m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $value | humanizePercentage }} of logged requests have no ids of their answer",
        description="A bleed in those answers is not found.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchTapBlind",
        value=_share("bleedwatch_tap_blind_total", "bleedwatch_tap_requests_total"),
        fires=f"> {thresholds.BLIND_SHARE}",
        hold="10m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="{{ $value | humanizePercentage }} of the requests pass taps unseen",
        description="They are served; a bleed among them is not found.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchRecallLost",
        value=rise("bleedwatch_evicted_sequences_total", "5m"),
        fires="> 0",
        hold="5m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="The window does not fit into memory",
        description="{{ $value | humanize }} sequences were given up inside the window in "
        "5 minutes.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchSpoolDrops",
        value=rise("bleedwatch_spool_dropped_total", "5m", by="instance"),
        fires="> 0",
        hold="0s",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="The sidecar {{ $labels.instance }} gives up what it could not send",
        description="The broker is away and the spool is full.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchUnreadable",
        value=rise("bleedwatch_dead_letters_total", "10m", by="reason"),
        fires="> 0",
        hold="0s",
        severity=Severity.LOW,
        owner="infrastructure",
        summary="Records cannot be read: {{ $labels.reason }}",
        description="They are in the dead-letter topic, with place and reason.",
        runbook="BleedwatchUnreadable",
    ),
    Alert(
        name="BleedwatchOutputFailing",
        value="max by (output) (bleedwatch_output_failing)",
        fires="> 0",
        hold="2m",
        severity=Severity.HIGH,
        owner="infrastructure",
        summary="Alerts do not arrive at {{ $labels.output }}",
        description="They wait in the outbox and are sent when it answers again.",
        runbook="BleedwatchOutputFailing",
    ),
    Alert(
        name="BleedwatchStoreAway",
        value=rise("bleedwatch_api_store_failures_total", "5m"),
        fires="> 0",
        hold="2m",
        severity=Severity.HIGH,
        owner="infrastructure",
        summary="The store of incidents cannot be used",
        description="Findings are made and wait; nobody is told of them.",
        runbook="BleedwatchStoreAway",
    ),
    Alert(
        name="BleedwatchKeyUnreadable",
        value="max(bleedwatch_key_file_unreadable)",
        fires="> 0",
        hold="5m",
        severity=Severity.MEDIUM,
        owner="infrastructure",
        summary="A key file cannot be read",
        description="The old keys stay in use: what comes under new ones is not judged.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchHeartbeatMissing",
        value=f"time() - max({ARRIVED})",
        fires=f"> {thresholds.HEARTBEAT_SECONDS}",
        hold="1m",
        severity=Severity.HIGH,
        owner="infrastructure",
        summary="No heartbeat has come through for {{ $value | humanizeDuration }}",
        description="A bleed would not be told either: the path from the sidecars to the api is "
        "broken.",
        runbook="BW902",
    ),
    Alert(
        name="BleedwatchHeartbeatLost",
        value=f"max by (sender) ({SENT}) - "
        f"(max by (sender) ({ARRIVED}) or 0 * max by (sender) ({SENT}))",
        fires=f"> {thresholds.HEARTBEAT_SECONDS}",
        hold="5m",
        severity=Severity.HIGH,
        owner="infrastructure",
        summary="The heartbeats of {{ $labels.sender }} do not arrive",
        description="The sidecar runs and sends; a bleed that it saw would not be told.",
        runbook="BW902",
    ),
    Alert(
        name="BleedwatchGone",
        value=f"({_WORKERS} or {_APIS} or {_SIDECARS})",
        fires="< 1",
        hold="5m",
        severity=Severity.HIGH,
        owner="infrastructure",
        summary="No {{ $labels.part }} is being scraped",
        description="Without one of them nobody is told of a bleed.",
        runbook="BleedwatchGone",
    ),
)

ALERTS: Final = (*CONTENT, *ENGINES, *MONITOR)

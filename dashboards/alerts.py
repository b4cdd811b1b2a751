"""The alerts, and the recording rules they and the boards share.

`owner` says who is woken: security where content may have gone to somebody else, infrastructure
where the monitor or an engine's memory needs hands. Both see the same board.
"""

from dataclasses import dataclass
from typing import Final, Literal

from dashboards import thresholds

RECORDING: Final = {
    "bleedwatch:overlap:ratio_rate5m": "sum(rate(bleedwatch_overlapping_shingles_total[5m])) / "
    "sum(rate(bleedwatch_response_shingles_total[5m]))",
    "bleedwatch:unexplained:ratio_rate5m": "sum(rate(bleedwatch_unexplained_shingles_total[5m])) / "
    "sum(rate(bleedwatch_response_shingles_total[5m]))",
    "bleedwatch:blind:ratio_rate5m": "sum(rate(bleedwatch_blind_sequences_total[5m])) / "
    "sum(rate(bleedwatch_sequences_total[5m]))",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert; `runbook` names its page, the alert itself where no rule is meant."""

    name: str
    expr: str
    hold: str
    severity: Literal["critical", "high", "medium", "low"]
    owner: Literal["security", "infrastructure"]
    summary: str
    description: str
    runbook: str


ALERTS: Final = (
    Alert(
        name="BleedwatchBleed",
        expr="sum by (rule) "
        '(increase(bleedwatch_findings_total{severity=~"high|critical"}[5m])) > 0',
        hold="0s",
        severity="critical",
        owner="security",
        summary="Content of one tenant is in a response to another, or is about to be: "
        "{{ $labels.rule }}",
        description="{{ $value }} findings of high severity in 5 minutes. Open the incident on the "
        "triage page.",
        runbook="BW001",
    ),
    Alert(
        name="BleedwatchOverlapRising",
        expr=f"bleedwatch:unexplained:ratio_rate5m > {thresholds.UNEXPLAINED_SHARE}",
        hold="5m",
        severity="high",
        owner="security",
        summary="Unexplained overlap between tenants is rising",
        description="{{ $value | humanizePercentage }} of the shingles of responses are those of "
        "other tenants, and nothing explains them.",
        runbook="BW001",
    ),
    Alert(
        name="BleedwatchUnreleasedMemory",
        expr="max by (engine, rank) (bleedwatch_engine_unreleased_tokens"
        f'{{quality="exact"}}) > {thresholds.UNRELEASED_TOKENS}',
        hold="1m",
        severity="medium",
        owner="infrastructure",
        summary="{{ $labels.engine }} holds KV memory that no request accounts for",
        description="{{ $value }} tokens with nothing running.",
        runbook="BW201",
    ),
    Alert(
        name="BleedwatchClearFailure",
        expr="max by (engine, rank) (increase(bleedwatch_engine_clear_failures_total[5m])) > 0",
        hold="0s",
        severity="high",
        owner="infrastructure",
        summary="{{ $labels.engine }} did not clear KV memory",
        description="What was not cleared can reach the next request.",
        runbook="BW202",
    ),
    Alert(
        name="BleedwatchMetadataMismatch",
        expr="max by (engine, rank) "
        "(increase(bleedwatch_engine_metadata_mismatches_total[5m])) > 0",
        hold="0s",
        severity="high",
        owner="security",
        summary="{{ $labels.engine }} saw KV memory of another request",
        description="The engine compared and refused this time; without checksums it does not.",
        runbook="BW203",
    ),
    Alert(
        name="BleedwatchPoolPressure",
        expr="max by (engine, rank) (bleedwatch_engine_pool_usage_ratio) "
        f"> {thresholds.POOL_USAGE}",
        hold="1m",
        severity="medium",
        owner="infrastructure",
        summary="{{ $labels.engine }} uses {{ $value | humanizePercentage }} of its KV pool",
        description="Requests are evicted and aborted, and that is where memory changes hands.",
        runbook="BW205",
    ),
    Alert(
        name="BleedwatchLate",
        expr=f"max(bleedwatch_lag_seconds) > {thresholds.LAG_SECONDS}",
        hold="2m",
        severity="medium",
        owner="infrastructure",
        summary="Findings are {{ $value | humanizeDuration }} late",
        description="A worker does not keep up with its input, or is not there.",
        runbook="BleedwatchLate",
    ),
    Alert(
        name="BleedwatchBlind",
        expr=f"bleedwatch:blind:ratio_rate5m > {thresholds.BLIND_SHARE}",
        hold="10m",
        severity="medium",
        owner="infrastructure",
        summary="{{ $value | humanizePercentage }} of the sequences cannot be judged",
        description="A bleed among them is not found.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchRecallLost",
        expr="sum(increase(bleedwatch_evicted_sequences_total[5m])) > 0",
        hold="5m",
        severity="medium",
        owner="infrastructure",
        summary="The window does not fit into memory",
        description="{{ $value }} sequences were given up inside the window in 5 minutes.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchSpoolDrops",
        expr="sum by (instance) (increase(bleedwatch_spool_dropped_total[5m])) > 0",
        hold="0s",
        severity="medium",
        owner="infrastructure",
        summary="The sidecar {{ $labels.instance }} gives up what it could not send",
        description="The broker is away and the spool is full.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchUnreadable",
        expr="sum by (reason) (increase(bleedwatch_dead_letters_total[10m])) > 0",
        hold="10m",
        severity="low",
        owner="infrastructure",
        summary="Records cannot be read: {{ $labels.reason }}",
        description="They are in the dead-letter topic, with place and reason.",
        runbook="BleedwatchUnreadable",
    ),
    Alert(
        name="BleedwatchEngineUnseen",
        expr='sum by (engine) (increase(bleedwatch_engine_scrapes_total{outcome="ok"}[5m])) == 0',
        hold="5m",
        severity="medium",
        owner="infrastructure",
        summary="{{ $labels.engine }} does not answer its sidecar",
        description="Nothing is known of its memory.",
        runbook="BleedwatchEngineUnseen",
    ),
    Alert(
        name="BleedwatchOutputFailing",
        expr="max by (output) (bleedwatch_output_failing) == 1",
        hold="2m",
        severity="high",
        owner="infrastructure",
        summary="Alerts do not arrive at {{ $labels.output }}",
        description="They wait in the outbox and are sent when it answers again.",
        runbook="BleedwatchOutputFailing",
    ),
    Alert(
        name="BleedwatchKeyUnreadable",
        expr="max(bleedwatch_key_file_unreadable) == 1",
        hold="5m",
        severity="medium",
        owner="infrastructure",
        summary="A key file cannot be read",
        description="The old keys stay in use: what comes under new ones is not judged.",
        runbook="BW901",
    ),
    Alert(
        name="BleedwatchGone",
        expr="absent(bleedwatch_build_info)",
        hold="5m",
        severity="high",
        owner="infrastructure",
        summary="No part of the monitor is being scraped",
        description="Nobody would be told of a bleed.",
        runbook="BW902",
    ),
)

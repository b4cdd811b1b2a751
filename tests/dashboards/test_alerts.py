"""Every alert fires at its threshold, after its hold, is silent just below, and resolves."""

import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dashboards import thresholds
from dashboards.alerts import ALERTS
from dashboards.build import HERE
from tests.dashboards.kit import RULES
from tests.services.packages import program

Input = Mapping[str, str]
"""Values of series in promtool's notation, one every 30 s."""

QUIET_MIN: Final = 5
"""Minutes before it begins; what is wrong then lasts for 20 and is over for good."""

JUST: Final = 1.01
"""How little above a threshold is above it."""


def level(bad: float, *, good: float = 0) -> str:
    """Return a gauge."""
    return f"{good:g}x10 {bad:g}x39 {good:g}x80"


def count(bad: int, *, good: int = 0) -> str:
    """Return a counter by how much it grows in 30 s."""
    before, after = 10 * good, 10 * good + 40 * bad
    return f"0+{good}x10 {before + bad}+{bad}x39 {after}+{good}x80"


BORN: Final = "_x11 1x120"
"""A counter that nobody has seen before its first count."""

ONCE: Final = "0x10 1x120"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Series at which an alert fires at a minute and has resolved at another, and just does not."""

    fires: Input
    below: Input
    at_min: int = 24
    over_min: int = 45


def _once(*series: str, below: str) -> Case:
    """Return the case of what is told at its first count, whether the series was there or not."""
    values = {name: BORN if number % 2 else ONCE for number, name in enumerate(series)}
    return Case(fires=values, below={below: BORN.replace("1", "0")}, at_min=7, over_min=20)


BEATS: Final = "0+30x10 300x39 1500+30x80"
"""When something was last heard of: nothing for 20 minutes."""

ENGINE: Final = 'engine="e",rank=""'
OK: Final = 'bleedwatch_engine_scrapes_total{engine="e",outcome="ok"}'
UNREACHABLE: Final = OK.replace("ok", "unreachable")
SHORTENED: Final = "bleedwatch_commonness_shortened_total"
SHINGLES: Final = "bleedwatch_response_shingles_total"
SCRAPED: Final = {
    'bleedwatch_api_requests_total{instance="a"}': "1x140",
    'bleedwatch_sidecar_lines_total{instance="s"}': "1x140",
}

CASES: Final = {
    "BleedwatchBleed": _once(
        'bleedwatch_findings_total{rule="BW001",severity="high",confidence="high"}',
        'bleedwatch_findings_total{rule="BW001",severity="critical",confidence="high"}',
        below='bleedwatch_findings_total{rule="BW001",severity="high",confidence="high"}',
    ),
    "BleedwatchOverlapRising": Case(
        fires={"bleedwatch_unexplained_shingles_total": count(11), SHINGLES: "0+10000x140"},
        below={"bleedwatch_unexplained_shingles_total": count(9), SHINGLES: "0+10000x140"},
    ),
    "BleedwatchUnreleasedMemory": Case(
        fires={
            f'bleedwatch_engine_unreleased_tokens{{{ENGINE},quality="exact"}}': level(
                thresholds.UNRELEASED_TOKENS + 1
            )
        },
        below={
            f'bleedwatch_engine_unreleased_tokens{{{ENGINE},quality="exact"}}': level(
                thresholds.UNRELEASED_TOKENS
            ),
            f'bleedwatch_engine_unreleased_tokens{{{ENGINE},quality="estimate"}}': level(10**6),
        },
    ),
    "BleedwatchClearFailure": _once(
        f'bleedwatch_engine_clear_failures_total{{{ENGINE},source="metrics"}}',
        f'bleedwatch_engine_clear_failures_total{{{ENGINE},source="log"}}',
        below=f'bleedwatch_engine_clear_failures_total{{{ENGINE},source="log"}}',
    ),
    "BleedwatchMetadataMismatch": _once(
        f'bleedwatch_engine_metadata_mismatches_total{{{ENGINE},source="metrics"}}',
        f'bleedwatch_engine_metadata_mismatches_total{{{ENGINE},source="log"}}',
        below=f'bleedwatch_engine_metadata_mismatches_total{{{ENGINE},source="log"}}',
    ),
    "BleedwatchPoolPressure": Case(
        fires={
            f"bleedwatch_engine_pool_usage_ratio{{{ENGINE}}}": level(thresholds.POOL_USAGE * JUST)
        },
        below={f"bleedwatch_engine_pool_usage_ratio{{{ENGINE}}}": level(thresholds.POOL_USAGE)},
    ),
    "BleedwatchEngineUnseen": Case(
        fires={OK: count(0, good=1), UNREACHABLE: count(1)},
        below={OK: "0+1x10 10x7 11x7 12x7 13x7 14x7 15+1x80", UNREACHABLE: count(1)},
    ),
    "BleedwatchProbeStale": Case(
        fires={'bleedwatch_engine_probe_stale{engine="e"}': level(1)},
        below={'bleedwatch_engine_probe_stale{engine="e"}': level(0)},
    ),
    "BleedwatchLate": Case(
        fires={'bleedwatch_lag_seconds{partition="0"}': level(thresholds.LAG_SECONDS * JUST)},
        below={'bleedwatch_lag_seconds{partition="0"}': level(thresholds.LAG_SECONDS)},
    ),
    "BleedwatchLearning": Case(
        fires={"bleedwatch_learning": level(1), SHORTENED: count(1)},
        below={"bleedwatch_learning": level(1), SHORTENED: count(0)},
    ),
    "BleedwatchBlind": Case(
        fires={
            'bleedwatch_blind_sequences_total{cause="no_tokens"}': count(11),
            "bleedwatch_sequences_total": "0+1000x140",
        },
        below={
            'bleedwatch_blind_sequences_total{cause="no_tokens"}': count(9),
            "bleedwatch_sequences_total": "0+1000x140",
        },
    ),
    "BleedwatchIncomplete": Case(
        fires={
            'bleedwatch_sidecar_incomplete_total{side="response",cause="truncated"}': count(11),
            "bleedwatch_sidecar_requests_total": "0+1000x140",
        },
        below={
            'bleedwatch_sidecar_incomplete_total{side="response",cause="truncated"}': count(9),
            'bleedwatch_sidecar_incomplete_total{side="prompt",cause="truncated"}': count(11),
            "bleedwatch_sidecar_requests_total": "0+1000x140",
        },
    ),
    "BleedwatchTapBlind": Case(
        fires={
            'bleedwatch_tap_blind_total{cause="memory"}': count(11),
            "bleedwatch_tap_requests_total": "0+1000x140",
        },
        below={
            'bleedwatch_tap_blind_total{cause="memory"}': count(9),
            "bleedwatch_tap_requests_total": "0+1000x140",
        },
    ),
    "BleedwatchRecallLost": Case(
        fires={"bleedwatch_evicted_sequences_total": count(1)},
        below={"bleedwatch_evicted_sequences_total": count(0)},
    ),
    "BleedwatchSpoolDrops": _once(
        'bleedwatch_spool_dropped_total{topic="a",instance="s"}',
        'bleedwatch_spool_dropped_total{topic="b",instance="s"}',
        below='bleedwatch_spool_dropped_total{topic="a",instance="s"}',
    ),
    "BleedwatchUnreadable": _once(
        'bleedwatch_dead_letters_total{reason="undecodable",instance="a"}',
        'bleedwatch_dead_letters_total{reason="undecodable",instance="b"}',
        below='bleedwatch_dead_letters_total{reason="undecodable"}',
    ),
    "BleedwatchOutputFailing": Case(
        fires={'bleedwatch_output_failing{output="pager"}': level(1)},
        below={'bleedwatch_output_failing{output="pager"}': level(0)},
    ),
    "BleedwatchStoreAway": Case(
        fires={"bleedwatch_api_store_failures_total": count(1)},
        below={"bleedwatch_api_store_failures_total": count(0)},
    ),
    "BleedwatchKeyUnreadable": Case(
        fires={"bleedwatch_key_file_unreadable": level(1)},
        below={"bleedwatch_key_file_unreadable": level(0)},
    ),
    "BleedwatchHeartbeatMissing": Case(
        fires={'bleedwatch_heartbeat_arrived_timestamp_seconds{sender="a"}': BEATS},
        below={
            'bleedwatch_heartbeat_arrived_timestamp_seconds{sender="a"}': BEATS,
            'bleedwatch_heartbeat_arrived_timestamp_seconds{sender="b"}': "0+30x140",
        },
    ),
    "BleedwatchHeartbeatLost": Case(
        fires={
            'bleedwatch_heartbeat_sent_timestamp_seconds{sender="c"}': "0+30x140",
            'bleedwatch_heartbeat_arrived_timestamp_seconds{sender="c"}': BEATS,
        },
        below={
            'bleedwatch_heartbeat_sent_timestamp_seconds{sender="c"}': BEATS,
            'bleedwatch_heartbeat_arrived_timestamp_seconds{sender="c"}': BEATS,
        },
    ),
    "BleedwatchGone": Case(
        fires={**SCRAPED, 'bleedwatch_assigned_partitions{instance="w"}': "2x10 _x39 2x80"},
        below={
            **SCRAPED,
            'bleedwatch_assigned_partitions{instance="w"}': "2x10 _x39 2x80",
            'bleedwatch_assigned_partitions{instance="v"}': "2x140",
        },
    ),
}

NEVER: Final = {
    "BleedwatchEngineUnseen": Case(
        fires={UNREACHABLE: "1+1x140"}, below={OK: "1+1x140"}, over_min=0
    )
}
"""An engine that has never answered has no count of answers."""


def _hold_min(name: str) -> int:
    (hold,) = [alert.hold for alert in ALERTS if alert.name == name]
    return int(hold.removesuffix("m")) if hold.endswith("m") else 0


def _asked(name: str, minute: float, *, fires: bool) -> dict[str, Any]:
    """Return what must be of an alert at a minute."""
    expr = f'count by (alertname) (ALERTS{{alertname="{name}",alertstate="firing"}})'
    number = 1
    samples = [{"labels": f'{{alertname="{name}"}}', "value": number}] if fires else []
    return {"expr": expr, "eval_time": f"{round(minute * 60)}s", "exp_samples": samples}


def _test(series: Input, asked: list[dict[str, Any]]) -> dict[str, Any]:
    given = [{"series": one, "values": values} for one, values in series.items()]
    return {"interval": "30s", "input_series": given, "promql_expr_test": asked}


def _fires(cases: Mapping[str, Case]) -> dict[str, Any]:
    """Return the test that alerts are silent until they have held, fire, and resolve."""
    asked = []
    for name, case in cases.items():
        if case.over_min:
            asked.append(_asked(name, QUIET_MIN + _hold_min(name), fires=False))
            asked.append(_asked(name, case.over_min, fires=False))
        asked.append(_asked(name, case.at_min, fires=True))
    return _test(_together(case.fires for case in cases.values()), asked)


def _silent(cases: Mapping[str, Case]) -> dict[str, Any]:
    """Return the test that alerts stay silent just below."""
    asked = [_asked(name, minute, fires=False) for name in cases for minute in range(1, 50, 2)]
    return _test(_together(case.below for case in cases.values()), asked)


def _together(inputs: Iterable[Input]) -> Input:
    every = [one for series in inputs for one in series.items()]
    assert len(dict(every)) == len(every), "two alerts need one series"
    return dict(every)


def promtool(folder: Path, tests: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    """Run tests of the committed rules."""
    path = folder / "test.yaml"
    document = {"rule_files": [str(one) for one in RULES], "evaluation_interval": "30s"}
    path.write_text(yaml.safe_dump({**document, "tests": tests}))
    command = [program("promtool", "prometheus"), "test", "rules", str(path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_every_alert_has_a_case() -> None:
    assert CASES.keys() == {alert.name for alert in ALERTS}


def test_alerts_fire_are_silent_below_and_resolve(tmp_path: Path) -> None:
    done = promtool(tmp_path, [_fires(CASES), _silent(CASES), _fires(NEVER), _silent(NEVER)])
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["BleedwatchLate", "BleedwatchBleed"])
def test_a_rule_that_does_not_fire_or_does_below_would_be_noticed(
    name: str, tmp_path: Path
) -> None:
    case = CASES[name]
    assert promtool(tmp_path, [_fires({name: replace(case, fires=case.below)})]).returncode == 1
    assert promtool(tmp_path, [_silent({name: replace(case, below=case.fires)})]).returncode == 1


def test_the_rules_are_well_formed() -> None:
    command = [program("promtool", "prometheus"), "check", "rules", *map(str, RULES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


EXAMPLE: Final = HERE / "alertmanager-example.yml"


def test_the_example_of_routes_is_well_formed() -> None:
    command = [program("amtool", "prometheus-alertmanager"), "check-config", str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rule", [alert.name for alert in ALERTS])
def test_an_alert_reaches_its_owner_and_a_bleed_both(rule: str) -> None:
    (labels,) = [
        one["labels"]
        for path in RULES
        for group in yaml.safe_load(path.read_text())["groups"]
        for one in group["rules"]
        if one.get("alert") == rule
    ]
    told = routed({"alertname": rule, **labels})
    owners = {receiver.removesuffix("-pager") for receiver in told}
    is_bleed = labels["bleedwatch_severity"] == "critical"
    assert owners == ({"security", "infrastructure"} if is_bleed else {labels["owner"]})
    assert any("pager" in one for one in told) == (labels["severity"] == "critical")


def test_an_incident_reaches_both() -> None:
    told = routed({"alertname": "BleedwatchIncident", "severity": "critical", "incident": "inc-1"})
    assert {"security-pager", "infrastructure-pager"} <= told


def routed(labels: Mapping[str, str]) -> set[str]:
    """Return the receivers of an alert in the example."""
    words = [f"{name}={value}" for name, value in labels.items()]
    command = [program("amtool", "prometheus-alertmanager"), "config", "routes", "test"]
    done = subprocess.run(
        [*command, f"--config.file={EXAMPLE}", *words],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    return set(done.stdout.strip().split(","))

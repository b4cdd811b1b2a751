"""Runs a scenario: simulates it, reads what it left behind, and sends that through the chain."""

import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final

from detector.config.load import load_settings
from detector.config.root import Settings
from detector.sample.language import Language, load_language
from detector.sample.traffic import Traffic, TrafficSettings, generate
from tests.fakes.cluster.recording import Recording
from tests.fakes.cluster.simulation import Simulation
from tests.fakes.cluster.traffic import Load
from tests.scenarios.catalog import Scenario
from tests.scenarios.chain import Seen, see, write_history
from tests.scenarios.inputs import Timed, inputs
from tests.unit.wire import SECRET

SEED: Final = 11

TRAFFIC: Final = TrafficSettings(engines=1, requests=400, duration_s=400.0, history_requests=800)
"""One request a second in one KV pool, by twelve tenants; a sample of the day before is known."""

SHORT: Final = TrafficSettings(engines=1, requests=160, duration_s=160.0, history_requests=400)
"""The same for less than three minutes."""

TENANT_RULES: Final = (
    {"kind": "field", "name": "tenant"},
    {"kind": "header", "name": "x-tenant-id"},
    {"kind": "field", "name": "user"},
    {"kind": "field", "name": "cache_salt", "pattern": "salt-(?P<tenant>.+)"},
    {"kind": "field", "name": "session_id"},
)
"""Last two: KV events name salts and sessions only, and here a session names its tenant."""


@cache
def language() -> Language:
    """Return the language of all runs; loaded once."""
    return load_language()


@cache
def traffic(settings: TrafficSettings = TRAFFIC) -> Traffic:
    """Return the traffic of all scenarios."""
    return generate(Random(SEED), language(), settings)


def settings_in(folder: Path) -> Settings:
    """Return the settings of a deployment whose logs name tenants in the usual places."""
    path = folder / "settings.json"
    path.write_text(json.dumps({"tenancy": {"rules": TENANT_RULES}}))
    return load_settings(str(path), environment={}).settings


def simulate(scenario: Scenario, folder: Path, load: Traffic) -> Recording:
    """Run the simulated deployment; its logs lie in `folder`."""
    topology = scenario.topology
    limit = topology.context_tokens if topology.kind == "vllm" else topology.prefill_tokens
    asked = Load(traffic=load, over_long=scenario.over_long, limit_tokens=limit)
    return Simulation(topology, asked, folder, seed=SEED).run()


def recorded(scenario: Scenario, folder: Path, load: Traffic) -> list[Timed]:
    """Simulate a scenario and return all that is handed over, to be changed or left out."""
    recording = simulate(scenario, folder, load)
    requests = recording.gateway if scenario.from_gateway else recording.requests
    return list(inputs(recording, settings_in(folder), SECRET, requests=requests))


def see_in(folder: Path, records: Iterable[Timed], load: Traffic) -> Seen:
    """Return what the program sees of records, knowing the day before."""
    history = folder / "history.jsonl"
    if not history.exists():
        write_history(history, load.history)
    return see(records, settings_in(folder), SECRET, history=history)


def run(scenario: Scenario, load: Traffic | None = None) -> Seen:
    """Return what the program sees of a scenario."""
    used = traffic() if load is None else load
    with TemporaryDirectory(prefix="scenario-") as name:
        folder = Path(name)
        recording = simulate(scenario, folder, used)
        requests = recording.gateway if scenario.from_gateway else recording.requests
        records = inputs(recording, settings_in(folder), SECRET, requests=requests)
        return see_in(folder, records, used)

"""The demo: made-up engine logs with planted bleeds, read and searched like any other logs."""

import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from detector.batches import Batches
from detector.config.root import Settings
from detector.model import Sequence
from detector.reading import OnProgress, Reading
from detector.sample.scenario import Scenario, demo_scenario
from detector.sample.traffic import SampleRequest
from detector.service import ReplayReport, deployment_table, learn, new_detector, run
from ingest.chat_template import ChatTemplate
from ingest.coverage import Coverage
from ingest.door import Door
from ingest.sources.base import RawRequest
from ingest.tenancy import Tenancy, TenancySettings


def run_demo(
    settings: Settings, *, on_progress: OnProgress | None = None, seed: int = 7
) -> ReplayReport:
    """Write the logs of a made-up cluster to a temporary folder, search them, and remove them.

    The secret is made for this run and never stored. Raises InputError when the standard library's
    sources, which the traffic is made of, are not installed.
    """
    step = on_progress or (lambda _share, _label: None)
    step(0.0, "making traffic")
    with tempfile.TemporaryDirectory(prefix="bleedwatch-demo-") as folder:
        scenario = demo_scenario(seed, Path(folder))
        date_logs(scenario)
        rules = TenancySettings.model_validate({"rules": scenario.tenant_rules})
        settings = settings.model_copy(update={"tenancy": rules, "key_file": None})
        table = deployment_table(settings)
        detector = new_detector(settings.detection, table)
        step(0.4, "learning")
        door = Door(table, Tenancy(rules), ChatTemplate(settings.template), Coverage())
        window, batches = settings.detection.window, Batches(settings.detection)
        learn(detector, _history(scenario, door), window=window, batches=batches)
        reading = Reading(settings, table)
        began = time.process_time()
        sequences = reading.sequences(
            [str(log.path) for log in scenario.logs], on_progress=on_progress
        )
        return run(detector, sequences, reading, window, batches=batches, began=began)


def date_logs(scenario: Scenario) -> None:
    """Date the files like their last line: vLLM writes no year, so the file's date tells it."""
    last = scenario.epoch_s + max(request.ts_end for request in scenario.requests)
    for log in scenario.logs:
        os.utime(log.path, (last, last))


def _history(scenario: Scenario, door: Door) -> Iterable[Sequence]:
    for request in scenario.history:
        yield from door.sequences(_raw(request, scenario.epoch_s))


def _raw(request: SampleRequest, epoch_s: float) -> RawRequest:
    return RawRequest(
        request_id=request.request_id,
        started_at_ms=int((epoch_s + request.ts) * 1000),
        ended_at_ms=int((epoch_s + request.ts_end) * 1000),
        prompt_ids=list(request.prompt_ids),
        response_ids=list(request.response_ids),
        engine=request.node,
        model=request.model,
        identity={"header:x-tenant-id": request.tenant},
    )

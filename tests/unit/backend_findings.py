"""The findings of one data set with each backend."""

from pathlib import Path

from detector.batches import Batches
from detector.config.root import Settings
from detector.evaluate import ARRIVAL_HOLD_MS
from detector.index.window import Sequencer
from detector.reading import Reading
from detector.service import deployment_table, detect, learn, new_detector
from detector.settings import BackendName

Told = list[tuple[str, str, int]]


def told_with(backend: BackendName, folder: Path, key_file: Path, *, sampling: str) -> Told:
    """Return (id, confidence, instant) of every finding in the planted traffic of a data set."""
    settings = Settings.model_validate(
        {
            "key_file": str(key_file),
            "detection": {"backend": backend, "index": {"sampling": sampling}},
        }
    )
    table = deployment_table(settings)
    batches = Batches(settings.detection)
    detector = new_detector(settings.detection, table)
    history = Reading(settings, table).sequences([str(folder / "history.jsonl.zst")])
    learn(detector, history, window=settings.detection.window, batches=batches)
    planted = Reading(settings, table).sequences([str(folder / "planted.jsonl.zst")])
    found = detect(detector, Sequencer(hold_ms=ARRIVAL_HOLD_MS), planted, batches=batches)
    return [(one.id, one.confidence.value, one.detected_at_ms) for one in found]

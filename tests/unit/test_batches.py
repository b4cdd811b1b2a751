"""Batches keep the order and lose nothing; findings do not depend on who makes the shingles."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from detector import batches as module
from detector.batches import Batches, Released
from detector.sample.dataset import write_dataset
from detector.sample.language import load_language
from detector.sample.traffic import TrafficSettings
from detector.settings import DetectionSettings, IndexSettings
from detector.sketch.shingle import low_complexity, shingle_keys
from ingest.key_file import new_secret
from tests.unit.backend_findings import told_with
from tests.unit.sequences import prompt, text

TRAFFIC = TrafficSettings(requests=1500, duration_s=1500.0, history_requests=1500)
"""As dense as the evaluation set."""

LENGTHS = (30, 5, 0, 70, 100, 400, 9, 10, 80)
RELEASED = [
    Released(prompt("a", f"{number}", number, text(number, length)), number)
    for number, length in enumerate(LENGTHS)
]


@pytest.mark.parametrize("sampling", ["every", "winnow"])
def test_batches_are_bounded_and_keep_the_order(
    sampling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH_TOKENS", 100)
    index = IndexSettings.model_validate({"sampling": sampling})
    batches = Batches(DetectionSettings(backend="numpy", index=index))
    asked = 0
    most = []

    def stream() -> Iterator[Released]:
        nonlocal asked
        for one in RELEASED:
            asked += 1
            yield one

    for number, (one, prepared) in enumerate(batches.prepare(stream())):
        most.append(asked)
        assert one is RELEASED[number]
        assert prepared is not None
        hashes = one.sequence.token_hashes
        np.testing.assert_array_equal(prepared.keys, shingle_keys(hashes))
        np.testing.assert_array_equal(prepared.masked, low_complexity(hashes, 6))
        assert (prepared.picked is None) == (sampling == "every")
    assert most == [4, 4, 4, 5, 6, 7, 9, 9, 9]


def test_nothing_is_held_back_for_numba() -> None:
    stream = iter(RELEASED)
    batches = Batches(DetectionSettings(backend="numba"))
    assert next(batches.prepare(stream)) == (RELEASED[0], None)
    assert next(stream) is RELEASED[1]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("generated")
    write_dataset(7, folder, language=load_language(), settings=TRAFFIC, per_length=6)
    new_secret(folder / "key")
    return folder


@pytest.mark.parametrize("sampling", ["every", "winnow"])
def test_the_same_findings_with_numba_and_numpy(generated: Path, sampling: str) -> None:
    ours = told_with("numba", generated, generated / "key", sampling=sampling)
    assert told_with("numpy", generated, generated / "key", sampling=sampling) == ours
    assert len(ours) > 50

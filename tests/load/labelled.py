"""Labelled traffic at many times its speed through Kafka and two workers, beside the evaluation.

Times are moved so that the last request ends now. The same findings must come out as when one
process replays it all; only what rests on what other pools have shown may come a moment too early.
"""

import io
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import msgspec
import zstandard

from detector.batches import Batches
from detector.evaluate import ARRIVAL_HOLD_MS
from detector.finding import Finding
from detector.index.window import Sequencer
from detector.model import Kind, Sequence
from detector.reading import Reading
from detector.service import deployment_secret, deployment_table, detect, learn, new_detector
from detector.streaming.commonness_load import CommonnessLoader
from ingest.broker import Message
from ingest.kafka_io import KafkaPublisher, KafkaReader
from ingest.schema_sequence import to_record
from tests.load.process import workers
from tests.load.stage import Stage, stage, stamp
from tests.load.watch import FindingWatch

SPEED: Final = 20
WORKERS: Final = 2

HOLD_MS: Final = 400 * SPEED
"""The hold is event time, what senders linger is not: it grows with the speed."""

GIVEN: Final = {"stream.hold_ms": str(HOLD_MS)}

SETTLE_SECONDS: Final = 5.0
"""How long workers get to hear of the history."""

WAIT_SECONDS: Final = 60.0
QUIET_SECONDS: Final = 8.0


def run(folder: Path, name: str, *, urgent: bool = False) -> list[dict[str, object]]:
    """Run `name` (planted or requests) of a data set through both; return a row per confidence."""
    with stage(GIVEN, urgent=urgent) as place:
        shift_s = _shift(folder / f"{name}.jsonl.zst")
        traffic = _moved(folder / f"{name}.jsonl.zst", place.folder, shift_s)
        history = _moved(folder / "history.jsonl.zst", place.folder, shift_s)
        sequences = _read(place, traffic)
        stamp(f"{len(sequences):,} sequences; replaying them in one process")
        expected = _replayed(place, sequences, _read(place, history))
        with workers(WORKERS, place.given, folder=place.folder):
            publisher = KafkaPublisher(place.settings.kafka)
            _load(place, publisher, history)
            time.sleep(SETTLE_SECONDS)
            reader = KafkaReader(place.settings.kafka)
            with FindingWatch(reader, place.topics.findings) as watch:
                stamp(f"sending at {SPEED} times its speed")
                _send(place, publisher, sequences)
                watch.await_quiet(QUIET_SECONDS, at_most=WAIT_SECONDS)
                stamp(f"{watch.messages} messages, {len(watch.findings)} findings by id")
            publisher.close()
    return _compared(expected, watch.findings)


def _shift(path: Path) -> int:
    """Return by how many seconds times must move so that the last request ends now."""
    last = max(float(line.get("ts_end", line["ts"])) for line in _lines(path))
    return int(time.time() - last)


def _moved(path: Path, folder: Path, shift_s: int) -> Path:
    """Write a log again with its times moved; return its path."""
    moved = folder / path.name.removesuffix(".zst")
    with moved.open("wb") as file:
        for line in _lines(path):
            for field in ("ts", "ts_end"):
                if field in line:
                    line[field] = float(line[field]) + shift_s
            file.write(msgspec.json.encode(line) + b"\n")
    return moved


def _lines(path: Path) -> Iterable[dict[str, Any]]:
    decoder = msgspec.json.Decoder(dict[str, Any])
    with zstandard.open(path, "rb") as file:
        for line in io.BufferedReader(file):
            yield decoder.decode(line)


def _read(place: Stage, path: Path) -> list[Sequence]:
    """Return the sequences of a log as a live stream brings them: each when it ends."""
    reading = Reading(place.settings, deployment_table(place.settings))
    sequences = list(reading.sequences([str(path)], log_format="jsonl"))
    return sorted(sequences, key=lambda one: (one.ended_at_ms, one.kind is Kind.RESPONSE))


def _replayed(
    place: Stage, sequences: list[Sequence], history: list[Sequence]
) -> dict[str, Finding]:
    """Return what the evaluation finds: one process, one memory."""
    settings = place.settings
    detector = new_detector(settings.detection, deployment_table(settings))
    batches = Batches(settings.detection)
    learn(detector, history, window=settings.detection.window, batches=batches)
    order = Sequencer(hold_ms=ARRIVAL_HOLD_MS)
    return {one.id: one for one in detect(detector, order, sequences, batches=batches)}


def _load(place: Stage, publisher: KafkaPublisher, history: Path) -> None:
    secret = deployment_secret(place.settings)
    ranges = place.settings.kafka.partitions
    loader = CommonnessLoader(
        place.settings, secret, publisher, ranges=ranges, writer=os.urandom(8)
    )
    loaded = loader.load([str(history)], log_format="jsonl")
    stamp(f"history: {loaded.requests:,} requests, {loaded.shingles:,} showings told")


def _send(place: Stage, publisher: KafkaPublisher, sequences: list[Sequence]) -> None:
    packer = place.packer()
    began, first_ms = time.monotonic(), sequences[0].ended_at_ms
    for sequence in sequences:
        due = began + (sequence.ended_at_ms - first_ms) / 1000 / SPEED
        while (wait := due - time.monotonic()) > 0:
            _publish(publisher, packer.due(time.monotonic()))
            time.sleep(min(wait, 0.02))
        _publish(publisher, packer.add(to_record(sequence), time.monotonic()))
    _publish(publisher, packer.drain())
    publisher.flush(WAIT_SECONDS)


def _publish(publisher: KafkaPublisher, messages: Iterable[Message]) -> None:
    for message in messages:
        publisher.send(message)


def _compared(
    expected: dict[str, Finding], streamed: dict[str, Finding]
) -> list[dict[str, object]]:
    """Return how many findings agree, by the confidence that each side gave them."""
    rows: list[dict[str, object]] = []
    known = set(expected) & set(streamed)
    for word in ("high", "medium", "low"):
        mine = {one.id for one in expected.values() if one.confidence.value == word}
        theirs = {one.id for one in streamed.values() if one.confidence.value == word}
        rows.append(
            {
                "confidence": word,
                "replay": len(mine),
                "stream": len(theirs),
                "both": len(mine & theirs),
                "only replay": len(mine - theirs),
                "only stream": len(theirs - mine),
                "of them with another confidence": len((mine ^ theirs) & known),
            }
        )
    return rows

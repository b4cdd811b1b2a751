"""Evaluation on labelled traffic: replays every variant of a data set and scores what was found.

The variants: clean, planted, one content bled again and again, no history (cold start), and 12
times the density. The detector never sees the truth; role spans come from the chat template.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from detector.batches import Batches
from detector.config.root import Settings
from detector.errors import InputError
from detector.evaluation.outcome import Bleed
from detector.evaluation.raw_match import raw_flagged
from detector.evaluation.score import Replayed, confidences, figures
from detector.index.window import Sequencer
from detector.model import Kind, Sequence
from detector.reading import OnProgress, Reading
from detector.service import deployment_table, detect, learn, new_detector, surest

ARRIVAL_HOLD_MS = 2_000
"""How long a live stream holds records back for order: each arrives when it ends, so the linger of
its sender is all that can put two of them out of order."""

DENSITY_FACTOR = 12
"""An hour of traffic in five minutes."""

FOLD_MS = 3_600_000 // DENSITY_FACTOR

_REQUESTS, _HISTORY, _PLANTED = "requests", "history", "planted"
_REPEAT = "planted_repeat_overlay"


def evaluate(
    directory: str, settings: Settings, *, on_progress: OnProgress | None = None
) -> dict[str, object]:
    """Return the figures of one data set, as docs/evaluation.md lists them.

    Needs the files requests, planted and truth; history and the repeat overlay are used when they
    are there. Raises InputError when a file is missing or holds no request.
    """
    if not (Path(directory) / f"{_REQUESTS}.jsonl.zst").exists():
        hint = "docs/evaluation.md lists the files; `make .demo/eval/manifest.json` makes a folder"
        raise InputError(f"holds no {_REQUESTS}.jsonl.zst", where=directory, hint=hint)
    return _Evaluation(Path(directory), settings, on_progress).figures()


class _Evaluation:
    def __init__(self, folder: Path, settings: Settings, on_progress: OnProgress | None) -> None:
        self._folder = folder
        self._settings = settings
        self._table = deployment_table(settings)
        self._batches = Batches(settings.detection)
        self._on_progress = on_progress

    def figures(self) -> dict[str, object]:
        began = time.process_time()
        clean = self._read(_REQUESTS)
        reading_seconds = time.process_time() - began
        history = self._read(_HISTORY) if self._has(_HISTORY) else []
        self._step(0.1, "clean traffic")
        quiet = self._replay(clean, history)
        self._step(0.3, "planted bleeds")
        planted = self._replay(self._read(_PLANTED), history)
        self._step(0.5, "repeated bleed")
        repeat = self._repeat(clean, history)
        self._step(0.7, "variants")
        variants = {
            "no_history": self._replay(clean, []),
            "density_x12_compressed": self._replay(_compressed(clean), history),
            "density_x12_folded": self._replay(_folded(clean), history),
        }
        result = figures(
            clean=quiet,
            planted=planted,
            truth=self._truth("truth.jsonl"),
            repeat=repeat,
            repeat_truth=self._truth("truth_repeat.jsonl") if repeat else (),
            raw_10gram_flagged=raw_flagged(clean),
            reading_seconds=reading_seconds,
        )
        result["clean_variants"] = [
            {"variant": name, **confidences(replayed.findings)}
            for name, replayed in {"with_history": quiet, **variants}.items()
        ]
        self._step(1.0, "done")
        return result

    def _replay(self, sequences: list[Sequence], history: list[Sequence]) -> Replayed:
        """Replay sequences in the order of a live stream: each arrives when it ends."""
        detector = new_detector(self._settings.detection, self._table)
        window = self._settings.detection.window
        learn(detector, history, window=window, batches=self._batches)
        arriving = sorted(sequences, key=lambda one: (one.ended_at_ms, one.kind is Kind.RESPONSE))
        began = time.process_time()
        sequencer = Sequencer(hold_ms=ARRIVAL_HOLD_MS)
        found = list(detect(detector, sequencer, arriving, batches=self._batches))
        return Replayed(
            findings=surest(found),
            requests=len({(one.tenant, one.request_id, one.started_at_ms) for one in sequences}),
            responses=detector.stats.responses,
            tokens=detector.stats.tokens,
            seconds=time.process_time() - began,
            explained=dict(detector.explained),
        )

    def _repeat(self, clean: list[Sequence], history: list[Sequence]) -> Replayed | None:
        if not self._has(_REPEAT):
            return None
        changed = self._read(_REPEAT)
        names = {sequence.request_id for sequence in changed}
        kept = [sequence for sequence in clean if sequence.request_id not in names]
        return self._replay(kept + changed, history)

    def _read(self, name: str) -> list[Sequence]:
        path = str(self._folder / f"{name}.jsonl.zst")
        reading = Reading(self._settings, self._table)
        sequences = list(reading.sequences([path], log_format="jsonl"))
        if not sequences:
            raise InputError("holds no request", where=path)
        return sequences

    def _has(self, name: str) -> bool:
        return (self._folder / f"{name}.jsonl.zst").exists()

    def _truth(self, name: str) -> list[Bleed]:
        path = self._folder / name
        try:
            return msgspec.json.Decoder(Bleed).decode_lines(path.read_bytes())
        except (OSError, msgspec.DecodeError, RecursionError):
            raise InputError(
                "is no readable truth file", where=str(path), hint="see docs/evaluation.md"
            ) from None

    def _step(self, share: float, label: str) -> None:
        if self._on_progress is not None:
            self._on_progress(share, label)


def _compressed(sequences: list[Sequence]) -> list[Sequence]:
    """Return the traffic with starts 12 times as dense; responses keep their duration."""
    return _moved(sequences, lambda start: start // DENSITY_FACTOR)


def _folded(sequences: list[Sequence]) -> list[Sequence]:
    """Return the traffic with every five minutes of the hour laid over one another."""
    return _moved(sequences, lambda start: start % FOLD_MS)


def _moved(sequences: Iterable[Sequence], move: Callable[[int], int]) -> list[Sequence]:
    moved = []
    for sequence in sequences:
        start = move(sequence.started_at_ms)
        duration = sequence.ended_at_ms - sequence.started_at_ms
        moved.append(
            msgspec.structs.replace(sequence, started_at_ms=start, ended_at_ms=start + duration)
        )
    return moved

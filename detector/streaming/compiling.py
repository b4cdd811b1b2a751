"""Everything that a worker judges with is compiled before it is ready: no bleed waits for it."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from detector.config.root import Settings
from detector.index.shared_memory import SharedMemory
from detector.match.response_sketches import ResponseSketches
from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId
from detector.pipeline import Detector
from detector.sketch.tag_keys import TagKeys
from detector.streaming.sharing import compile_kernels as compile_sharing

UNTIL_TABLES_GROW: Final = 400
"""Responses: the bands of copies grow with the 257th, the index with 9,600 shingles."""


def compile_kernels(settings: Settings, tag_keys: TagKeys) -> None:
    """Judge made-up requests: compiling holds the interpreter, and heartbeats would wait."""
    compile_sharing(settings.detection.commonness, tag_keys)
    memory = SharedMemory(settings.detection.commonness, tag_keys)
    sketches = ResponseSketches(settings.detection.copies, tag_keys)
    detector = Detector(settings.detection, memory=memory, sketches=sketches)
    tokens = settings.detection.copies.min_bigrams + 2
    for sequence in _made_up(tokens):
        detector.observe(sequence)


def _made_up(tokens: int) -> Iterator[Sequence]:
    """Yield responses, so many that tables grow; a prompt and one of them are bled, and then both.

    Their tokens cannot be written to, as those of records: for arrays of another kind everything
    would be compiled once more, while a bleed waits.
    """
    bled = ((0,), (0,), (1,), (1,), (0, 1))
    others = ((text,) for text in range(2, UNTIL_TABLES_GROW))
    for number, texts in enumerate((*bled, *others)):
        shown = np.concatenate(
            [np.arange(tokens, dtype=np.uint32) + text * tokens for text in texts]
        )
        shown.flags.writeable = False
        yield Sequence(
            tenant=TenantId(f"tenant-{number}"),
            request_id=RequestId(f"request-{number}"),
            kv_pool=PoolId("p"),
            engine=EngineId("e"),
            model="",
            kind=Kind.RESPONSE if number else Kind.PROMPT,
            started_at_ms=number + 1,
            ended_at_ms=number + 2,
            token_hashes=shown,
        )

"""Hostile messages on the input topics: each is accounted for, none raises, none costs much.

Seeded, so a failure repeats. BLEEDWATCH_FUZZ_SEED picks another seed, BLEEDWATCH_TEST_FUZZ_INPUTS
how many messages are tried.
"""

import os
import random
import resource
import time
from collections import Counter
from typing import Any

import msgspec

from ingest.broker import BrokerRecord
from ingest.dead_letter import OTHER, DeadLetter, dead_letters
from ingest.envelope import Unpacked, unpack
from ingest.opening import open_records, open_sequences
from ingest.record_headers import event_times
from ingest.schema import check, decode
from ingest.schema_records import EngineEvent, Record, RequestRow, RuntimeSample, SequenceRecord
from tests.fuzz.hostile import CANARY, SEQUENCES, bent_record, message
from tests.unit.wire import RING

SEED = int(os.environ.get("BLEEDWATCH_FUZZ_SEED", "20261129"))
INPUTS = int(os.environ.get("BLEEDWATCH_TEST_FUZZ_INPUTS", "6000"))

SLOWEST_S = 0.25
"""CPU time of one message at most. An honest batch of 1 MB takes some 10 ms."""

MOST_MEMORY_KB = 100_000
"""What the peak of the process may grow by over all messages."""


def opened(kind: type[Record], source: BrokerRecord) -> Unpacked[Any]:
    """Open a message as on the topic of this kind of record."""
    if kind is RuntimeSample:
        return open_records(RuntimeSample, source)
    if kind is EngineEvent:
        return open_records(EngineEvent, source)
    return open_records(RequestRow, source) if kind is RequestRow else open_sequences(source, RING)


def account(source: BrokerRecord, given: Unpacked[Any]) -> Counter[str]:
    """Check that good records keep their bounds and the others are told, and told safely."""
    for record in given.records:
        check(record)
    assert given.records or given.rejected
    assert bool(given.rejected) == (given.lost != 0)
    assert CANARY not in "".join(map(str, given.rejected))
    letters = dead_letters(source, given, topic="dead-letter", at_ms=0)
    told = [decode(DeadLetter, letter.value or b"") for letter in letters]
    assert not any(CANARY in repr(letter) for letter in letters)
    if given.lost is not None:
        assert sum(letter.records_lost or 0 for letter in told) == given.lost
    return Counter(letter.reason for letter in told)


def test_every_hostile_message_is_accounted_for() -> None:
    random_ = random.Random(SEED)
    reasons: Counter[str] = Counter()
    slowest, good = 0.0, 0
    for _ in range(500):  # what is allocated once
        opened(*message(random_))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(INPUTS):
        kind, source = message(random_)
        event_times(source.headers)
        start = time.process_time()
        given = opened(kind, source)
        slowest = max(slowest, time.process_time() - start)
        reasons += account(source, given)
        good += bool(given.records)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert slowest < SLOWEST_S
    assert grown < MOST_MEMORY_KB
    assert good > INPUTS // 100  # some damage does not matter, so valid paths are tried as well
    assert OTHER not in reasons
    assert set(reasons) >= {
        *("undecodable", "wrong_type", "schema_version", "too_deep", "content_type", "seal_broken"),
        *("unknown_key", "frame_range", "frame_broken", "offset_range", "not_sealed"),
    }


def fields(one: SequenceRecord) -> dict[str, Any]:
    return msgspec.structs.asdict(one) | {"key_id": RING.key_id}


def test_the_neighbours_of_a_hostile_record_are_untouched() -> None:
    random_ = random.Random(SEED)
    refused = 0
    for _ in range(max(500, INPUTS // 10)):
        at, data = bent_record(random_)
        given = unpack(data, RING)
        assert len(given.records) + len(given.rejected) == len(SEQUENCES)
        kept = [fields(one) for one in given.records]
        del kept[at : at + len(given.records) - 4]
        assert kept == [fields(one) for place, one in enumerate(SEQUENCES) if place != at]
        refused += len(given.rejected)
    assert refused > INPUTS // 20

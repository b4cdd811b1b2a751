"""What a sidecar has sent, and what a replay of the same log says: they must be the same."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from detector.config.root import Settings
from detector.reading import Reading
from detector.sketch.token_table import Secret, TokenTable
from ingest.broker import BrokerRecord
from ingest.opening import open_sequences
from ingest.schema_records import SequenceRecord
from ingest.sealing import KeyRing

Told = tuple[str, str, str, int, bytes]
"""Tenant, request, kind, part and hashes: what a sequence says."""


def told(record: SequenceRecord) -> Told:
    """Return what a sequence says."""
    return record.tenant, record.request_id, str(record.kind), record.part, record.token_hashes


def opened(messages: Iterable[BrokerRecord], secret: Secret) -> Iterator[SequenceRecord]:
    """Yield the sequences of messages; every one must be whole."""
    ring = KeyRing.of(secret)
    for message in messages:
        unpacked = open_sequences(message, ring)
        assert not unpacked.rejected
        yield from unpacked.records


def replayed(path: Path, settings: Settings, secret: Secret) -> Counter[Told]:
    """Return what a replay of a whole log says, with how often."""
    keys = secret.keys()
    reading = Reading(settings, TokenTable(keys.hash_key, key_id=keys.key_id))
    return Counter(
        (
            str(one.tenant),
            str(one.request_id),
            str(one.kind),
            one.part,
            one.token_hashes.astype("<u4").tobytes(),
        )
        for one in reading.sequences(
            [str(path)], log_format=settings.sidecar.format, engine="engine-0"
        )
    )

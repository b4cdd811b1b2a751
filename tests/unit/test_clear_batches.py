"""A batch of records in the clear holds some, not too many, and of one pool."""

import msgspec
import pytest

from detector.errors import RecordError
from ingest.record_batches import clear_entry, pack_clear, pack_clear_entries
from ingest.schema_batches import MAX_BATCH_RECORDS
from ingest.schema_records import RuntimeSample
from tests.unit.runtime_records import sample


def refused(records: list[RuntimeSample]) -> str:
    with pytest.raises(RecordError) as raised:
        pack_clear(records)
    return raised.value.reason


def test_the_largest_batch_is_packed_and_one_more_is_refused() -> None:
    records = [sample(1)] * MAX_BATCH_RECORDS
    assert len(msgspec.msgpack.decode(pack_clear(records))["records"]) == MAX_BATCH_RECORDS
    assert refused([*records, sample(1)]) == "batch_size"


def test_nothing_is_no_batch() -> None:
    assert refused([]) == "batch_size"
    with pytest.raises(RecordError) as raised:
        pack_clear_entries(RuntimeSample, [])
    assert raised.value.reason == "batch_size"


def test_two_pools_are_two_batches() -> None:
    here = sample(1)
    there = msgspec.structs.replace(here, kv_pool=f"not {here.kv_pool}")
    assert refused([here, there]) == "two_pools"
    entries = [clear_entry(one) for one in (here, there)]
    assert {one.kv_pool for one in entries} == {here.kv_pool, there.kv_pool}

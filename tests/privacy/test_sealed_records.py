"""Whoever reads the topics without the secret finds no token hash, shingle or key in any encoding.

The same look at the messages of a build that does not seal finds them, whatever their form is.
"""

from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import pytest

from detector.model import Hashes, Kind
from detector.sketch.shingle import shingle_keys
from detector.sketch.token_table import Secret, TokenTable
from ingest.broker import BrokerRecord, Message
from ingest.compression import decompress
from ingest.dead_letter import dead_letters
from ingest.envelope import Entry
from ingest.opening import open_sequences
from ingest.packing import Packer
from ingest.packing_forms import ClearForm, SealedForm
from ingest.packing_settings import PackingSettings
from ingest.request_rows import RequestRows
from ingest.schema_batches import Frame
from ingest.schema_records import RequestRow, SequenceRecord
from ingest.sealing import KeyRing, Sealed
from tests.privacy.canary import IDS
from tests.privacy.sweep import Secrets, Sweep

SECRET = Secret(bytes(range(7, 39)))
KEYS = SECRET.keys()
HASHES = TokenTable(KEYS.hash_key).hash(IDS)
SHINGLES = shingle_keys(HASHES).view(np.uint64)

SWEEP = Sweep(
    Secrets(
        ids=(IDS,),
        hashes=(HASHES.tolist(),),
        keys=(bytes(range(7, 39)), KEYS.hash_key, KEYS.seal_key, KEYS.tag_key),
    )
)
SHINGLE_SWEEP = Sweep(Secrets(hashes=(SHINGLES.tolist(),)))


def records() -> Iterator[SequenceRecord]:
    for number, tenant in enumerate(["acme", "globex", "acme"]):
        for kind in Kind:
            yield SequenceRecord(
                tenant=tenant, request_id=f"r-{number}", kv_pool="p", engine="e", model="m",
                kind=kind, started_at_ms=number, ended_at_ms=number,
                token_hashes=HASHES.astype("<u4").tobytes(), token_count=len(HASHES),
                key_id=KEYS.key_id,
            )  # fmt: skip


def messages(ring: KeyRing) -> list[Message]:
    """Return what goes to the topics: sequences, rows, and the dead letters of a broken batch."""
    sequences = Packer("sequences", SealedForm(lambda: ring), PackingSettings())
    rows = Packer("requests", ClearForm(RequestRow), PackingSettings())
    made = RequestRows(keep_ms=1)
    for record in records():
        assert not sequences.add(record, 0)
        for row in made.add(record):
            rows.add(row, 0)
    sealed, told = sequences.drain(), rows.drain()
    broken = bytearray(sealed[0].value or b"")
    broken[-1] ^= 1
    source = BrokerRecord("sequences", 0, 0, b"p", bytes(broken), sealed[0].headers, 0)
    refused = open_sequences(source, KeyRing(KEYS))
    letters = dead_letters(source, refused, topic="dead-letter", at_ms=0)
    assert len(sealed) == len(told) == len(letters) == 1
    return [*sealed, *told, *letters]


def found_in(sent: list[Message]) -> set[str]:
    found = set()
    for message in sent:
        for part in (message.value, message.key, *(value for _, value in message.headers)):
            found |= SWEEP.bytes(part or b"")
            found |= {f"{one} of shingles" for one in SHINGLE_SWEEP.bytes(part or b"")}
    return found


def test_a_reader_of_the_topics_finds_nothing() -> None:
    assert found_in(messages(KeyRing(KEYS))) == set()


FORMS: dict[str, Callable[[Hashes], bytes]] = {
    "<u32": lambda hashes: hashes.astype("<u4").tobytes(),
    ">u32": lambda hashes: hashes.astype(">u4").tobytes(),
    "<u64": lambda hashes: hashes.astype("<u8").tobytes(),
    ">u64": lambda hashes: hashes.astype(">u8").tobytes(),
    "decimals": lambda hashes: msgspec.json.encode(hashes.tolist()),
    "msgpack": lambda hashes: msgspec.msgpack.encode(hashes.tolist()),
}


class OpenRing(KeyRing):
    """A ring that seals nothing and writes the hashes as they are, or as another number form."""

    def __init__(self, form: Callable[[Hashes], bytes] | None = None) -> None:
        super().__init__(KEYS)
        self._form = form

    def seal(self, key_id: str, plain: bytes, associated: bytes) -> Sealed:
        if self._form is not None:
            sizes = self._frames(plain)
            hashes = np.frombuffer(decompress(plain, sizes), "<u4")
            plain = self._form(hashes.astype(np.uint32))
        return super().seal(key_id, b"", associated)._replace(data=plain)

    @staticmethod
    def _frames(plain: bytes) -> list[Frame]:
        """Two tenants, one with two requests of two sides, the other with one."""
        second = plain.index(b"\x28\xb5\x2f\xfd", 4)
        return [Frame(second, 4 * len(IDS)), Frame(len(plain) - second, 2 * len(IDS))]


def test_with_sealing_switched_off_it_finds_the_hashes() -> None:
    assert found_in(messages(OpenRing())) == {"hashes as <u32"}


@pytest.mark.parametrize("form", FORMS)
def test_with_sealing_switched_off_it_finds_them_in_every_form(form: str) -> None:
    assert f"hashes as {form}" in found_in(messages(OpenRing(FORMS[form])))


@pytest.mark.parametrize("form", ["<u64", ">u64", "decimals", "msgpack"])
def test_with_sealing_switched_off_it_finds_shingles(form: str) -> None:
    def shingles(_: Hashes) -> bytes:
        numbers = SHINGLES.astype({"<u64": "<u8", ">u64": ">u8"}.get(form, "u8"))
        return numbers.tobytes() if form.endswith("u64") else FORMS[form](numbers)

    assert f"hashes as {form} of shingles" in found_in(messages(OpenRing(shingles)))


def test_hashes_that_stay_in_the_index_are_found() -> None:
    class ForgetfulForm(SealedForm):
        def entry(self, record: SequenceRecord) -> Entry:
            return super().entry(record)._replace(encoded=msgspec.msgpack.encode(record))

    packer = Packer("sequences", ForgetfulForm(lambda: KeyRing(KEYS)), PackingSettings())
    for record in records():
        packer.add(record, 0)
    assert found_in(packer.drain()) == {"hashes as <u32"}

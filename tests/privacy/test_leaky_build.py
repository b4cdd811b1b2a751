"""A build that does not hash is caught by the same sweep, whatever it writes its sequences as."""

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import zstandard

from detector import service
from detector.config.root import Settings
from detector.model import Hashes, Sequence
from detector.sketch.token_table import TokenTable, checked_ids
from tests.privacy.sandbox import Sandbox


class LeakyTable(TokenTable):
    """A token table that gives every id back as it is."""

    def hash(self, ids: Any) -> Hashes:
        return checked_ids(ids).astype(np.uint32)


FORMS: dict[str, Callable[[Hashes], bytes]] = {
    "decimals": lambda ids: json.dumps(ids.tolist()).encode(),
    "msgpack": lambda ids: msgspec.msgpack.encode(ids.tolist()),
    "<u16": lambda ids: ids.astype("<u2").tobytes(),
    ">u16": lambda ids: ids.astype(">u2").tobytes(),
    "<u32": lambda ids: ids.astype("<u4").tobytes(),
    ">u32": lambda ids: ids.astype(">u4").tobytes(),
    "<u64": lambda ids: ids.astype("<u8").tobytes(),
    ">u64": lambda ids: ids.astype(">u8").tobytes(),
}

PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "zstd": zstandard.compress,
    "gzip": gzip.compress,
}

SETTINGS_RULES = {"tenancy": {"rules": [{"kind": "field", "name": "tenant"}]}}


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def replay_and_write(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, write: Callable[[Hashes], bytes]
) -> int:
    """Replay with an output that writes what the detector gets; return the number of findings."""
    real = service.detect
    out = box.work / "sequences.bin"

    def writing(sequences: Iterable[Sequence]) -> Iterator[Sequence]:
        with out.open("wb") as file:
            for sequence in sequences:
                file.write(write(sequence.token_hashes) + b"\n")
                yield sequence

    monkeypatch.setattr(
        service, "detect", lambda a, b, read, batches: real(a, b, writing(read), batches=batches)
    )
    settings = Settings.model_validate({**SETTINGS_RULES, "key_file": str(box.key)})
    report = service.replay([str(box.jsonl)], settings)
    (box.work / "findings.json").write_bytes(msgspec.json.encode(report.findings))
    return len(report.findings)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("form", FORMS)
def test_raw_ids_are_found_when_hashing_is_off(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, form: str, packing: str
) -> None:
    monkeypatch.setattr(service, "deployment_table", lambda _: LeakyTable(bytes(32)))
    found = replay_and_write(box, monkeypatch, lambda ids: PACKINGS[packing](FORMS[form](ids)))
    assert found > 0
    swept = box.sweep()
    assert list(swept) == [str(box.work / "sequences.bin")]
    assert f"ids as {form}" in swept[str(box.work / "sequences.bin")]


@pytest.mark.parametrize("form", FORMS)
def test_with_hashing_the_same_output_holds_hashes_and_no_ids(
    box: Sandbox, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    assert replay_and_write(box, monkeypatch, FORMS[form]) > 0
    finds = box.sweep().get(str(box.work / "sequences.bin"), set())
    assert not [find for find in finds if find.startswith(("ids", "text", "keys"))]
    if "16" not in form:  # a hash does not fit into 16 bits
        assert f"hashes as {form}" in finds

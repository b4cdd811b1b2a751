"""Digests of findings: keyed, the same in every memory, and enough to allow what was found."""

import gzip
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest

from detector.errors import InputError
from detector.finding import MOST_DIGESTS, Digests, Finding
from detector.index.memory import Memory
from detector.index.shared_memory import SharedMemory
from detector.kernels.siphash import tagger
from detector.match.allow_list import AllowList
from detector.match.digests import Digester
from detector.model import Sequence
from detector.sketch.shingle import Keys, shingle_keys
from detector.sketch.siphash import tags
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Secret, TokenTable
from detector.verifying import Stretch, verify
from ingest.allow_list import load_allow_lists
from tests.unit.sequences import SETTINGS, detector, found, join, prompt, response, text

KEYS = Secret(bytes(range(32))).keys()
OTHER = Secret(bytes(range(1, 33))).keys()
DIGESTER = Digester(KEYS.tag_key, key_id=KEYS.key_id)
IDS = list(range(5_000, 5_040))
TABLE = TokenTable(KEYS.hash_key, key_id=KEYS.key_id)
PRIVATE = TABLE.hash(np.array(IDS))


def bleed(key_id: str = KEYS.key_id, length: int = 40) -> list[Sequence]:
    secret = PRIVATE if length == len(IDS) else text(9, length)
    return [
        prompt("a", "1", 0, join(text(1, 20), secret), key_id=key_id),
        response("b", "2", 5, join(text(2, 15), secret, text(3, 15)), key_id=key_id),
    ]


def told(traffic: list[Sequence], *, memory: Memory | None = None) -> Finding:
    by = detector(memory=memory, digester=DIGESTER)
    (one,) = found(traffic, by=by)
    return one


def of(finding: Finding) -> set[int]:
    assert finding.digests is not None
    return set(np.frombuffer(finding.digests.shingles, "<i8").tolist())


def expected(keys: Keys) -> set[int]:
    return set(tags(TagKeys(KEYS.tag_key).shingles, keys).tolist())


def test_a_finding_has_the_digest_of_every_shingle_that_nothing_explains() -> None:
    finding = told(bleed())
    assert finding.digests is not None
    assert finding.digests.key == KEYS.key_id
    assert of(finding) == expected(shingle_keys(PRIVATE))


def test_a_memory_that_workers_share_makes_the_same_digests() -> None:
    shared = SharedMemory(SETTINGS.commonness, TagKeys(KEYS.tag_key))
    assert of(told(bleed(), memory=shared)) == of(told(bleed()))


def test_compiled_digests_are_the_same() -> None:
    compiled = Digester(KEYS.tag_key, key_id=KEYS.key_id, tagger=tagger)
    keys = shingle_keys(PRIVATE)
    assert compiled.tags(keys).tolist() == DIGESTER.tags(keys).tolist()


def test_no_digest_is_a_shingle_itself() -> None:
    assert not of(told(bleed())) & set(shingle_keys(PRIVATE).tolist())


def test_what_is_hashed_under_another_key_than_the_digests_has_none() -> None:
    assert told(bleed(key_id="elsewhere")).digests is None


def test_without_a_key_that_is_kept_there_are_none() -> None:
    (finding,) = found(bleed(), by=detector())
    assert finding.digests is None


def test_what_is_kept_of_a_long_copy_is_bounded() -> None:
    assert len(of(told(bleed(length=MOST_DIGESTS + 200)))) == MOST_DIGESTS


@pytest.mark.parametrize("is_shared", [False, True])
def test_an_allow_list_of_digests_allows_what_was_judged_and_nothing_else(is_shared: bool) -> None:
    def memory() -> Memory | None:
        return SharedMemory(SETTINGS.commonness, TagKeys(KEYS.tag_key)) if is_shared else None

    listed = np.array(sorted(of(told(bleed()))))
    allowed = AllowList(digests=listed, digester=DIGESTER)
    assert not found(bleed(), by=detector(memory=memory(), allowed=allowed))
    another = [prompt("a", "3", 0, text(5, 40)), response("b", "4", 5, text(5, 40))]
    assert len(found(another, by=detector(memory=memory(), allowed=allowed))) == 1


def lists(folder: Path, content: str) -> AllowList:
    path = folder / "list.jsonl"
    path.write_text(content)
    return load_allow_lists([str(path)], TABLE, DIGESTER)


def line(key: str = KEYS.key_id, shingles: bytes = bytes(8)) -> str:
    return msgspec.json.encode({"key": key, "shingles": shingles, "finding": "f"}).decode() + "\n"


def test_a_file_may_hold_both_forms(tmp_path: Path) -> None:
    judged = told(bleed()).digests
    assert judged is not None
    allowed = lists(tmp_path, line(shingles=judged.shingles) + '\n{"ids": [1,2,3,4,5,6,7,8,9,10]}')
    assert len(allowed) == len(IDS) - 9 + 1
    assert allowed.holds(shingle_keys(PRIVATE)).all()
    assert allowed.holds(shingle_keys(TABLE.hash(np.arange(1, 11)))).all()


def test_entries_of_another_key_allow_nothing_and_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert len(lists(tmp_path, line(OTHER.key_id) + line(OTHER.key_id))) == 0
    assert "2 entries are hashed under another key" in caplog.text


@pytest.mark.parametrize(
    "content",
    [
        '{"key": "k"}',
        '{"key": "k", "shingles": "AAAA"}',
        '{"key": "k", "shingles": ""}',
        '{"key": "k", "shingles": "no base64"}',
        '{"shingles": "AAAAAAAAAAA="}',
        '{"ids": [1], "key": "k"}',
        '{"ids": "canary"}',
        "[]",
        "canary",
    ],
)
def test_an_entry_of_neither_form_is_refused_with_its_line(tmp_path: Path, content: str) -> None:
    with pytest.raises(InputError, match="neither a list") as error:
        lists(tmp_path, f"\n{content}\n")
    assert "list.jsonl:2" in str(error.value)
    assert "canary" not in str(error.value)


def _halved(whole: bytes) -> bytes:
    return whole[: len(whole) // 2]


def _damaged(whole: bytes) -> bytes:
    return whole[:-8] + bytes(8)


@pytest.mark.parametrize("spoil", [_halved, _damaged])
def test_half_a_list_is_not_used(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    rows = [f'{{"ids": {list(range(at, at + 12))}}}\n' for at in range(5_000)]
    path = tmp_path / "list.jsonl.gz"
    path.write_bytes(gzip.compress("".join(rows).encode()))
    assert len(load_allow_lists([str(path)], TABLE)) > 5_000
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(InputError, match="to its end"):
        load_allow_lists([str(path)], TABLE)


def test_hashed_entries_need_a_key(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl"
    path.write_text(line())
    with pytest.raises(InputError, match="this run has no key"):
        load_allow_lists([str(path)], TABLE)


def test_the_owner_of_a_text_finds_out_where_in_it_the_finding_rests() -> None:
    digests = told(bleed()).digests
    assert digests is not None
    mine = [*range(100, 130), *IDS, *range(200, 230)]
    found_in = verify(mine, digests, KEYS)
    assert (found_in.held, found_in.shingles, found_in.tokens) == (31, 31, 100)
    assert found_in.stretches == (Stretch(30, 70),)
    half = verify([*IDS[:20], 7, *IDS[21:]], digests, KEYS)
    assert (half.held, half.stretches) == (21, (Stretch(0, 20), Stretch(21, 40)))
    assert verify(list(range(100)), digests, KEYS).held == 0


@pytest.mark.parametrize("shingles", [b"", bytes(7), bytes(9)])
def test_what_are_no_digests_is_told(shingles: bytes) -> None:
    with pytest.raises(InputError, match="no digests"):
        verify(list(IDS), Digests(key=KEYS.key_id, shingles=shingles), KEYS)


@pytest.mark.parametrize("ids", [[], [1] * 9, [-1] * 20, [2**21] * 20])
def test_what_is_no_text_is_refused(ids: list[int]) -> None:
    with pytest.raises(InputError):
        verify(ids, Digests(key=KEYS.key_id, shingles=bytes(8)), KEYS)

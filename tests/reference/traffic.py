"""Evaluation traffic as flat arrays in which every distinct shingle has an exact number.

Plain records in, no hashing: two shingles have the same number if and only if their 10 token ids
are equal. Sequence 2r is the prompt of record r, 2r + 1 its response; history comes first.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

Record = dict[str, Any]
"""One line of the data files: request_id, tenant, node, ts, ts_end, prompt_ids, response_ids."""
Ints = NDArray[np.int64]

SHINGLE = 10
IM_START, IM_END, USER = 151644, 151645, 872
_ZSTD_WINDOW = 2**27


def read_jsonl(path: Path) -> list[Record]:
    """Return the records of a .jsonl or .jsonl.zst file."""
    text = path.read_bytes()
    if path.suffix == ".zst":
        reader = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW).stream_reader(text)
        text = reader.read()
    return [json.loads(line) for line in text.splitlines()]


class Traffic:
    """History and hour. Per token: `ids`, `shingle` (-1 at a sequence's last 9), `sequence`.

    Per sequence: `tenant` (number), `start` (seconds, of the request), `pool` (-1 in history).
    """

    def __init__(self, history: list[Record], hour: list[Record]) -> None:
        self.records = history + hour
        self.hour = 2 * len(history)
        texts = [r[field] for r in self.records for field in ("prompt_ids", "response_ids")]
        lengths = np.array([len(text) for text in texts])
        first = np.concatenate([[0], np.cumsum(lengths)])
        self.ids: Ints = np.concatenate([np.asarray(text, np.int64) for text in texts])
        self.sequence: Ints = np.repeat(np.arange(len(texts)), lengths)
        left = first[self.sequence + 1] - np.arange(len(self.ids))
        self.shingle: Ints = np.where(left >= SHINGLE, number_shingles(self.ids), -1)
        self.tenants = sorted({r["tenant"] for r in self.records})
        self.tenant = _per_sequence([self.tenants.index(r["tenant"]) for r in self.records])
        nodes = sorted({r.get("node", "") for r in self.records})
        self.pool = _per_sequence([nodes.index(r.get("node", "")) for r in self.records])
        self.start = np.repeat(np.array([r["ts"] for r in self.records], np.float64), 2)

    def window(self, at: Ints) -> Ints:
        """Return the 10 ids of the shingles that start at `at`, shape (len(at), 10)."""
        ids: Ints = self.ids[at[:, None] + np.arange(SHINGLE)]
        return ids


def number_shingles(ids: Ints) -> Ints:
    """Number the shingle at every token, equal numbers for equal ids (the last 9 are nonsense).

    Pairs are numbered by sorting, then pairs of pairs (4 ids), pairs of those (8), and 8 + 2.
    """
    two = _number_pairs(ids[:-1], ids[1:])
    four = _number_pairs(two[:-2], two[2:])
    eight = _number_pairs(four[:-4], four[4:])
    return np.concatenate([_number_pairs(eight[:-2], two[8:]), np.zeros(SHINGLE - 1, np.int64)])


def _number_pairs(left: Ints, right: Ints) -> Ints:
    numbers: Ints = np.unique(left * (int(right.max()) + 1) + right, return_inverse=True)[1]
    return numbers.astype(np.int64)


def _per_sequence(values: list[int]) -> Ints:
    return np.repeat(np.array(values, np.int64), 2)


def user_turns(prompt_ids: list[int]) -> list[tuple[int, ...]]:
    """Return what follows each `<|im_start|>user` up to its `<|im_end|>`, from the marker ids."""
    turns = []
    for at in range(len(prompt_ids) - 1):
        if prompt_ids[at] == IM_START and prompt_ids[at + 1] == USER:
            rest = prompt_ids[at + 2 :]
            turns.append(tuple(rest[: rest.index(IM_END)] if IM_END in rest else rest))
    return turns


def shingles(ids: tuple[int, ...]) -> set[tuple[int, ...]]:
    """Return every 10 consecutive ids."""
    return {ids[at : at + SHINGLE] for at in range(len(ids) - SHINGLE + 1)}

"""Plants bleeds into copies of genuine engine logs: ids of one tenant in another's answer.

The log keeps its text, line count and order; only id lists change, and a counter of the answer's
tokens where an answer grows. What is planted is content that no other tenant of the log shows.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from ingest.sources.base import RawRequest

SHINGLE = 10
MIN_DISTINCT = 6
MIN_RUN, MAX_RUN = 16, 32
WINDOW_MS = 300_000


@dataclass(frozen=True)
class Seeded:
    """One bleed; request ids as the reader finds them."""

    victim: str
    source: str
    source_tenant: str
    tokens: int


@dataclass(frozen=True)
class _Side:
    """One id list that content may be taken from; `at_ms` is when it was there."""

    request: str
    tenant: str
    at_ms: int
    ids: list[int]


class Planter:
    """Picks sources and victims in one log and rewrites it; victims take part in one bleed only.

    `requests` are those of the log as read, `tenants` their tenants by id.
    """

    def __init__(
        self, random: Random, requests: Sequence[RawRequest], tenants: dict[str, str]
    ) -> None:
        self._random = random
        self._requests = [one for one in requests if one.request_id in tenants]
        self._tenants = tenants
        self._sides = list(self._all_sides())
        self._owners: dict[tuple[int, ...], set[str]] = defaultdict(set)
        for side in self._sides:
            for shingle in _shingles(side.ids):
                self._owners[shingle].add(side.tenant)
        self._taken: set[str] = set()

    def seed(self, log: bytes, *, count: int, engine: str) -> tuple[bytes, list[Seeded]]:
        """Return the log with `count` bleeds and what they are."""
        write = {"vllm": _write_vllm, "sglang": _write_sglang}[engine]
        victims = [one for one in self._requests if len(one.response_ids or ()) >= MIN_RUN]
        self._random.shuffle(victims)
        done: list[Seeded] = []
        for victim in victims:
            if len(done) == count:
                break
            made = self._bleed(victim)
            if made is None:
                continue
            bleed, answer = made
            log = write(log, victim, answer)
            done.append(bleed)
        assert len(done) == count, f"the log has room for {len(done)} bleeds only"
        return log, done

    def _all_sides(self) -> Iterator[_Side]:
        for one in self._requests:
            tenant = self._tenants[one.request_id]
            if one.prompt_ids:
                yield _Side(one.request_id, tenant, one.started_at_ms, one.prompt_ids)
            if one.response_ids and one.ended_at_ms is not None:
                yield _Side(one.request_id, tenant, one.ended_at_ms, one.response_ids)

    def _bleed(self, victim: RawRequest) -> tuple[Seeded, list[int]] | None:
        """Return a bleed into `victim` and its new answer; None when nothing earlier fits."""
        if victim.request_id in self._taken:
            return None
        answer = list(victim.response_ids or ())
        tokens = self._random.randint(MIN_RUN, min(MAX_RUN, len(answer)))
        tenant = self._tenants[victim.request_id]
        fits = [
            (side, at)
            for side in self._sides
            if side.tenant != tenant
            and side.request not in self._taken
            and 0 <= victim.started_at_ms - side.at_ms <= WINDOW_MS
            for at in range(len(side.ids) - tokens + 1)
            if self._is_own(side.ids[at : at + tokens], side.tenant)
        ]
        if not fits:
            return None
        side, at = self._random.choice(fits)
        start = self._random.randint(0, len(answer) - tokens)
        answer[start : start + tokens] = side.ids[at : at + tokens]
        self._taken |= {victim.request_id, side.request}
        return Seeded(victim.request_id, side.request, side.tenant, tokens), answer

    def _is_own(self, ids: list[int], tenant: str) -> bool:
        return all(
            self._owners[shingle] == {tenant} and len(set(shingle)) >= MIN_DISTINCT
            for shingle in _shingles(ids)
        )


def _shingles(ids: list[int]) -> Iterator[tuple[int, ...]]:
    return (tuple(ids[at : at + SHINGLE]) for at in range(len(ids) - SHINGLE + 1))


def _write_vllm(log: bytes, victim: RawRequest, answer: list[int]) -> bytes:
    """Write an answer into its one output line, or delta by delta; the number of ids stays."""
    line = re.compile(
        rb"(Generated response %s(?: \(streaming delta\))? details: output_token_ids: )"
        rb"\[([\d, ]+)\]" % re.escape(victim.request_id.encode())
    )
    rest = list(answer)

    def written(found: re.Match[bytes]) -> bytes:
        count = found[2].count(b",") + 1
        part, rest[:count] = rest[:count], []
        return found[1] + str(part).encode()

    log = line.sub(written, log)
    assert not rest, "the log holds fewer ids than the reader found"
    return log


def _write_sglang(log: bytes, victim: RawRequest, answer: list[int]) -> bytes:
    """Write an answer into the record of its end, with one more token than before, and count it."""
    lines = log.split(b"\n")
    name = victim.request_id.encode()
    for number, line in enumerate(lines):
        at = line.find(b"{")
        if b'"request.finished"' not in line or name not in line or at < 0:
            continue
        record = json.loads(line[at:])
        if record["rid"] != victim.request_id:
            continue
        out = record["out"]
        assert out["output_ids"] == victim.response_ids
        out["output_ids"] = [*answer, answer[0]]
        out["meta_info"]["completion_tokens"] += 1
        lines[number] = line[:at] + json.dumps(record).encode()
        return b"\n".join(lines)
    raise AssertionError("the log has no end of this request")

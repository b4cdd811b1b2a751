"""Plain matching: against a brute-force count, and its edges."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from detector.evaluation.raw_match import raw_flagged
from detector.model import EngineId, Kind, PoolId, RequestId, Sequence, TenantId


def sequence(tenant: str, number: int, kind: Kind, start: int, ids: list[int]) -> Sequence:
    return Sequence(
        tenant=TenantId(tenant), request_id=RequestId(str(number)), kv_pool=PoolId(f"p{number}"),
        engine=EngineId("e"), model="m", kind=kind, started_at_ms=start, ended_at_ms=start + 1,
        token_hashes=np.array(ids, np.uint32),
    )  # fmt: skip


def obvious(sequences: list[Sequence], window_ms: int) -> int:
    def shingles(s: Sequence) -> set[tuple[int, ...]]:
        ids = s.token_hashes.tolist()
        return {tuple(ids[i : i + 10]) for i in range(len(ids) - 9)}

    return len(
        {
            sink.request_id
            for sink in sequences
            for source in sequences
            if sink.kind is Kind.RESPONSE
            and sink.tenant != source.tenant
            and 0 <= sink.started_at_ms - source.started_at_ms <= window_ms
            and shingles(sink) & shingles(source)
        }
    )


parts = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(list(Kind)),
    st.integers(0, 12),
    st.lists(st.integers(0, 1), max_size=14),
)


@given(st.lists(parts, max_size=12))
def test_it_counts_what_brute_force_counts(rows: list[tuple[str, Kind, int, list[int]]]) -> None:
    sequences = [sequence(t, n, kind, at, ids) for n, (t, kind, at, ids) in enumerate(rows)]
    assert raw_flagged(sequences, window_ms=4) == obvious(sequences, 4)


def test_the_window_is_five_minutes_and_includes_its_end() -> None:
    ids = list(range(10))
    source = sequence("a", 1, Kind.PROMPT, 0, ids)
    assert raw_flagged([source, sequence("b", 2, Kind.RESPONSE, 300_000, ids)]) == 1
    assert raw_flagged([source, sequence("b", 2, Kind.RESPONSE, 300_001, ids)]) == 0


def test_parts_of_one_response_count_once() -> None:
    ids = list(range(10))
    halves = [sequence("b", 2, Kind.RESPONSE, 5, ids), sequence("b", 2, Kind.RESPONSE, 5, ids)]
    assert raw_flagged([sequence("a", 1, Kind.PROMPT, 0, ids), *halves]) == 1


def test_nothing_in_nothing_out() -> None:
    assert raw_flagged([]) == 0
    assert raw_flagged([sequence("a", 1, Kind.RESPONSE, 0, [1, 2])]) == 0

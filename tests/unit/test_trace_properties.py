"""Whatever the traffic: the look-back names exactly whom its definitions name, slowly by sets."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.model import Kind, Sequence
from detector.settings import DetectionSettings
from detector.sketch.shingle import shingle_keys
from detector.trace.response import Response
from detector.trace.scan import Scan
from tests.unit.sequences import join, prompt, response, text

PIECES = [text(name, 14) for name in range(5)]
SINK = response("sink", "r", 500, join(*PIECES), end_s=501)

Shown = tuple[str, bool, int, list[int]]
"""Tenant, whether in a prompt, start in seconds, which pieces."""

shown = st.tuples(
    st.sampled_from(["sink", "a", "b", "c", "d"]),
    st.booleans(),
    st.integers(0, 600),
    st.lists(st.integers(0, 4), min_size=1, max_size=2),
)


def stored(number: int, one: Shown) -> Sequence:
    tenant, in_prompt, at_s, pieces = one
    tokens = join(text(100 + number, 5), *(PIECES[at] for at in pieces), text(200 + number, 5))
    make = prompt if in_prompt else response
    return make(tenant, str(number), at_s, tokens)


def keys(sequence: Sequence) -> set[int]:
    return set(shingle_keys(sequence.token_hashes).tolist())


def named(retained: list[Sequence]) -> set[str]:
    """Return the requests that the definitions name, shingle by shingle."""
    window = [one for one in retained if one.started_at_ms < SINK.ended_at_ms]
    found: set[str] = set()
    for key in keys(SINK):
        showing = [(at, one) for at, one in enumerate(window) if key in keys(one)]
        for _, source in showing:
            if source.tenant != "sink" and not _explained(source, showing):
                found.add(source.request_id)
    return found


def _explained(source: Sequence, showing: list[tuple[int, Sequence]]) -> bool:
    for at, other in showing:
        is_older = other.started_at_ms < source.started_at_ms
        if other.tenant == "sink":
            if is_older:
                return True
        elif other.tenant != source.tenant:
            answers = [
                one
                for before, one in showing
                if before < at and one.tenant == other.tenant and one.kind is Kind.RESPONSE
            ]
            if (other.kind is Kind.PROMPT and not answers) or (
                other.kind is Kind.RESPONSE and is_older
            ):
                return True
    return False


@settings(max_examples=60, deadline=None)
@given(st.lists(shown, max_size=9))
def test_exactly_the_sources_of_the_definitions_are_named(traffic: list[Shown]) -> None:
    retained = [stored(number, one) for number, one in enumerate(traffic)]
    scan = Scan(Response(SINK, SINK.token_hashes, ()), DetectionSettings(), since_ms=0)
    for one in retained:
        scan.add(one)
    result = scan.result()
    assert {one.party.request_id for one in result.sources} == named(retained)
    for source in result.sources:
        (tokens,) = (
            one.token_hashes for one in retained if one.request_id == source.party.request_id
        )
        for run in source.runs:
            theirs = tokens[run.source_start : run.source_start + run.length]
            ours = SINK.token_hashes[run.sink_start : run.sink_start + run.length]
            assert np.array_equal(ours, theirs)
            assert 10 <= run.unexplained <= run.length

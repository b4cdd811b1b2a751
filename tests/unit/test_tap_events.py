"""A stream is cut into events however its pieces fall, and nothing of it is lost."""

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ingest.tap.events import Events, payload

ENDS = st.sampled_from([b"\n\n", b"\r\n\r\n"])
BODIES = st.sampled_from([b"data: {}", b'data: {"a":1}', b"event: x\ndata: {}", b": ping", b""])


@given(st.lists(st.tuples(BODIES, ENDS)), st.lists(st.integers(0, 60)), BODIES)
def test_pieces_do_not_matter(
    made: list[tuple[bytes, bytes]], cuts: list[int], rest: bytes
) -> None:
    stream = b"".join(body + end for body, end in made) + rest
    events = Events(1_000)
    places = sorted({min(cut, len(stream)) for cut in cuts} | {0, len(stream)})
    out = [event for start, end in pairwise(places) for event in events.feed(stream[start:end])]
    assert b"".join(out) + events.rest() == stream
    whole = Events(1_000)
    assert _objects(out) == _objects(whole.feed(stream))


def _objects(events: Iterable[bytes]) -> list[bytes]:
    """Return the objects in events: how empty ones are grouped is nobody's concern."""
    places = ((event, payload(event)) for event in events)
    return [event[slice(*place)] for event, place in places if place is not None]


def test_an_event_in_a_piece_is_passed_as_it_is() -> None:
    piece = b'data: {"a":1}\n\n'
    assert Events(100).feed(piece)[0] is piece


def test_an_event_that_is_too_large_is_told() -> None:
    events = Events(10)
    assert events.feed(b"data: {") == []
    assert not events.is_too_large
    assert events.feed(b"x" * 10) == []
    assert events.is_too_large
    assert events.rest() == b"data: {" + b"x" * 10
    assert not events.is_too_large


def test_the_object_of_an_event_is_found() -> None:
    for event, found in (
        (b'event: a\ndata: {"a":1}\r\n\r\n', b'{"a":1}'),
        (b"data:{}\n\n", b"{}"),
        (b"data: [DONE]\n\n", None),
        (b"data: {}\ndata: {}\n\n", None),
        (b": data: {}\n\n", None),
    ):
        place = payload(event)
        assert (None if place is None else event[slice(*place)]) == found

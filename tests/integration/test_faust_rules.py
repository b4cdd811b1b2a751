"""What each of the worker's three rules prevents, shown by a plain Faust app that breaks it.

The same app with all rules kept loses nothing, whatever happens to it.
"""

import json
import time
from pathlib import Path

import pytest

from ingest.broker import TopicPartition
from tests.streams.cluster import Sent, Stream, make_stream, now_ms
from tests.streams.process import worker

SETTLED_S = 6.0
"""Without anything new for so long, nothing comes any more: batches are handed over in 0.1 s."""

COMMITTED_S = 1.5
"""Three times the interval of the app's commits."""

COUNT = 60
MIDDLE = 25


@pytest.fixture
def stream(kafka: str, topic_prefix: str) -> Stream:
    return make_stream(kafka, topic_prefix, partitions=1)


def sent(stream: Stream, odd: str) -> set[str]:
    """Publish COUNT records with an odd one in the middle; return all that can be read."""
    start = now_ms()
    records = [Sent(0, start + i, odd if i == MIDDLE else f"k{i}") for i in range(COUNT)]
    stream.send(records)
    return {f"{one.event_ms} {one.key}" for one in records}


def settle(stream: Stream, wanted: set[str]) -> set[str]:
    """Return what was copied once all is there, or nothing new comes."""
    found, since = set(stream.found()), time.monotonic()
    while not wanted <= found and time.monotonic() - since < SETTLED_S:
        time.sleep(0.2)
        now = set(stream.found())
        if now != found:
            found, since = now, time.monotonic()
    return found


def life(stream: Stream, folder: Path, wanted: set[str], broken: str | None) -> int | None:
    """Run the app until nothing new comes; return its exit code, None if it was still running."""
    given = {
        "bootstrap": stream.settings.bootstrap_servers,
        "prefix": stream.prefix,
        "failed": str(folder / "failed"),
        "broken": broken,
    }
    with worker(["tests.streams.rules_main", json.dumps(given)], folder / "log") as one:
        one.wait_event("started")
        settle(stream, wanted)
        time.sleep(COMMITTED_S)
        return one.process.poll()


def committed(stream: Stream) -> int:
    return stream.committed().get(TopicPartition(stream.inputs[0], 0), 0)


def test_kept_rules_lose_nothing(stream: Stream, tmp_path: Path) -> None:
    wanted = sent(stream, "fatal")
    assert life(stream, tmp_path, wanted, None) == 70
    assert committed(stream) <= MIDDLE
    assert life(stream, tmp_path, wanted, None) is None
    assert set(stream.found()) == wanted
    assert committed(stream) == COUNT


def test_take_loses_the_batch_that_fails(stream: Stream, tmp_path: Path) -> None:
    wanted = sent(stream, "fatal")
    assert life(stream, tmp_path, wanted, "take") is None, "the process lives, nothing looks wrong"
    life(stream, tmp_path, wanted, "take")
    assert wanted - set(stream.found()), "a restart does not bring them back:"
    assert committed(stream) == COUNT


def test_an_exception_that_leaves_the_loop_stops_the_flow_unseen(
    stream: Stream, tmp_path: Path
) -> None:
    wanted = sent(stream, "fatal")
    assert life(stream, tmp_path, wanted, "escape") is None, "the process lives"
    assert wanted - set(stream.found())
    assert committed(stream) < COUNT


def test_decoding_by_faust_stops_the_flow_unseen(stream: Stream, tmp_path: Path) -> None:
    good = with_poison(stream)
    assert life(stream, tmp_path, good, "codec") is None, "the process lives"
    assert set(stream.found()) == {one for one in good if int(one.split("k")[1]) < 5}
    assert not (tmp_path / "log").read_text(), "not a word"


def test_decoding_in_the_loop_skips_what_cannot_be_read(stream: Stream, tmp_path: Path) -> None:
    good = with_poison(stream)
    assert life(stream, tmp_path, good, None) is None
    assert set(stream.found()) == good
    assert committed(stream) == 11


def with_poison(stream: Stream) -> set[str]:
    """Publish 5 records, one that cannot be read, and 5 more; return those that can be read."""
    start = now_ms()
    records = [Sent(0, start + i, f"k{i}") for i in range(10)]
    stream.send(records[:5])
    stream.send_raw(b"no number")
    stream.send(records[5:])
    return {f"{one.event_ms} {one.key}" for one in records}

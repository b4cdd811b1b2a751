"""Stop anywhere, rebuild the window, go on: in all, the same is sent as without a stop."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detector.errors import BrokerError
from ingest.broker import Message, TopicPartition
from ingest.memory_runner import MemoryRunner
from tests.reference.random_traffic import random_traffic
from tests.unit.sequences import join, pairs, prompt, response, text
from tests.unit.streams import HOLD_MS, TOPICS, FailingPublisher, Stream, live_order, packed

Sent = Sequence[tuple[int, Message]]

LATE_MS = 60_000
"""The grace: how late a record may come."""


def messages(seed: int, *, late: bool) -> Sent:
    """Return the messages of a small world, in order or up to a minute out of it."""
    rng = random.Random(seed)
    traffic = live_order(random_traffic(seed, requests=14))
    if late:
        arrival = {id(one): one.ended_at_ms + rng.randrange(LATE_MS) for one in traffic}
        traffic.sort(key=lambda one: arrival[id(one)])
    return packed(traffic, per_message=rng.choice((1, 2, 3)))


def feed(stream: Stream, runner: MemoryRunner, sent: Sent) -> None:
    for at_ms, message in sent:
        stream.send_raw(message, at_ms=at_ms)
        runner.turn()


def undisturbed(sent: Sent, partitions: int, *, hold_ms: int = HOLD_MS) -> set[str]:
    stream = Stream(partitions=partitions, hold_ms=hold_ms)
    runner = stream.runner()
    runner.start()
    feed(stream, runner, sent)
    runner.finish()
    return {one.id for one in stream.findings()}


seeds = st.integers(0, 400)
shares = st.floats(0, 1)
holds = st.sampled_from([HOLD_MS, 60_000])
"""With a long hold much waits for its turn when the end comes."""


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=seeds, late=st.booleans(), hold_ms=holds, cuts=st.lists(shares, min_size=1, max_size=3))
def test_one_partition_started_anew_sends_the_same(
    seed: int, late: bool, hold_ms: int, cuts: list[float]
) -> None:
    sent = messages(seed, late=late)
    stream = Stream(hold_ms=hold_ms)
    committed: dict[TopicPartition, int] = {}
    begin = 0
    for share in [*sorted(cuts), 1.0]:
        end = max(begin, round(share * len(sent)))
        runner = stream.runner()
        runner.start(committed=committed)
        feed(stream, runner, sent[begin:end])
        if end == len(sent):
            runner.finish()
        committed, begin = runner.committed, end
    assert {one.id for one in stream.findings()} == undisturbed(sent, 1, hold_ms=hold_ms)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=seeds, late=st.booleans(), cut=shares)
def test_two_partitions_that_move_back_to_a_process_send_the_same(
    seed: int, late: bool, cut: float
) -> None:
    """The memory of the process lives on."""
    sent = messages(seed, late=late)
    at = round(cut * len(sent))
    stream = Stream(partitions=2)
    handler = stream.handler()
    first, second = stream.runner(handler), stream.runner(handler)
    first.start()
    feed(stream, first, sent[:at])
    first.stop()
    second.start(committed=first.committed)
    feed(stream, second, sent[at:])
    second.finish()
    assert {one.id for one in stream.findings()} == undisturbed(sent, 2)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=seeds, late=st.booleans(), cut=shares)
def test_two_partitions_in_a_new_process_lose_nothing(seed: int, late: bool, cut: float) -> None:
    """A memory that must learn anew in another order explains less for a while: never more."""
    sent = messages(seed, late=late)
    at = round(cut * len(sent))
    stream = Stream(partitions=2)
    first, second = stream.runner(), stream.runner()
    first.start()
    feed(stream, first, sent[:at])
    second.start(committed=first.committed)
    feed(stream, second, sent[at:])
    second.finish()
    assert {one.id for one in stream.findings()} >= undisturbed(sent, 2)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=seeds, survives=st.integers(0, 12))
def test_a_broker_that_goes_away_between_result_and_acknowledgement_loses_nothing(
    seed: int, survives: int
) -> None:
    sent = messages(seed, late=False)
    stream = Stream()
    failing = stream.runner(publisher=FailingPublisher(stream, after=survives))
    failing.start()
    done = 0
    try:
        for done in range(len(sent)):
            feed(stream, failing, sent[done : done + 1])
    except BrokerError:
        pass
    runner = stream.runner()
    runner.start(committed=failing.committed)
    feed(stream, runner, sent[done + 1 :])
    runner.finish()
    assert {one.id for one in stream.findings()} == undisturbed(sent, 1)


def test_what_is_finished_and_waits_again_meets_what_comes_before_it() -> None:
    """After the restart the answer waits for its turn when the prompt that it holds comes late."""
    secret = text(1, 30)
    stream = Stream()
    first, second = stream.runner(), stream.runner()
    stream.send([response("b", "2", 5, secret, end_s=10)])
    first.start()
    first.finish()
    assert first.committed == {TopicPartition(TOPICS.sequences, 0): 1}
    stream.send([prompt("a", "1", 9, secret), prompt("x", "3", 20, text(2, 30))])
    second.start(committed=first.committed)
    second.finish()
    assert pairs(stream.findings()) == {("2", "a")}


def test_what_waited_for_its_turn_at_the_end_has_it_after_the_restart() -> None:
    secret = text(1, 30)
    stream = Stream()
    first, second = stream.runner(), stream.runner()
    stream.send([prompt("a", "1", 0, secret), response("b", "2", 5, secret)])
    first.start()
    first.catch_up()
    assert not stream.findings()
    second.start(committed=first.committed)
    second.finish()
    assert pairs(stream.findings()) == {("2", "a")}


def test_the_first_new_record_meets_the_window_even_if_it_comes_late() -> None:
    secret = text(1, 30)
    stream = Stream()
    first, second = stream.runner(), stream.runner()
    stream.send([response("b", "2", 5, secret, end_s=8), prompt("x", "3", 10, text(2, 30))])
    first.start()
    first.finish()
    stream.send([prompt("a", "1", 6, secret)])
    second.start(committed=first.committed)
    second.finish()
    assert pairs(stream.findings()) == {("2", "a")}


def test_what_only_a_forgetful_rebuilding_found_hides_nothing_new() -> None:
    """The first process knew from long ago that the longer text is common; the second does not."""
    common, secret = text(1, 40), text(2, 20)
    stream = Stream()
    first, second = stream.runner(), stream.runner()
    stream.send([prompt("c", "0", 0, common), prompt("a", "1", 2000, common)])
    stream.send([response("b", "2", 2010, join(common, text(3, 20), secret), end_s=2030)])
    stream.send([prompt("x", "3", 2035, text(4, 20))])
    first.start()
    first.finish()
    assert not stream.findings()
    stream.send([prompt("a", "4", 2025, secret)])
    second.start(committed=first.committed)
    second.finish()
    assert pairs(stream.findings()) == {("2", "a")}


def test_what_was_sent_before_is_not_sent_again_while_the_window_is_rebuilt() -> None:
    secret = text(1, 30)
    stream = Stream()
    first, second = stream.runner(), stream.runner()
    stream.send([prompt("a", "1", 0, secret), response("b", "2", 5, secret)])
    first.start()
    first.finish()
    rows = len(stream.sent(TOPICS.requests))
    second.start(committed=first.committed)
    second.finish()
    assert len(stream.findings()) == 1
    assert len(stream.sent(TOPICS.requests)) == rows


@pytest.mark.parametrize("hours", [0, 1, 30])
def test_a_stop_loses_no_pair_however_long_it_was(hours: int) -> None:
    """While nobody reads the stream goes on; events decide the window, not the clock."""
    secret, away_s = text(1, 30), hours * 3600
    stream = Stream()
    quiet = [prompt("x", f"x{at}", at, text(100 + at, 20)) for at in range(0, 4000, 50)]
    stream.send([*quiet, prompt("a", "1", 4000, secret), prompt("x", "x", 4010, text(9, 20))])
    first = stream.runner()
    first.start()
    first.finish()
    stream.send([response("b", "2", 4200, join(text(3, 20), secret))])
    stream.send([prompt("x", f"y{at}", 4300 + at, text(200 + at, 20)) for at in range(50)])
    stream.now_ms += away_s * 1000
    handler = stream.handler()
    second = stream.runner(handler)
    second.start(committed=first.committed)
    second.finish()
    assert pairs(stream.findings()) == {("2", "a")}
    window_s = 960
    assert 0 < handler.tally.warmup_records <= window_s / 50 + 3


def test_a_request_whose_answer_comes_after_the_restart_has_one_whole_row() -> None:
    stream = Stream()
    first, second = stream.runner(), stream.runner()
    stream.send([prompt("a", "1", 0, text(1, 30))])
    first.start()
    first.finish()
    assert not stream.sent(TOPICS.requests)
    stream.send([response("a", "1", 0, text(2, 20), end_s=9)])
    second.start(committed=first.committed)
    second.finish()
    assert len(stream.sent(TOPICS.requests)) == 1

"""Hostile messages between good ones, on all inputs: each is accounted for, the stream goes on.

Seeded, so a failure repeats. BLEEDWATCH_FUZZ_SEED picks another seed, BLEEDWATCH_TEST_FUZZ_INPUTS
how many messages are tried.
"""

import os
import random
from collections import Counter

from ingest.broker import Message, TopicPartition
from ingest.dead_letter import DeadLetter
from ingest.dead_letter_limit import DeadLetterSettings
from ingest.schema import decode
from ingest.schema_records import EngineEvent, Record, RuntimeSample
from tests.fuzz.hostile import CANARY, message
from tests.unit.sequences import join, pairs, prompt, response, text
from tests.unit.streams import TOPICS, Stream

SEED = int(os.environ.get("BLEEDWATCH_FUZZ_SEED", "20261129"))
INPUTS = int(os.environ.get("BLEEDWATCH_TEST_FUZZ_INPUTS", "6000"))
PER_BLEED = 100
STEP_S = 20

ANY_SHARE = DeadLetterSettings(max_share=1.0)


def topic_of(kind: type[Record]) -> str:
    named = {RuntimeSample: TOPICS.runtime, EngineEvent: TOPICS.engine_events}
    return named.get(kind, TOPICS.sequences)


def test_hostile_messages_cost_nothing_but_themselves() -> None:
    random_ = random.Random(SEED)
    stream = Stream()
    handler = stream.handler(limit=ANY_SHARE)
    runner = stream.runner(handler, batch_records=64)
    runner.start()
    told: Counter[str] = Counter()
    read, wanted = 0, set()
    sent: Counter[str] = Counter()
    for number in range(INPUTS // PER_BLEED):
        at_s, secret = 100 + number * STEP_S, text(number, 40)
        filler = text(10**6 + number, 50)
        stream.send([prompt("a", f"a{number}", at_s, secret, pool="q")])
        for _ in range(PER_BLEED):
            kind, hostile = message(random_)
            topic = topic_of(kind)
            stream.send_raw(Message(topic, hostile.value, b"p", hostile.headers), at_ms=1)
            sent[topic] += 1
        bleed = join(filler, secret)
        stream.send([response("b", f"b{number}", at_s + 3, bleed, pool="q", end_s=at_s + 8)])
        sent[TOPICS.sequences] += 2
        wanted.add((f"b{number}", "a"))
        runner.catch_up()
    runner.finish()
    assert pairs(one for one in stream.findings() if one.kv_pool == "q") == wanted
    assert runner.committed == {TopicPartition(topic, 0): n for topic, n in sent.items()}
    assert handler.tally.records == sent
    for letter in stream.sent(TOPICS.dead_letter):
        assert CANARY.encode() not in (letter.value or b"")
        one = decode(DeadLetter, letter.value or b"")
        told[one.reason] += 1
        read += 1
    assert read > INPUTS // 2
    assert set(told) == set(handler.tally.dead_letters)

"""The traffic of the load tests: its rate, and that its bleeds are found and nothing else is."""

from detector.finding import Confidence
from detector.model import Kind
from ingest.packing import Packer
from ingest.packing_forms import SealedForm
from ingest.packing_settings import PackingSettings
from ingest.schema_records import SequenceRecord
from tests.load.feed import Feed
from tests.load.traffic import DURATION_MS, POOLS, PROMPT_TOKENS, RESPONSE_TOKENS, Traffic
from tests.unit.streams import TOPICS, Stream
from tests.unit.wire import RING


def packer() -> "Packer[SequenceRecord]":
    return Packer(TOPICS.sequences, SealedForm(lambda: RING), PackingSettings())


def test_every_prompt_gets_its_response_when_that_ends() -> None:
    traffic = Traffic(seed=1)
    prompts = list(traffic.prompts(20, 1_000))
    assert not list(traffic.responses(1_000 + DURATION_MS - 1))
    responses = list(traffic.responses(1_000 + DURATION_MS))
    assert [one.request_id for one in responses] == [one.request_id for one in prompts]
    assert {one.kind for one in responses} == {Kind.RESPONSE}
    assert {len(one.token_hashes) for one in prompts} == {PROMPT_TOKENS}
    assert {len(one.token_hashes) for one in responses} == {RESPONSE_TOKENS}
    assert {one.ended_at_ms for one in responses} == {1_000 + DURATION_MS}
    assert len({one.kv_pool for one in prompts}) == POOLS


def test_a_bleed_needs_a_prompt_of_another_tenant() -> None:
    traffic = Traffic(seed=1)
    list(traffic.prompts(POOLS, 1_000))
    (first, *_) = traffic.responses(1_000 + DURATION_MS)
    assert traffic.bleed(first) is None
    list(traffic.prompts(POOLS, 2_000))
    assert traffic.bleed(first) is not None


def test_every_planted_bleed_is_acknowledged_and_found() -> None:
    stream = Stream(partitions=4)
    stream.now_ms = 4_000_000_000_000  # later than all that is dated now
    feed = Feed(
        Traffic(seed=1),
        packer(),
        stream.publisher,
        tokens_per_second=30_000,
        bleeds_per_second=8.0,
    )
    feed.run(DURATION_MS / 1000 + 1.0)
    feed.finish()
    runner = stream.runner()
    runner.start()
    runner.finish()
    found = {one.id for one in stream.findings()}
    assert len(feed.acknowledged) > 5
    assert set(feed.acknowledged) <= found
    sure = {one.id for one in stream.findings() if one.confidence is Confidence.HIGH}
    assert set(feed.acknowledged) <= sure
    assert feed.tokens > 5 * 20_000

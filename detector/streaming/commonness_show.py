"""What workers have told each other so far, read from the topics."""

from detector.config.root import Settings
from detector.errors import BrokerError
from detector.index.selection import sampling_of
from detector.index.shared_memory import SharedMemory
from detector.sketch.tag_keys import TagKeys
from detector.sketch.token_table import Secret
from detector.streaming.commonness_feed import CommonnessFeed
from detector.streaming.exchange import Exchange
from ingest.broker import Reader, TopicPartition

Row = dict[str, str | int | None]

READ_S = 300.0
"""How long reading may take: a day of a large installation takes a minute."""


def commonness_rows(settings: Settings, secret: Secret, reader: Reader) -> list[Row]:
    """Return counts of what lies in the topics, one row each: `what`, `count`, `unit`.

    Raises BrokerError when a topic is missing or was not read in time.
    """
    keys = secret.keys()
    commonness = settings.detection.commonness
    memory = SharedMemory(commonness, TagKeys(keys.tag_key))
    exchange = Exchange(
        memory, commonness, key_id=keys.key_id, sampling=sampling_of(settings.detection.index),
        ranges=1, prefix=settings.kafka.topic_prefix, writer=b"",
    )  # fmt: skip
    feed = CommonnessFeed(reader, exchange)
    if not feed.start(timeout_s=READ_S):
        raise BrokerError(
            f"not all was read within {READ_S:.0f} s",
            where=f"topic {exchange.commonness_topic}",
            hint="look at the load of the cluster and try again",
        )
    told = memory.exchanged
    topics = (exchange.shingles_topic, exchange.commonness_topic)
    rows: list[Row] = [
        {"what": f"records in {topic}", "count": _records(reader, topic), "unit": "records"}
        for topic in topics
    ]
    rows += [
        {"what": "told as shared by several tenants", "count": told.heard, "unit": "marks"},
        {"what": "told as tainted", "count": told.taints_heard, "unit": "shingles"},
        {"what": "memory for it in every worker", "count": memory.seen.nbytes, "unit": "bytes"},
        {"what": "reach", "count": _reach_s(memory), "unit": "s"},
    ]
    rows += [
        {"what": f"not used: {reason}", "count": count, "unit": "records"}
        for reason, count in sorted(exchange.bad_records.items())
    ]
    return rows


def _records(reader: Reader, topic: str) -> int:
    partitions = [TopicPartition(topic, at) for at in range(reader.partitions(topic))]
    return sum(reader.end(at) - reader.beginning(at) for at in partitions)


def _reach_s(memory: SharedMemory) -> int | None:
    since_ms = memory.seen.since_ms
    return None if since_ms is None else (memory.now_ms - since_ms) // 1000

"""The topics: what they are called, and how each must be for the stream to be right."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from ingest.kafka_settings import HOUR_MS, KafkaSettings

SEGMENTS: Final = 8
"""A log is deleted by whole segments, so a topic keeps up to an eighth more than its retention."""

MIN_SEGMENT_MS: Final = HOUR_MS // 6
MAX_SEGMENT_MS: Final = 6 * HOUR_MS
"""Compaction leaves the newest segment alone, so that one must not last too long either."""


class TopicNames(NamedTuple):
    """Full names, prefix included."""

    sequences: str
    runtime: str
    engine_events: str
    requests: str
    findings: str
    dead_letter: str
    shingles: str
    commonness: str
    bands: str

    @property
    def inputs(self) -> tuple[str, str, str]:
        """What a worker is assigned together: a KV pool has one partition number in all three."""
        return self.sequences, self.runtime, self.engine_events

    @property
    def alike(self) -> tuple[str, ...]:
        """Topics that must have as many partitions as the first of them.

        Who is assigned a partition of the inputs also owns that number of the shared memory.
        """
        return (*self.inputs, self.shingles, self.commonness, self.bands)


class TopicSpec(NamedTuple):
    """One topic as it should be."""

    name: str
    partitions: int
    replicas: int | None
    retention_ms: int
    cleanup: str
    max_message_bytes: int

    @property
    def segment_ms(self) -> int:
        """How long the log writes into one segment."""
        return min(max(self.retention_ms // SEGMENTS, MIN_SEGMENT_MS), MAX_SEGMENT_MS)

    @property
    def configs(self) -> Mapping[str, str]:
        """The settings of the topic, in Kafka's names."""
        return {
            "cleanup.policy": self.cleanup,
            "compression.type": "zstd",
            "max.message.bytes": str(self.max_message_bytes),
            "message.timestamp.type": "CreateTime",
            "retention.ms": str(self.retention_ms),
            "segment.ms": str(self.segment_ms),
        }


def topic_names(prefix: str) -> TopicNames:
    """Return the names of all topics below a prefix."""
    return TopicNames(*(f"{prefix}.{name.replace('_', '-')}" for name in TopicNames._fields))


def topic_specs(settings: KafkaSettings) -> tuple[TopicSpec, ...]:
    """Return every topic as it should be, the inputs first."""
    names = topic_names(settings.topic_prefix)
    retention = settings.retention
    keep_ms = {
        **dict.fromkeys(names.inputs, retention.inputs_ms),
        **dict.fromkeys((names.requests, names.findings, names.dead_letter), retention.results_ms),
        names.shingles: retention.shingles_ms,
        names.commonness: retention.commonness_ms,
        names.bands: retention.bands_ms,
    }
    return tuple(
        TopicSpec(
            name=name,
            partitions=settings.partitions,
            replicas=settings.replication_factor,
            retention_ms=keep_ms[name],
            # What was promoted and never again is forgotten, or the topic would grow for ever.
            cleanup="compact,delete" if name == names.commonness else "delete",
            max_message_bytes=settings.max_message_bytes,
        )
        for name in names
    )

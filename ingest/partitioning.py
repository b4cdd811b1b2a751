"""Which partition a message goes to, and how large it is: the same in every broker."""

from typing import cast

from kafka.partitioner.default import murmur2

from ingest.broker import Message

_POSITIVE = 0x7FFF_FFFF
"""Kafka drops the sign bit of the hash before it takes the remainder."""


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition, of `partitions` in all, that every Kafka producer picks for `key`."""
    return (cast(int, murmur2(key)) & _POSITIVE) % partitions


def message_bytes(message: Message) -> int:
    """Return the bytes of key, value and headers."""
    headers = sum(len(name) + len(value) for name, value in message.headers)
    return len(message.key or b"") + len(message.value or b"") + headers

"""How far each partition of each topic has been read."""

from collections.abc import Mapping

from sqlalchemy import Connection, delete, insert, select

from exporters.store.tables import offsets

Offsets = dict[tuple[str, int], int]
"""The next offset to read, by topic and partition."""


def read_offsets(connection: Connection) -> Offsets:
    """Return every offset."""
    found = connection.execute(select(offsets))
    return {(row.topic, row.partition): row.next_offset for row in found}


def put_offsets(connection: Connection, read: Mapping[tuple[str, int], int]) -> None:
    """Write the offsets of some partitions, also where they go back."""
    for (topic, partition), next_offset in read.items():
        connection.execute(
            delete(offsets).where(offsets.c.topic == topic, offsets.c.partition == partition)
        )
        connection.execute(
            insert(offsets).values(topic=topic, partition=partition, next_offset=next_offset)
        )

"""Writes rows as a Parquet file, a part at a time; nothing else imports pyarrow."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Final

from detector.errors import UsageError
from exporters.whole_file import whole_file

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_PER_GROUP: Final = 50_000
"""Rows held at once; some 10 MB."""


def write_parquet(path: str, columns: Mapping[str, type], rows: Iterable[Sequence[object]]) -> None:
    """Write rows of text and whole numbers; a reader sees a whole file, or the one before.

    Raises UsageError if pyarrow is not installed, InputError where the file cannot be written.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional package
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ModuleNotFoundError:
        raise UsageError(
            "Parquet needs pyarrow, which is not installed",
            where=path,
            hint="pip install 'bleedwatch[parquet]', or write .csv or .jsonl",
        ) from None
    types = {str: pa.string(), int: pa.int64()}
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    remaining = iter(rows)
    with (
        whole_file(path) as fresh,
        pq.ParquetWriter(fresh, schema, compression="zstd") as writer,
    ):
        while group := list(islice(remaining, ROWS_PER_GROUP)):
            writer.write_batch(_batch(group, schema))


def _batch(rows: Sequence[Sequence[object]], schema: "pa.Schema") -> "pa.RecordBatch":
    import pyarrow as pa  # noqa: PLC0415 - an optional package

    columns = zip(*rows, strict=True)
    arrays = [pa.array(one, kind) for one, kind in zip(columns, schema.types, strict=True)]
    return pa.record_batch(arrays, schema=schema)

"""Reader of the hash index files of a dynamic-bucket table.

The rows are partition values, hash of a key and bucket. A write joins them to find the buckets of known keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import datasource as ds
from pyspark.sql import types as st

from lsm.bucket.dynamic import read_hashes
from manifest.entry.index_manifest import HASH, IndexManifestEntry
from manifest.schema.table_schema import TableSchema
from manifest.store import FileStore
from pyspark_paimon.frames.spark_types import arrow_for_spark, cast_for_spark, spark_type
from pyspark_paimon.local.open_engine import open_engine
from pyspark_paimon.spark.wire import rpc
from pyspark_paimon.spark.wire.errors import attach_error_notes
from sparkexpr.values.plain_value import to_scalar


def hash_schema(schema: TableSchema) -> st.StructType:
    """Return the Spark schema of ``HashReader``: partition values, hash, bucket."""
    parts = [
        st.StructField(f"{rpc.PARTITION_COLUMN}{position}", spark_type(field))
        for position, field in enumerate(schema.types_of(schema.partition_keys))
    ]
    numbers = [st.StructField(name, st.IntegerType(), nullable=False) for name in (rpc.HASH_COLUMN, rpc.BUCKET_COLUMN)]
    return st.StructType([*parts, *numbers])


@dataclass
class HashFile(ds.InputPartition):  # type: ignore[misc]  # Spark's own annotations are not followed
    """A hash index file."""

    entry: str
    """``IndexManifestEntry`` as JSON."""


class HashReader(ds.DataSourceReader):  # type: ignore[misc]  # as above
    """Reader of the hash index files of a snapshot."""

    def __init__(self, path: str, snapshot_id: int | None, schema: st.StructType) -> None:
        self.path = path
        self.snapshot_id = snapshot_id
        self.schema = schema

    def partitions(self) -> list[ds.InputPartition]:
        """Return a partition for each hash index file."""
        with attach_error_notes():
            store = self._store()
            entries = [] if self.snapshot_id is None else store.index_entries(store.snapshots.get(self.snapshot_id))
            return [HashFile(entry.model_dump_json()) for entry in entries if entry.index_type == HASH]

    def read(self, partition: ds.InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the hashes of a file with its partition and bucket."""
        if isinstance(partition, HashFile):
            with attach_error_notes():
                yield self._read(IndexManifestEntry.model_validate_json(partition.entry))

    def _read(self, entry: IndexManifestEntry) -> pa.RecordBatch:
        store = self._store()
        hashes = pa.array(read_hashes(store, entry))
        types = store.schema.types_of(store.schema.partition_keys)
        values = zip(store.partition.decode(entry.partition), types, strict=True)
        parts = [pa.repeat(to_scalar(value, data_type.column_type), len(hashes)) for value, data_type in values]
        columns = [*parts, hashes, pa.repeat(pa.scalar(entry.bucket, pa.int32()), len(hashes))]
        return cast_for_spark(pa.record_batch(columns, names=self.schema.names), arrow_for_spark(self.schema))

    def _store(self) -> FileStore:
        return open_engine(self.path).store()

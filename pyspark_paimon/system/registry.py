"""Registry of the system tables of metadata."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from manifest.schema.table_schema import TableSchema
from manifest.snapshot.snapshot import Snapshot
from manifest.store import FileStore
from manifest.types.data_type import DataField
from pyspark_paimon.system import files, history
from pyspark_paimon.system.columns import system_schema


@dataclass(frozen=True)
class MetadataTable:
    """Columns and rows of a system table.

    make: Returns the rows at a snapshot. None: the table has no snapshot.
    of_state: Whether the rows depend on the snapshot.
    """

    fields: tuple[DataField, ...]
    make: Callable[[FileStore, Snapshot | None], Iterable[tuple[Any, ...]]]
    of_state: bool = False

    @property
    def schema(self) -> TableSchema:
        """The columns as a table schema."""
        return system_schema(self.fields)

    def rows(self, store: FileStore, snapshot: Snapshot | None) -> pa.Table:
        """Return all rows."""
        arrow_schema = self.schema.arrow  # one row for each file, snapshot or similar: few enough for memory
        rows = list(self.make(store, snapshot))
        if not rows:
            return arrow_schema.empty_table()
        columns = zip(*rows, strict=True)
        return pa.Table.from_arrays(
            [pa.array(column, field.type) for column, field in zip(columns, arrow_schema, strict=True)], schema=arrow_schema
        )


METADATA: Mapping[str, MetadataTable] = {
    "aggregation_fields": MetadataTable(history.AGGREGATION_FIELDS, history.aggregation_rows),
    "branches": MetadataTable(history.BRANCH_FIELDS, history.branch_rows),
    "buckets": MetadataTable(files.BUCKET_FIELDS, files.bucket_rows, of_state=True),
    "consumers": MetadataTable(history.CONSUMER_FIELDS, history.consumer_rows),
    "file_key_ranges": MetadataTable(files.KEY_RANGE_FIELDS, files.key_range_rows, of_state=True),
    "files": MetadataTable(files.FILE_FIELDS, files.data_file_rows, of_state=True),
    "manifests": MetadataTable(files.MANIFEST_FIELDS, files.manifest_rows, of_state=True),
    "options": MetadataTable(history.OPTION_FIELDS, history.option_rows),
    "partitions": MetadataTable(files.PARTITION_FIELDS, files.partition_rows, of_state=True),
    "schemas": MetadataTable(history.SCHEMA_FIELDS, history.schema_rows),
    "snapshots": MetadataTable(history.SNAPSHOT_FIELDS, history.snapshot_rows),
    "statistics": MetadataTable(history.STATISTICS_FIELDS, history.statistics_rows, of_state=True),
    "table_indexes": MetadataTable(files.INDEX_FIELDS, files.index_rows, of_state=True),
    "tags": MetadataTable(history.TAG_FIELDS, history.tag_rows),
}

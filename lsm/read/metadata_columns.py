"""Read of a split with metadata columns: file, position, partition, bucket and row id of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.tree import TRUE, Predicate, columns_of
from lsm.arrow.limit import limit_rows
from lsm.arrow.row_kind import retracts
from lsm.deletion_vectors.reader import dead_rows
from lsm.keys.key_set import KeySet
from lsm.keys.sort import VALUE_KIND
from lsm.read.column_files import drop_dead
from lsm.read.file_filter import FileFilter
from lsm.read.metrics import ReadReport
from lsm.read.split import SplitRead
from lsm.scan.other_branch import branch_of
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta
from manifest.entry.row_ranges import range_groups
from manifest.io.errors import UnsupportedTable
from manifest.schema.metadata_columns import (
    BUCKET,
    FILE_PATH,
    IN_FILES,
    OF_ROWS,
    PARTITION,
    ROW_ID,
    ROW_INDEX,
    metadata_fields,
    metadata_names,
)
from manifest.store import FileStore
from sparkexpr.values.arrays import arrow_array
from sparkexpr.values.plain_value import to_scalar


def read_with_metadata(
    store: FileStore,
    split: DataSplit,
    *,
    columns: Sequence[str],
    predicate: Predicate | None,
    keys: KeySet | None = None,
    condition: Predicate | None = None,
    limit: int | None = None,
    report: ReadReport | None = None,
) -> Iterator[Any]:
    """Yield the rows of a split with metadata columns.

    Arguments are as for ``read_split``. ``keys`` and ``condition`` say the same as ``predicate``.

    Raises:
        UnsupportedTable: Rows of a merge are asked for their file.
    """
    counters = ReadReport() if report is None else report
    if split.branch is not None:
        other, unbranched_split = branch_of(store, split.branch), split.model_copy(update={"branch": None})
        read = _MetadataRead(other, unbranched_split, tuple(columns), predicate, None, predicate, counters)
    else:
        read = _MetadataRead(store, split, tuple(columns), predicate, keys, condition, counters)
    fields = {**metadata_fields(store.schema), **{field.name: field for field in store.schema.fields}}
    schema = pa.schema([fields[name].arrow_field for name in columns])
    for rows in limit_rows(read.batches(), limit):
        counters.rows_returned += rows.num_rows
        yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


@dataclass(frozen=True)
class _MetadataRead:
    store: FileStore
    split: DataSplit
    columns: tuple[str, ...]
    predicate: Predicate | None
    keys: KeySet | None
    condition: Predicate | None
    report: ReadReport

    def batches(self) -> Iterator[Any]:
        metadata_columns = set(metadata_names(self.columns, self.store.schema))
        if not metadata_columns & (IN_FILES | OF_ROWS):
            condition = TRUE if self.condition is None else self.condition
            for batch in SplitRead(self.store, self.split, self._stored, condition, self.report, keys=self.keys).batches():
                yield self._complete(batch, {})
            return
        if self.store.schema.is_primary_key_table and not self.split.raw_convertible:
            raise UnsupportedTable(
                f"{self.store.root}: rows of bucket {self.split.bucket} are merged from several files, so they have no "
                f"{' and no '.join(sorted(metadata_columns & IN_FILES))}; compact the table fully, set 'deletion-vectors.enabled', or scan with "
                "read_optimized=True"
            )
        tracked = all(file.first_row_id is not None for file in self.split.files)
        if metadata_columns & OF_ROWS and not tracked:
            raise UnsupportedTable(f"{self.store.root}: some data files have no row ids; they were written without row tracking")
        if tracked and not self.store.schema.is_primary_key_table:
            for group in range_groups(self.split.files):
                yield from self._by_row_ids(group, metadata_columns)
        else:
            for file in self.split.files:
                yield from self._alone(file) if ROW_INDEX not in metadata_columns else self._numbered(file)

    @property
    def _stored(self) -> tuple[str, ...]:
        metadata_columns = metadata_fields(self.store.schema)
        return tuple(name for name in self.columns if name not in metadata_columns)

    def _read(self, columns: tuple[str, ...]) -> SplitRead:
        return SplitRead(self.store, self.split, columns, TRUE if self.predicate is None else self.predicate, self.report)

    def _alone(self, file: DataFileMeta) -> Iterator[Any]:
        """Yield the filtered rows of a file."""
        read = self._read(self._stored).alone(file)
        for batch in read.batches():
            yield self._complete(batch, {FILE_PATH: read.path})

    def _numbered(self, file: DataFileMeta) -> Iterator[Any]:
        """Yield the filtered rows of a file with their positions.

        All rows are decoded: a filter or an index would lose the positions.
        """
        wanted, schema = TRUE if self.predicate is None else self.predicate, self.store.schema
        needed = [*self._stored, *columns_of(wanted), *([VALUE_KIND] if schema.kind.has_row_kinds else [])]
        file_read = self._read(tuple(dict.fromkeys(needed))).alone(file)
        vector = file_read.deletion_file
        dead = None if vector is None else dead_rows(self.store.file_io, vector)
        read = replace(file_read, wanted=FileFilter(self.store), deletion_file=None, drop_retracts=False, top=None, use_index=False)
        position = 0
        for batch in read.batches():
            index = pa.array(np.arange(position, position + batch.num_rows, dtype=np.int64))
            rows = _with_column(batch, ROW_INDEX, index)
            rows = rows if dead is None else drop_dead(rows, dead, position)
            if schema.kind.has_row_kinds:
                rows = rows.filter(arrow_array(~retracts(rows.column(VALUE_KIND))))
            rows = rows if wanted == TRUE else rows.filter(mask(wanted, rows, schema.column_types))
            position += batch.num_rows
            yield self._complete(rows, {FILE_PATH: file_read.path})

    def _by_row_ids(self, group: Sequence[DataFileMeta], metadata_columns: set[str]) -> Iterator[Any]:
        """Yield the rows of a range of row ids.

        The position is that of the row id in its file.
        """
        if len(group) > 1 and metadata_columns & IN_FILES:
            raise UnsupportedTable(
                f"{self.store.root}: the columns of rows {group[0].first_row_id} and after are in {len(group)} files, so the rows have no "
                f"{' and no '.join(sorted(metadata_columns & IN_FILES))}"
            )
        read = self._read(tuple(dict.fromkeys([*self._stored, *sorted(metadata_columns & OF_ROWS), ROW_ID])))
        path, first = read.alone(group[0]).path, group[0].first_row_id or 0
        for batch in read.by_columns(group).batches():
            index = pa.compute.subtract(batch.column(ROW_ID), pa.scalar(first, pa.int64()))
            yield self._complete(_with_column(batch, ROW_INDEX, index), {FILE_PATH: path})

    def _complete(self, batch: Any, constants: dict[str, str]) -> Any:
        """Return the columns of the read in order."""
        arrays = []
        for name in self.columns:
            if name in batch.schema.names:
                arrays.append(batch.column(name))
            elif name == PARTITION:
                arrays.append(pa.repeat(self._partition, batch.num_rows))
            elif name == BUCKET:
                arrays.append(pa.repeat(pa.scalar(self.split.bucket, pa.int32()), batch.num_rows))
            else:
                arrays.append(pa.repeat(pa.scalar(constants[name], pa.string()), batch.num_rows))
        return pa.RecordBatch.from_arrays(arrays, list(self.columns))

    @property
    def _partition(self) -> pa.Scalar:
        schema = self.store.schema
        values = self.store.partition.decode(self.split.partition)
        scalars = [
            to_scalar(value, kind.column_type).cast(kind.arrow) if value is not None else pa.scalar(None, kind.arrow)
            for value, kind in zip(values, schema.partition_types, strict=True)
        ]
        fields = [schema.arrow.field(name) for name in schema.partition_keys]
        return pa.StructArray.from_arrays([pa.repeat(scalar, 1) for scalar in scalars], fields=fields)[0]


def _with_column(batch: Any, name: str, values: Any) -> Any:
    if not batch.num_columns:
        return pa.RecordBatch.from_arrays([values], [name])
    return batch.append_column(name, values)

"""Reading one data file: selection by index and deletion vector, row groups by statistics, filter columns first.

What comes out are rows of the table's schema that satisfy the predicate exactly; what is not needed for that is not decoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyroaring import BitMap

from fileindex.column_type import ColumnType, Plain
from fileindex.container import ContainerReader
from fileindex.evaluate import evaluate
from fileindex.predicate import FALSE, TRUE, Predicate, columns_of
from fileindex.result import RowSet
from fileindex.roaring import all_rows
from lsm.deletion_vectors import DeletionFile, dead_rows
from lsm.evolution import SchemaMapping, column_types
from lsm.file_schema import KIND_FIELD, SEQUENCE_FIELD
from lsm.parquet_read import BATCH_BYTES, ParquetDataFile
from lsm.read_report import ReadReport
from lsm.row_group_read import RowGroupRead, may_have_retracts
from lsm.scan_filters import bind_constants
from lsm.sort_key import SEQUENCE_NUMBER, VALUE_KIND
from manifest.data_file import DataFileMeta
from manifest.errors import CorruptFile, UnsupportedTable
from manifest.store import FileStore

PARQUET = "parquet"


@dataclass(frozen=True)
class DataFileRead:
    """One data file to read.

    Args:
        store: the table.
        partition: the file's partition, serialised.
        bucket: its bucket.
        file: its metadata.
        columns: names to return, in order; ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` too, of a primary-key table.
        predicate: rows to return, on the table's columns.
        deletion_file: where its deletion vector lies, or the dead positions themselves.
        drop_retracts: leave out ``-U`` and ``-D`` rows: no other file holds a version of their keys.
        use_index: let a file index select rows; only right where every version of a key is in this file.
        report: counters to add to.
        batch_bytes: about as many bytes as a batch may have; a merge of many runs holds a batch of each.
    """

    store: FileStore
    partition: bytes
    bucket: int
    file: DataFileMeta
    columns: Sequence[str]
    predicate: Predicate = TRUE
    deletion_file: DeletionFile | BitMap | None = None
    drop_retracts: bool = False
    use_index: bool = True
    report: ReadReport = field(default_factory=ReadReport)
    batch_bytes: int = BATCH_BYTES

    def batches(self) -> Iterator[Any]:
        """Record batches, possibly empty ones, in file order.

        Raises:
            CorruptFile: the data file or its deletion vector is missing or not what the metadata promise.
            UnsupportedTable: the file's format, or the change of a column's type since it was written.
        """
        if self.file.format != PARQUET:
            raise UnsupportedTable(f"{self.path}: data files of format '{self.file.format}' are not read")
        self.report.files += 1
        self.mapping.check(self._needed)
        rows = self._selection() if self._residual != FALSE else BitMap()
        if rows is not None and not rows:
            self.report.files_skipped += 1
            return
        with ParquetDataFile(self.store.file_io, self.path, self.file.row_count) as data:
            yield from self._of_open(data, rows).batches()

    def _of_open(self, data: ParquetDataFile, rows: BitMap | None) -> RowGroupRead:
        present = set(data.schema.names)
        absent = [name for name, source in self.mapping.sources.items() if source is not None and source.name not in present]
        needed = {*self.columns, *([VALUE_KIND] if self.drop_retracts else [])}
        system = [name for name in (SEQUENCE_NUMBER, VALUE_KIND) if name in absent and name in needed]
        if system:
            raise CorruptFile(self.path, f"has no column '{system[0]}', so it is no file of a primary-key table")
        constants: dict[str, Plain] = {**dict.fromkeys(absent), **self.constants}
        residual = bind_constants(self.predicate, constants, self.types)
        drop = self.drop_retracts and may_have_retracts(data, self.file.delete_row_count)
        return RowGroupRead(data, self.mapping, self.types, self.columns, constants, residual, rows, drop, self.report, self.batch_bytes)

    @cached_property
    def path(self) -> str:
        """The data file."""
        values = self.store.partition.decode(self.partition)
        return self.store.paths.data_file(values, self.bucket, self.file.file_name, self.file.external_path)

    @cached_property
    def types(self) -> Mapping[str, ColumnType]:
        """The table's columns, as predicates know them."""
        return self.store.schema.column_types

    @cached_property
    def mapping(self) -> SchemaMapping:
        """Where the table's columns lie in the file."""
        system = (SEQUENCE_FIELD, KIND_FIELD)
        file_fields = self.store.schemas.get(self.file.schema_id).fields
        return SchemaMapping.of((*self.store.schema.fields, *system), (*file_fields, *system), self.file.schema_id)

    @cached_property
    def constants(self) -> dict[str, Plain]:
        """Columns with one value in the whole file: those of the partition, and null for those added later."""
        partition = self.store.partition
        known: dict[str, Plain] = dict.fromkeys(name for name, source in self.mapping.sources.items() if source is None)
        known.update(zip(partition.names, partition.decode(self.partition), strict=True))
        return known

    @cached_property
    def _residual(self) -> Predicate:
        return bind_constants(self.predicate, self.constants, self.types)

    @property
    def _needed(self) -> list[str]:
        return [*self.columns, *columns_of(self._residual)]

    def _selection(self) -> BitMap | None:
        """Positions of the rows that index and deletion vector leave; None for all."""
        rows = self._indexed_rows()
        if self.deletion_file is not None and (rows is None or rows):
            rows = (all_rows(self.file.row_count) if rows is None else rows) - dead_rows(self.store.file_io, self.deletion_file)
        return rows

    def _indexed_rows(self) -> BitMap | None:
        container = self._container() if self.use_index and self._residual != TRUE else None
        if container is None:
            return None
        file_types = column_types(self.store.schemas.get(self.file.schema_id).fields)
        predicate = self.mapping.to_file(self._residual)
        result = evaluate(predicate, container, file_types, self.file.row_count, self.report.index)
        if not result.remains:
            return BitMap()
        if not isinstance(result, RowSet):
            return None
        rows = result.rows & all_rows(self.file.row_count)
        self.report.rows_indexed += len(rows)
        return None if len(rows) == self.file.row_count else rows

    def _container(self) -> ContainerReader | None:
        """The file's indexes: embedded, or beside it; None, and a warning, if they cannot be reached."""
        if not self.store.options.file_index_read_enabled:
            return None
        if self.file.embedded_index is not None:
            return ContainerReader.of(self.file.embedded_index)
        if self.file.index_file is None:
            return None
        path, file_io = self.store.paths.extra_file(self.path, self.file.index_file), self.store.file_io
        try:
            return ContainerReader(lambda offset, length: file_io.read_range(path, offset, length), file_io.size(path))
        except OSError as error:
            self.report.index.warnings[f"{path}: {error.strerror or error}"] += 1
            return None


__all__ = ["DataFileRead"]

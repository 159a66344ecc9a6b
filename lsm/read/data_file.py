"""Read of one data file.

Steps: selection by index and deletion vector, row groups by statistics, then filter columns before other columns.
Returns rows of the table's schema that match the predicate exactly. Columns and pages without use are not decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from fileindex.format.bsi import NumberSummary
from fileindex.format.container import NGRAMS
from fileindex.predicate.tree import FALSE, TRUE, ColumnRef, columns_of, leaves
from lsm.data_file_format import check_format, open_data_file
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.formats.open_data_file import OpenDataFile
from lsm.keys.order_by import RowOrder
from lsm.keys.sort import INSERT, SEQUENCE_NUMBER, VALUE_KIND
from lsm.parquet.expected_footer import ExpectedFooter
from lsm.parquet.reader import rows_only
from lsm.read.file_filter import FileFilter, FilterInside
from lsm.read.index_selection import FileIndex, Selection, open_container
from lsm.read.metrics import ReadReport
from lsm.read.row_group import RowGroupRead, may_have_retracts
from lsm.scan.predicates import bind_constants
from lsm.scan.splits import is_counted
from lsm.schema.evolution import SchemaMapping, column_types
from lsm.secondary_index.selection import AnsweredFilter, IndexSelection
from manifest.entry.data_file import DataFileMeta
from manifest.io.progress import FileProgress
from manifest.store import FileStore
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import Plain


@dataclass(frozen=True)
class DataFileRead:
    """Read of one data file.

    Args:
        store: Store of the table.
        partition: Serialised partition of the file.
        bucket: Bucket of the file.
        file: Metadata of the file.
        columns: Names to return, in order. May include ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` for a primary-key table.
        wanted: Filter, shared by files read together. None: all rows.
        deletion_file: Location of the deletion vector, or the positions of deleted rows.
        indexed: Rows that secondary indexes selected, for some filter.
        drop_retracts: Drop ``-U`` and ``-D`` rows. Requires that no other file has a version of their keys.
        top: Order and number of the first rows needed. More rows may be returned.
        use_index: Select rows by file index. Requires that all versions of each key are in this file.
        report: Counters to add to.
        batch_bytes: Approximate maximum size of a batch. A merge of many runs holds a batch of each.
        sequence: Replaces the sequence number of all rows, which is then not decoded.
        dictionaries: Columns whose texts may be dictionary arrays.
    """

    store: FileStore
    partition: bytes
    bucket: int
    file: DataFileMeta
    columns: Sequence[str]
    wanted: FileFilter | None = None
    deletion_file: DeletionFile | BitMap | None = None
    indexed: IndexSelection | None = None
    drop_retracts: bool = False
    top: tuple[RowOrder, int] | None = None
    use_index: bool = True
    report: ReadReport = field(default_factory=ReadReport)
    batch_bytes: int = field(default_factory=lambda: thresholds.batch_bytes)
    sequence: int | None = None
    dictionaries: Collection[str] = ()

    def batches(self) -> Iterator[Any]:
        """Yield record batches, possibly empty, in file order.

        Raises:
            CorruptFile: The data file or its deletion vector is missing, or does not match the metadata.
            UnsupportedTable: The file format or a type change of a column is not supported.
        """
        progress = FileProgress(self.store.listener, self.file.file_size, self.file.row_count)
        check_format(self.path)
        self.report.files += 1
        self.mapping.check(self._needed)
        if self.selection.is_empty:
            self.report.files_skipped += 1
        elif not self.columns and (count := self.known_count) is not None:
            self.report.files_counted += 1
            yield rows_only(count)
        else:
            with open_data_file(self.store.file_io, self.path, self.expected, self.store.cache.files) as data:
                yield from self._of_open(data, self.selection, progress).batches()
        progress.end()

    def at(self, rows: Int64s) -> Iterator[Any]:
        """Yield the rows at ascending positions, without any filter."""
        progress = FileProgress(self.store.listener, self.file.file_size, self.file.row_count)
        self.report.files += 1
        with open_data_file(self.store.file_io, self.path, self.expected, self.store.cache.files) as data:
            yield from self._of_open(data, Selection(None, TRUE), progress).at(rows)
        progress.end()

    def opened(self, data: OpenDataFile, columns: Sequence[str]) -> RowGroupRead:
        """Return the read of some columns of all rows of the open file."""
        return RowGroupRead(data, self.mapping, self.filter.types, columns, {}, TRUE, None, False, self.report)

    def _of_open(self, data: OpenDataFile, selection: Selection, progress: FileProgress) -> RowGroupRead:
        present = set(data.schema.names)
        absent = [name for name, source in self.mapping.sources.items() if source is not None and source.name not in present]
        needed = {*self.columns, *([VALUE_KIND] if self.drop_retracts else [])}
        constants: dict[str, Plain] = {**dict.fromkeys(absent), **self._inside.constants}
        residual = bind_constants(selection.residual, constants, self.filter.types)
        retracts = (self.drop_retracts or VALUE_KIND in needed) and may_have_retracts(data, self.file.delete_row_count)
        if VALUE_KIND in needed and not retracts:
            constants[VALUE_KIND] = INSERT
        if self.sequence is not None:
            constants[SEQUENCE_NUMBER] = self.sequence
        return RowGroupRead(
            data,
            self.mapping,
            self.filter.types,
            self.columns,
            constants,
            residual,
            selection.rows,
            self.drop_retracts and retracts,
            self.report,
            self.batch_bytes,
            self.dictionaries,
            progress,
        )

    @cached_property
    def path(self) -> str:
        """Path of the data file."""
        values = self.store.partition.decode(self.partition)
        return self.store.paths.data_file(values, self.bucket, self.file.file_name, self.file.external_path)

    @cached_property
    def expected(self) -> ExpectedFooter:
        """Expected properties of the data file."""
        return ExpectedFooter(self.file, self.store.schemas.get(self.file.schema_id), self.store.partition.names)

    @cached_property
    def filter(self) -> FileFilter:
        """Filter of rows, without what secondary indexes prove."""
        return self._given_filter if self._answered is None else self._given_filter.narrowed(self._answered.residual)

    @cached_property
    def _given_filter(self) -> FileFilter:
        return FileFilter(self.store) if self.wanted is None else self.wanted

    @cached_property
    def _answered(self) -> AnsweredFilter | None:
        """What secondary indexes say about this filter and file. None: nothing."""
        if self.indexed is None or not self.use_index:
            return None
        return self.indexed.answer(self.file.file_name, self._given_filter.predicate)

    @cached_property
    def mapping(self) -> SchemaMapping:
        """Mapping from table columns to file columns."""
        return self.filter.mapping(self.file.schema_id)

    @property
    def constants(self) -> Mapping[str, Plain]:
        """Columns with one value in every row.

        Partition columns, and nulls of columns added later.
        """
        return self._inside.constants

    @cached_property
    def _inside(self) -> FilterInside:
        return self.filter.inside(self.partition, self.file.schema_id)

    @property
    def _needed(self) -> list[str]:
        return [*self.columns, *columns_of(self._inside.residual)]

    @cached_property
    def selection(self) -> Selection:
        """Rows left by statistics, index and deletion vector.

        Computed without opening the data file.
        """
        rows = None if self._answered is None else self._answered.rows
        selection = Selection(rows, self._inside.unproven(self.file))
        index = self._index() if selection.residual != FALSE else None
        if index is not None and selection.residual != TRUE:
            selection = index.select(selection.residual).within(rows)
        if self.deletion_file is not None and not selection.is_empty:
            selection = selection.without(dead_rows(self.store.file_io, self.deletion_file), self.file.row_count)
        if self.top is not None and index is not None and selection.residual == TRUE and self._has_no_retracts:
            selection = Selection(index.first(*self.top, selection.rows), TRUE)
        return selection

    @property
    def known_count(self) -> int | None:
        """Number of rows, if known without opening the data file."""
        selection = self.certain()
        return None if selection is None else selection.count(self.file.row_count)

    def certain(self, *, footer: bool = False) -> Selection | None:
        """Return the selection if it is exactly the result.

        None: rows must be read. With ``footer`` the data file may be opened to check for retracts.
        """
        # Metadata alone prove the absence of retracts only for compacted files.
        selection = self.selection
        if selection.is_empty:
            return Selection(BitMap(), FALSE)
        if selection.residual != TRUE or not (self._has_no_retracts or (footer and self._retracts_nothing())):
            return None
        return selection

    @property
    def _has_no_retracts(self) -> bool:
        """Whether metadata prove that no retract must be dropped."""
        return not self.drop_retracts or (self.file.delete_row_count == 0 and is_counted(self.file))

    def _retracts_nothing(self) -> bool:
        with open_data_file(self.store.file_io, self.path, self.expected, self.store.cache.files) as data:
            return not may_have_retracts(data, self.file.delete_row_count)

    def numbers(self, column: str, rows: BitMap | None) -> NumberSummary | None:
        """Return the summary of a numeric column from an index.

        ``rows`` None means all rows. None: no index has an exact summary.
        """
        index = self._opened_index
        return None if index is None else index.numbers(column, rows)

    def value_counts(self, column: ColumnRef, rows: BitMap | None) -> tuple[Any, Any] | None:
        """Return the values of a column and the number of rows with each, from an index.

        ``rows`` None means all rows. Null is a value. None: no index has the values.
        """
        index = self._opened_index
        return None if index is None else index.value_counts(column, rows)

    def _index(self) -> FileIndex | None:
        """Return the file index if it can select rows."""
        residual = self._inside.residual
        if not self.use_index or (self.top is None and (residual == TRUE or not (leaves(residual) or self._searches_texts))):
            return None
        return self._opened_index

    @property
    def _searches_texts(self) -> bool:
        """Whether files may have n-gram filters, which alone serve computed predicates."""
        return any(spec.index_type == NGRAMS for spec in self.store.schema.file_index.specs)

    @cached_property
    def _opened_index(self) -> FileIndex | None:
        container = open_container(self.store, self.path, self.file, self.report)
        if container is None:
            return None
        types = column_types(self.store.schemas.get(self.file.schema_id).fields)
        return FileIndex(container, self.mapping, types, self.file.row_count, self.report)

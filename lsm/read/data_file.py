"""Reading one data file: selection by index and deletion vector, row groups by statistics, filter columns first.

What comes out are rows of the table's schema that satisfy the predicate exactly; what is not needed for that is not decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyroaring import BitMap

from fileindex.base.column_type import Plain
from fileindex.base.lazy import cached_property
from fileindex.base.thresholds import thresholds
from fileindex.format.bsi import NumberSummary
from fileindex.predicate.tree import FALSE, TRUE, columns_of
from lsm.data_file_format import check_format, open_data_file
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.formats.open_data_file import OpenDataFile
from lsm.keys.order_by import RowOrder
from lsm.keys.sort import INSERT, SEQUENCE_NUMBER, VALUE_KIND
from lsm.parquet.footer_promise import FooterPromise
from lsm.parquet.reader import rows_only
from lsm.read.file_filter import FileFilter, FilterInside
from lsm.read.index_selection import FileIndex, Selection, open_container
from lsm.read.metrics import ReadReport
from lsm.read.row_group import RowGroupRead, may_have_retracts
from lsm.scan.predicates import bind_constants
from lsm.scan.splits import is_counted
from lsm.schema.evolution import SchemaMapping, column_types
from manifest.entry.data_file import DataFileMeta
from manifest.io.meter import FileProgress
from manifest.store import FileStore


@dataclass(frozen=True)
class DataFileRead:
    """One data file to read.

    Args:
        store: the table.
        partition: the file's partition, serialised.
        bucket: its bucket.
        file: its metadata.
        columns: names to return, in order; ``_SEQUENCE_NUMBER`` and ``_VALUE_KIND`` too, of a primary-key table.
        wanted: rows to return, shared by the files that are read together; None: all.
        deletion_file: where its deletion vector lies, or the dead positions themselves.
        drop_retracts: leave out ``-U`` and ``-D`` rows: no other file holds a version of their keys.
        top: only the first rows in this order are wanted, so many of them; more may come.
        use_index: let a file index select rows; only right where every version of a key is in this file.
        report: counters to add to.
        batch_bytes: about as many bytes as a batch may have; a merge of many runs holds a batch of each.
        sequence: stands for the sequence numbers of all rows, which are not decoded then.
        dictionaries: columns whose texts may come as dictionaries.
    """

    store: FileStore
    partition: bytes
    bucket: int
    file: DataFileMeta
    columns: Sequence[str]
    wanted: FileFilter | None = None
    deletion_file: DeletionFile | BitMap | None = None
    drop_retracts: bool = False
    top: tuple[RowOrder, int] | None = None
    use_index: bool = True
    report: ReadReport = field(default_factory=ReadReport)
    batch_bytes: int = field(default_factory=lambda: thresholds().batch_bytes)
    sequence: int | None = None
    dictionaries: Collection[str] = ()

    def batches(self) -> Iterator[Any]:
        """Record batches, possibly empty ones, in file order.

        Raises:
            CorruptFile: the data file or its deletion vector is missing or not what the metadata promise.
            UnsupportedTable: the file's format, or the change of a column's type since it was written.
        """
        progress = FileProgress(self.store.meter, self.file.file_size, self.file.row_count)
        check_format(self.path)
        self.report.files += 1
        self.mapping.check(self._needed)
        if self.selection.is_empty:
            self.report.files_skipped += 1
        elif not self.columns and (count := self.known_count) is not None:
            self.report.files_counted += 1
            yield rows_only(count)
        else:
            with open_data_file(self.store.file_io, self.path, self.promise, self.store.cache.files) as data:
                yield from self._of_open(data, self.selection, progress).batches()
        progress.end()

    def _of_open(self, data: OpenDataFile, chosen: Selection, progress: FileProgress) -> RowGroupRead:
        present = set(data.schema.names)
        absent = [name for name, source in self.mapping.sources.items() if source is not None and source.name not in present]
        needed = {*self.columns, *([VALUE_KIND] if self.drop_retracts else [])}
        constants: dict[str, Plain] = {**dict.fromkeys(absent), **self._inside.constants}
        residual = bind_constants(chosen.residual, constants, self.filter.types)
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
            chosen.rows,
            self.drop_retracts and retracts,
            self.report,
            self.batch_bytes,
            self.dictionaries,
            progress,
        )

    @cached_property
    def path(self) -> str:
        """The data file."""
        values = self.store.partition.decode(self.partition)
        return self.store.paths.data_file(values, self.bucket, self.file.file_name, self.file.external_path)

    @cached_property
    def promise(self) -> FooterPromise:
        """What the data file must be."""
        return FooterPromise(self.file, self.store.schemas.get(self.file.schema_id), self.store.partition.names)

    @cached_property
    def filter(self) -> FileFilter:
        """What rows are wanted."""
        return FileFilter(self.store) if self.wanted is None else self.wanted

    @cached_property
    def mapping(self) -> SchemaMapping:
        """Where the table's columns lie in the file."""
        return self.filter.mapping(self.file.schema_id)

    @property
    def constants(self) -> Mapping[str, Plain]:
        """Columns that have the same value in every row: those of the partition, and nulls of columns that came later."""
        return self._inside.constants

    @cached_property
    def _inside(self) -> FilterInside:
        return self.filter.inside(self.partition, self.file.schema_id)

    @property
    def _needed(self) -> list[str]:
        return [*self.columns, *columns_of(self._inside.residual)]

    @cached_property
    def selection(self) -> Selection:
        """The rows that statistics, index and deletion vector leave, found out without opening the data file."""
        found = Selection(None, self._inside.unproven(self.file))
        index = self._index() if found.residual != FALSE else None
        if index is not None and found.residual != TRUE:
            found = index.select(found.residual)
        if self.deletion_file is not None and not found.is_empty:
            found = found.without(dead_rows(self.store.file_io, self.deletion_file), self.file.row_count)
        if self.top is not None and index is not None and found.residual == TRUE and self._has_no_retracts:
            found = Selection(index.first(*self.top, found.rows), TRUE)
        return found

    @property
    def known_count(self) -> int | None:
        """Rows that ``batches`` gives in all, where that is known without opening the data file."""
        chosen = self.certain()
        return None if chosen is None else chosen.count(self.file.row_count)

    def certain(self, *, footer: bool = False) -> Selection | None:
        """The selection, where it is known to be exactly the rows that ``batches`` gives; ``footer``: the data file may be opened for that.

        Metadata alone are taken at their word for compacted files only: else the footer shows whether rows are retracted.
        """
        chosen = self.selection
        if chosen.is_empty:
            return Selection(BitMap(), FALSE)
        if chosen.residual != TRUE or not (self._has_no_retracts or (footer and self._retracts_nothing())):
            return None
        return chosen

    @property
    def _has_no_retracts(self) -> bool:
        """Whether no row is to be dropped as a retraction, as far as metadata can be taken at their word."""
        return not self.drop_retracts or (self.file.delete_row_count == 0 and is_counted(self.file))

    def _retracts_nothing(self) -> bool:
        with open_data_file(self.store.file_io, self.path, self.promise, self.store.cache.files) as data:
            return not may_have_retracts(data, self.file.delete_row_count)

    def numbers(self, column: str, rows: BitMap | None) -> NumberSummary | None:
        """What the numbers of a column of ``rows`` (None: all) come to, if an index tells it exactly."""
        index = self._opened_index
        return None if index is None else index.numbers(column, rows)

    def _index(self) -> FileIndex | None:
        """The file's index, if it may select rows and there is something to ask it."""
        if not self.use_index or (self._inside.residual == TRUE and self.top is None):
            return None
        return self._opened_index

    @cached_property
    def _opened_index(self) -> FileIndex | None:
        container = open_container(self.store, self.path, self.file, self.report)
        if container is None:
            return None
        types = column_types(self.store.schemas.get(self.file.schema_id).fields)
        return FileIndex(container, self.mapping, types, self.file.row_count, self.report)


__all__ = ["DataFileRead"]

"""Read of a split.

Files are read separately if every key has one version, otherwise sorted runs are merged. Paimon's ``RawFileSplitRead`` and
``MergeFileSplitRead``. Memory is one batch per run, whatever the size of the split.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.projection import only_columns
from fileindex.predicate.tree import TRUE, Predicate, columns_of, computed_predicates
from lsm.arrow.limit import limit_rows
from lsm.arrow.text_form import plain_texts
from lsm.deletion_vectors.reader import DeletionFile, dead_rows
from lsm.keys.key_set import KeySet
from lsm.keys.order_by import RowOrder
from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND, SortKey
from lsm.keys.sorted_keys import SortedKeys
from lsm.levels.sorted_runs import Section, SortedRun, interval_partition, key_decoder, level_runs
from lsm.merge.function import Deduplicate, FirstRow, LookupMerge, MergeFunction, combines_versions, merge_function_for, with_level
from lsm.parquet.reader import rows_only
from lsm.read.data_file import DataFileRead
from lsm.read.file_filter import FileFilter
from lsm.read.keyed_read import KeyedRead
from lsm.read.metrics import ReadReport
from lsm.read.ordered_runs import OrderedRuns
from lsm.read.split_keys import keys_of_split
from lsm.scan.other_branch import branch_of
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta
from manifest.entry.row_ranges import range_groups
from manifest.io.errors import UnsupportedTable
from manifest.store import FileStore
from paimon_base.errors import UnknownColumn
from paimon_base.lazy import LazyModule, cached_property
from paimon_base.thresholds import thresholds

if TYPE_CHECKING:
    from lsm.merge import merge_iterator, selection
    from lsm.read import column_files, full_scan, key_candidates
else:  # files that are read alone need none of them
    merge_iterator = LazyModule("lsm.merge.merge_iterator")
    selection = LazyModule("lsm.merge.selection")
    column_files = LazyModule("lsm.read.column_files")
    full_scan = LazyModule("lsm.read.full_scan")
    key_candidates = LazyModule("lsm.read.key_candidates")

_COMPACTED = -1
"""A sequence number older than all others."""


def read_split(
    store: FileStore,
    split: DataSplit,
    *,
    columns: Sequence[str],
    predicate: Predicate | None = None,
    limit: int | None = None,
    top: tuple[RowOrder, int] | None = None,
    report: ReadReport | None = None,
    in_key_order: bool = False,
    dictionaries: Collection[str] = (),
    kinds: bool = False,
    keys: KeySet | None = None,
) -> Iterator[Any]:
    """Yield the rows of a split.

    Args:
        store: Store of the table. Its schema defines the result, whatever the schemas of the files.
        split: Split of a plan made with ``predicate``, or without a filter.
        columns: Names to return, in order. (): rows without columns, to count them.
        predicate: Exact filter of rows.
        limit: Maximum number of rows.
        top: Order and number of the first rows needed. Other rows are dropped if an index finds the first ones.
        report: Counters to add to.
        in_key_order: Return rows of a primary-key table in key order. False: any order.
        dictionaries: Columns whose texts may be dictionary arrays.
        kinds: For a primary-key table, keep delete rows too, and add ``_VALUE_KIND`` as the last column.
        keys: Return only rows with one of these primary keys. None: all.

    Yields:
        Non-empty record batches of ``store.schema.arrow``'s types.

    Raises:
        UnknownColumn: A column does not exist.
        CorruptFile: A file is missing or does not match the metadata; the message names it.
        UnsupportedTable: A file format or a type change is not supported.
    """
    if split.branch is not None:
        options = {"predicate": predicate, "limit": limit, "report": report, "in_key_order": in_key_order, "kinds": kinds, "keys": keys}
        yield from _of_branch(store, split, columns, **options)
        return
    for name in (*columns, *columns_of(predicate)):
        if name not in store.schema.column_types:
            raise UnknownColumn(name, tuple(store.schema.names))
    counters = ReadReport() if report is None else report
    condition = TRUE if predicate is None else predicate
    named = (*columns, VALUE_KIND) if kinds else tuple(columns)
    read = SplitRead(store, split, named, condition, counters, top, in_key_order, frozenset(dictionaries), kinds, limit, keys)
    for rows in limit_rows(read.batches(), limit):
        counters.rows_returned += rows.num_rows
        yield rows


def _of_branch(store: FileStore, split: DataSplit, columns: Sequence[str], **options: Any) -> Iterator[Any]:
    """Read a split of another branch with that branch's schemas.

    The result has this table's columns. ``options`` are arguments of ``read_split``.
    """
    other = branch_of(store, split.branch or "")
    fields = {field.name: field for field in store.schema.arrow}
    for batch in read_split(other, split.model_copy(update={"branch": None}), columns=columns, **options):
        schema = pa.schema([fields.get(field.name, field) for field in batch.schema])
        yield pa.RecordBatch.from_arrays(batch.columns, schema=schema) if columns else batch


@dataclass(frozen=True)
class SplitRead:
    """Read of a split. Fields are as for ``read_split``."""

    store: FileStore
    split: DataSplit
    columns: tuple[str, ...]
    predicate: Predicate
    report: ReadReport = field(default_factory=ReadReport)
    top: tuple[RowOrder, int] | None = None
    in_key_order: bool = False
    dictionaries: frozenset[str] = frozenset()
    kinds: bool = False
    limit: int | None = None
    keys: KeySet | None = None

    def batches(self) -> Iterator[Any]:
        """Yield the rows of ``read_split`` without a limit."""
        files = self.report.files
        try:
            yield from self._batches()
        finally:
            # A search for keys and the merge after it read the same files.
            self.report.files = files + len(self.split.files)

    def index_reads(self) -> Iterator[list[DataFileRead]]:
        """Yield reads whose indexes decide whether files are opened.

        The files of a list are opened unless the selections of all its reads are empty. Files of no list are opened.
        """
        if self._sought is not None:
            return
        if self.split.raw_convertible:
            yield from ([self.alone(file)] for file in self.split.files)
        elif not self.store.schema.is_primary_key_table:
            groups = range_groups(self.split.files)
            yield from ([self.alone(group[0])] for group in groups if len(group) == 1 and group[0].write_cols is None)
        else:
            for section in interval_partition(self.split.files, key_decoder(self.store.schema.key_types)):
                files = [file for run in section for file in run.files]
                runs = self._in_order(files) if len(section) > 1 else None
                if len(section) == 1:
                    yield from ([self.alone(file)] for file in files)
                elif runs is not None and self._needs_no_merge(files, runs):
                    yield [self.alone(file) for file in files]
                else:
                    yield from islice(self._searches(files, merge_function_for(self.store.schema)), 1)

    def _batches(self) -> Iterator[Any]:
        if self._sought is not None and (runs := self._in_order(self.split.files)) is not None:
            yield from self._of_keys(runs, self._sought)
            return
        if self.split.raw_convertible:
            for file in self.split.files:
                yield from self.alone(file).batches()
            return
        if not self.store.schema.is_primary_key_table:
            for group in range_groups(self.split.files):
                read = self.alone(group[0]) if len(group) == 1 and group[0].write_cols is None else self.by_columns(group)
                yield from read.batches()
            return
        for section in interval_partition(self.split.files, key_decoder(self.store.schema.key_types)):
            if len(section) > 1:
                yield from self._merge(section)
            elif self._sought is not None:
                yield from self._of_keys(self._ordered(section), self._sought)
            else:
                for file in section[0].files:
                    yield from self.alone(file).batches()

    @cached_property
    def _sought(self) -> SortedKeys | None:
        """Keys in the split's partition, without partition columns."""
        return None if self.keys is None else keys_of_split(self.store, self.split, self.keys)

    def _in_order(self, files: Sequence[DataFileMeta]) -> OrderedRuns | None:
        """Return the runs of some files so that the first version of a key decides its result.

        None: versions must be merged, or their order is not known.
        """
        if self.split.raw_convertible:
            return self._ordered([SortedRun(tuple(files))])
        fold = merge_function_for(self.store.schema)
        if self.store.options.sequence_field or self.kinds or self.in_key_order:
            return None
        runs = level_runs(files)
        if isinstance(fold, Deduplicate) and fold.newest_wins:
            return self._ordered(runs) if _in_sequence(runs[::-1]) else None
        if isinstance(fold, FirstRow) and all(file.delete_row_count == 0 for file in files):
            fresh = [run for run in runs if run.files[0].level == 0][::-1]
            return self._ordered([*runs[len(fresh) :], *fresh]) if _in_sequence(fresh) else None
        return None

    def _ordered(self, runs: Sequence[SortedRun]) -> OrderedRuns:
        return OrderedRuns(runs, tuple(self.store.schema.trimmed_primary_keys), self.alone)

    def _of_keys(self, runs: OrderedRuns, keys: SortedKeys) -> Iterator[Any]:
        """Yield the rows with one of ``keys`` that match the filter."""
        needed = tuple(dict.fromkeys([*self.columns, *columns_of(self.predicate)]))
        yield from map(self._result, map(self._filter_exactly, runs.first_of(keys, needed)))

    def _unmerged(self, runs: OrderedRuns) -> Iterator[Any]:
        """Yield the rows that match the filter, from each run alone."""
        report = self.report if columns_of(self.predicate) else ReadReport()
        report.sections_searched += 1
        files = [file for run in runs.runs for file in run.files]
        report.rows_searched += sum(file.row_count for file in files)
        skipped = self.report.files_skipped
        yield from map(self._result, runs.matching(tuple(dict.fromkeys([*self.columns, *runs.names])), report))
        if self.report.files_skipped < skipped + len(files):
            self.report.files_skipped = skipped  # keys are searched in files without a match, too

    def _result(self, rows: Any) -> Any:
        return rows.select(list(self.columns)) if self.columns else rows_only(rows.num_rows)

    def _filter_exactly(self, rows: Any) -> Any:
        return rows if self.predicate == TRUE else rows.filter(mask(self.predicate, rows, self.store.schema.column_types))

    @cached_property
    def _filter(self) -> FileFilter:
        return FileFilter(self.store, self.predicate)

    def alone(self, file: DataFileMeta) -> DataFileRead:
        """Return the read of a single file.

        The file must have all versions of its keys.
        """
        return self._file(
            file,
            columns=self.columns,
            wanted=self._filter,
            drop_retracts=self.store.schema.kind.has_row_kinds and not self.kinds,
            top=self.top,
            report=self.report,
            dictionaries=self.dictionaries,
        )

    def _file(self, file: DataFileMeta, **options: Any) -> DataFileRead:
        """Return a read of a file. ``options`` are fields of ``DataFileRead``."""
        vector = self._deletion_files.get(file.file_name)
        place = self.store, self.split.partition, self.split.bucket, file
        return DataFileRead(*place, deletion_file=vector, indexed=self.split.index_selection, **options)

    def with_row_numbers(self) -> Iterator[Any]:
        """Yield the rows of a table with row tracking.

        The columns may include ``ROW_NUMBERS``.

        Raises:
            UnsupportedTable: A file has no row ids.
        """
        for file in self.split.files:
            if file.first_row_id is None:
                raise UnsupportedTable(f"{self.store.root}: data file {file.file_name} has no row ids; it was written without row tracking")
        for group in range_groups(self.split.files):
            yield from self.by_columns(group).batches()

    def by_columns(self, files: Sequence[DataFileMeta]) -> column_files.ColumnFilesRead:
        """Return the read of files with different columns.

        The files must have the same rows.
        """
        every = FileFilter(self.store)

        def read(file: DataFileMeta, columns: Sequence[str]) -> Iterator[Any]:
            return replace(self.alone(file), columns=columns, wanted=every, deletion_file=None, top=None, use_index=False).batches()

        def path(file: DataFileMeta) -> str:
            return self.alone(file).path

        vectors = [vector for file in files if (vector := self._deletion_files.get(file.file_name)) is not None]
        dead = BitMap.union(*(dead_rows(self.store.file_io, vector) for vector in vectors)) if vectors else None
        return column_files.ColumnFilesRead(self.store, files, path, self.columns, self.predicate, read, self.report, dead)

    @cached_property
    def _deletion_files(self) -> dict[str, DeletionFile]:
        vectors = self.split.deletion_files or ()
        return {file.file_name: vector for file, vector in zip(self.split.files, vectors, strict=False) if vector is not None}

    def _merge(self, section: Section) -> Iterator[Any]:
        """Yield the merged and filtered rows of a section."""
        schema, options = self.store.schema, self.store.options
        key = SortKey(tuple(schema.trimmed_primary_keys), options.sequence_field, options.sequence_descending)
        fold = merge_function_for(schema)
        value_columns = tuple(name for name in dict.fromkeys([*self.columns, *columns_of(self.predicate)]) if name != VALUE_KIND)
        values = dict.fromkeys([*fold.needed(value_columns), *key.columns, *key.sequence_fields])
        chooses = not combines_versions(fold)
        by_level = options.needs_lookup and not chooses
        by_masks = chooses and not self.in_key_order and not self.kinds
        columns = (*values, SEQUENCE_NUMBER, VALUE_KIND)
        files = [file for run in section for file in run.files]
        runs = self._in_order(files)
        if self._sought is None and runs is not None and self._needs_no_merge(files, runs):
            yield from self._unmerged(runs)
            return
        keys = self._candidates(files, fold) if self._sought is None else self._sought
        if keys is not None and not len(keys):
            return
        if keys is not None and runs is not None:
            yield from self._of_keys(runs, keys)
            return
        reads = self._runs(section, columns, dictionaries=columns if by_masks else (), compacted_first=isinstance(fold, FirstRow))
        versions = [self._rows(run, keys, by_level=by_level) for run in reads]
        if by_masks and isinstance(fold, Deduplicate | FirstRow):
            merged = selection.selection_vectors(versions, key, fold)
        else:
            merged = merge_iterator.merge_runs(versions, key, LookupMerge(fold) if by_level else fold, drop_delete=not self.kinds)
        skipped = self.report.files_skipped
        for rows in merged:
            # Filter after the merge: an older version may match although the newest does not.
            yield from _in_batches(self._filter_exactly(rows), self.columns, self.dictionaries)
        self.report.files_skipped = skipped  # no index skips a file of a merge

    def _needs_no_merge(self, files: Sequence[DataFileMeta], runs: OrderedRuns) -> bool:
        # A computed predicate may fail for a version that is hidden.
        large = sum(file.row_count for file in files) >= thresholds.candidate_rows
        return large and runs.few_searches and not computed_predicates(self.predicate)

    def _candidates(self, files: Sequence[DataFileMeta], fold: MergeFunction) -> SortedKeys | None:
        """Return the keys that may match. None: any key may."""
        rows = sum(file.row_count for file in files)
        opened = False
        for reads in self._searches(files, fold):
            candidates = key_candidates.candidate_keys(reads, rows, self.limit)
            opened = opened or not all(read.report.files_skipped for read in reads)
            for read in reads:
                if opened:
                    read.report.files_skipped = 0  # keys are searched in files without a match, too
                self.report.merge(read.report)
            if candidates is not None:
                self.report.sections_searched += 1
                self.report.rows_searched += rows
                self.report.candidate_keys += len(candidates)
                return candidates
        return None

    def _searches(self, files: Sequence[DataFileMeta], fold: MergeFunction) -> Iterator[list[DataFileRead]]:
        """Yield reads of a section's keys. Each list alone finds all keys that may match."""
        if sum(file.row_count for file in files) < thresholds.candidate_rows:
            return
        names = tuple(self.store.schema.trimmed_primary_keys)
        for predicate in key_candidates.version_filters(fold, self.predicate, self.store.schema):
            file_filter = FileFilter(self.store, predicate)
            # Threads search files, so each has a report of its own.
            yield [self._file(file, columns=names, wanted=file_filter, report=ReadReport()) for file in files]

    def _runs(
        self, section: Section, columns: tuple[str, ...], *, dictionaries: Collection[str], compacted_first: bool
    ) -> list[list[DataFileRead]]:
        """Return the reads of all possibly matching keys' versions.

        Oldest run first. With ``compacted_first`` rows above level 0 get the oldest sequence number, like in the next compaction.
        """
        by_key = FileFilter(self.store, only_columns(self.predicate, self.store.schema.primary_keys).inclusive)
        oldest_first = sorted(section, key=_age)
        in_sequence = _in_sequence(oldest_first)
        # If the sequence numbers of runs do not overlap, the age of a run replaces its rows' numbers.
        ages = [_age(run) if in_sequence else None for run in oldest_first]
        batch_bytes = full_scan.batch_bytes_of(full_scan.runs_that_count([run.size for run in section]))

        def read(file: DataFileMeta, age: int | None) -> DataFileRead:
            return replace(
                self.alone(file),
                columns=columns,
                wanted=by_key,
                drop_retracts=False,
                top=None,
                use_index=False,
                batch_bytes=batch_bytes,
                sequence=_COMPACTED if compacted_first and file.level > 0 else age,
                dictionaries=dictionaries if file.row_count >= thresholds.plain_text_rows else (),
            )

        return [[read(file, age) for file in run.files] for run, age in zip(oldest_first, ages, strict=True)]

    def _rows(self, run: Sequence[DataFileRead], keys: SortedKeys | None, *, by_level: bool = False) -> Iterator[Any]:
        """Yield the rows of a run with one of ``keys``. None: all.

        With ``by_level`` rows include their level.
        """
        for read in run:
            for batch in self._versions(read, keys):
                self.report.rows_merged += batch.num_rows
                yield with_level(batch, read.file.level) if by_level else batch

    def _versions(self, read: DataFileRead, keys: SortedKeys | None) -> Iterator[Any]:
        if keys is None:
            return read.batches()
        keyed = KeyedRead(read, keys, tuple(self.store.schema.trimmed_primary_keys))
        rows, _ = keyed.find(np.arange(len(keys)))
        return read.at(rows) if len(rows) else iter(())


def _age(run: SortedRun) -> int:
    return max([file.max_sequence_number for file in run.files])


def _in_sequence(oldest_first: Sequence[SortedRun]) -> bool:
    """Return whether the sequence numbers of runs ascend."""
    least = [min([file.min_sequence_number for file in run.files]) for run in oldest_first[1:]]
    return all(_age(older) < start for older, start in zip(oldest_first, least, strict=False))


def _in_batches(rows: Any, columns: Sequence[str], dictionaries: frozenset[str]) -> Iterator[Any]:
    if not columns:
        yield pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), rows.num_rows, [None]))
        return
    yield from plain_texts(rows.select(list(columns)), dictionaries).to_batches()

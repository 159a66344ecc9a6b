"""Measured effect of file indexes on filters.

Indexes are built in memory for a sample of the files that a filter reads. Nothing is written.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.build.options import FileIndexOptions, IndexSpec, option_key
from fileindex.build.writer import DataFileIndexWriter
from fileindex.format.container import ContainerReader, StoredIndex, write_index_container
from fileindex.format.registry import INDEX_TYPES
from fileindex.predicate.evaluate_rows import type_of
from fileindex.predicate.projection import Projection
from fileindex.predicate.required_texts import columns_required, required_texts
from fileindex.predicate.tree import ColumnRef, Leaf, Predicate, columns_of, computed_predicates, leaves
from fileindex.query.evaluate import answer_terms, evaluate
from fileindex.query.metrics import IndexMetrics
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet
from fileindex.sorted_index.build_options import SortedIndexKind, SortedIndexOptions
from fileindex.sorted_index.key_codec import supports
from fileindex.sorted_index.kinds import open_sorted_index, sorted_index_writer
from fileindex.sorted_index.payload_reader import SortedIndexReader
from fileindex.sorted_index.sorted_rows import SortedRows, sort_rows
from lsm.read.data_file import DataFileRead
from lsm.read.file_filter import FileFilter
from lsm.scan.plan import ScanPlan
from lsm.scan.splits import DataSplit
from manifest.entry.data_file import DataFileMeta
from manifest.schema.secondary_index import can_have_secondary_indexes, secondary_indexes
from manifest.store import FileStore
from paimon_base.errors import PaimonError
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType

INDEX_ADVICE = pa.schema(
    [
        pa.field("filter", pa.string(), nullable=False),
        pa.field("column_name", pa.string()),
        pa.field("index_type", pa.string()),
        pa.field("is_declared", pa.bool_()),
        pa.field("rows_skipped", pa.float64()),
        pa.field("pages_skipped", pa.float64()),
        pa.field("files_skipped", pa.float64()),
        pa.field("is_exact", pa.bool_()),
        pa.field("bytes_per_row", pa.float64()),
        pa.field("estimated_bytes", pa.int64()),
        pa.field("sampled_files", pa.int64(), nullable=False),
        pa.field("sampled_rows", pa.int64(), nullable=False),
        pa.field("option", pa.string()),
    ]
)
"""Columns of the advice. Shares are of the sampled rows, pages and files that a scan with the filter reads."""


@dataclass(frozen=True, slots=True)
class AdvisedFilter:
    """A filter as its user wrote it, bound, and its plan."""

    text: str
    predicate: Predicate
    plan: ScanPlan


@dataclass(slots=True)
class _Effect:
    """Sums over the sampled files."""

    files: int = 0
    rows: int = 0
    pages: int = 0
    skipped_files: int = 0
    skipped_rows: int = 0
    skipped_pages: int = 0
    bytes: int = 0
    exact_files: int = 0

    def add(self, result: FileIndexResult, row_count: int, size: int) -> None:
        """Add the answer of an index of ``size`` bytes for a file."""
        pages = -(-row_count // thresholds.page_rows)
        kept_rows, kept_pages = row_count, pages
        if isinstance(result, RowSet) or not result.remains:
            matching_rows = np.array(result.rows, np.int64) if isinstance(result, RowSet) else np.empty(0, np.int64)
            kept_rows, kept_pages = len(matching_rows), len(np.unique(matching_rows // thresholds.page_rows))
        self.files += 1
        self.rows += row_count
        self.pages += pages
        self.skipped_files += not kept_rows
        self.skipped_rows += row_count - kept_rows
        self.skipped_pages += pages - kept_pages
        self.bytes += size
        self.exact_files += result.exact


@dataclass(frozen=True)
class IndexAdvice:
    """Measurement of indexes for filters.

    Args:
        store: Store of the table.
        filters: Filters and their plans.
        row_count: Rows of the table's files, for estimates.
        most_bytes: Bytes of data files to sample. At least one file of each filter is read.
    """

    store: FileStore
    filters: Sequence[AdvisedFilter]
    row_count: int
    most_bytes: int
    _effects: dict[tuple[int, str, str], _Effect] = field(default_factory=dict, init=False, repr=False)
    _sampled: dict[int, list[int]] = field(default_factory=dict, init=False, repr=False)

    def table(self) -> pa.Table:
        """Measure, and return the rows of ``INDEX_ADVICE``.

        The best index of a filter comes first. Indexes without effect are left out, unless they are declared. If none is left, the filter has a
        row without an index.
        """
        for split, file, filter_numbers in self._sample():
            self._measure(split, file, filter_numbers)
        declared = {(str(spec.column), spec.index_type) for spec in self.store.schema.file_index.specs}
        declared |= {(index.column, f"pk-{index.kind}") for index in secondary_indexes(self.store.schema)}
        rows = [row for number in range(len(self.filters)) for row in self._rows(number, declared)]
        return pa.Table.from_pylist(rows, INDEX_ADVICE)

    def _sample(self) -> Iterator[tuple[DataSplit, DataFileMeta, list[int]]]:
        """Yield some of the files of the plans, and the filters that read each."""
        filters_by_file: dict[str, list[int]] = {}
        files: dict[str, tuple[DataSplit, DataFileMeta]] = {}
        for number, each in enumerate(self.filters):
            for split in each.plan.splits:
                for file in split.files if split.branch is None else ():
                    filters_by_file.setdefault(file.file_name, []).append(number)
                    files[file.file_name] = (split, file)
        missing, left = set(range(len(self.filters))), self.most_bytes
        for name in sorted(files):  # file names are random, so their order is
            split, file = files[name]
            if file.file_size > left and missing.isdisjoint(filters_by_file[name]):
                continue
            left -= file.file_size
            missing.difference_update(filters_by_file[name])
            yield split, file, filters_by_file[name]

    def _measure(self, split: DataSplit, file: DataFileMeta, filter_numbers: Sequence[int]) -> None:
        """Build the indexes that may serve a file's filters, and ask each alone."""
        schema = self.store.schemas.get(file.schema_id)
        predicate_by_filter: dict[int, Predicate] = {}
        for number in filter_numbers:
            filter_ = FileFilter(self.store, self.filters[number].predicate)
            residual = filter_.inside(split.partition, file.schema_id).unproven(file)
            predicate_by_filter[number] = filter_.mapping(file.schema_id).to_file(residual).inclusive
            counted = self._sampled.setdefault(number, [0, 0])
            counted[0] += 1
            counted[1] += file.row_count
        sources = FileFilter(self.store).mapping(file.schema_id).sources
        names = {source.name: name for name, source in sources.items() if source is not None}
        specs: list[IndexSpec] = []
        for column in dict.fromkeys(column for predicate in predicate_by_filter.values() for column in _columns(predicate)):
            specs += self._specs(column, ColumnRef(names[column.name], column.key), schema.column_types)
        self._measure_secondary(split, file, predicate_by_filter, names)
        for (column, index_type), payloads in self._build(split, file, specs).items():
            container = write_index_container(payloads)
            size = sum(len(payload or b"") for _, _, payload in payloads)
            for number, predicate in predicate_by_filter.items():
                notes = IndexMetrics()
                result = evaluate(predicate, ContainerReader.of(container), schema.column_types, file.row_count, notes)
                if notes.by_index:
                    shown = str(ColumnRef(names[column.name], column.key))
                    self._effects.setdefault((number, shown, index_type), _Effect()).add(result, file.row_count, size)

    def _measure_secondary(
        self, split: DataSplit, file: DataFileMeta, predicate_by_filter: Mapping[int, Predicate], names: Mapping[str, str]
    ) -> None:
        """Build the secondary indexes that may serve a file's filters as if it were a level, and ask each alone."""
        if not can_have_secondary_indexes(self.store.schema):
            return
        schema = self.store.schemas.get(file.schema_id)
        columns = dict.fromkeys(leaf.column for predicate in predicate_by_filter.values() for leaf in leaves(predicate))
        for column in columns:
            column_type = schema.column_types[column.name]
            if column.key is not None or not supports(column_type):
                continue
            read = DataFileRead(self.store.with_schema(schema), split.partition, split.bucket, file, [column.name], use_index=False)
            rows = sort_rows((batch.column(0) for batch in read.batches()), column_type)
            for kind in SortedIndexKind:
                reader = _built(SortedIndexOptions.parse(kind, names[column.name], self.store.schema.options), column_type, rows)
                for number, predicate in predicate_by_filter.items():
                    if column.name in columns_of(predicate):
                        effect = self._effects.setdefault((number, names[column.name], f"pk-{kind}"), _Effect())
                        effect.add(_answer(reader, column, predicate), file.row_count, reader.size)

    def _specs(self, column: ColumnRef, of_table: ColumnRef, types: Mapping[str, ColumnType]) -> Iterator[IndexSpec]:
        """Yield every index that a column of a file can have, with the table's options where it is declared."""
        try:
            column_type = type_of(column, types)
        except PaimonError:
            return
        declared = {spec.index_type: spec for spec in self.store.schema.file_index.specs if spec.column == of_table}
        for name, index_type in INDEX_TYPES.items():
            if index_type.supports(column_type):
                rows = thresholds.index_block_rows if index_type.hashing is not None else 0
                spec = declared.get(name, IndexSpec(column, name, {}, rows)).of(column, types)
                if not spec.is_hidden_by(types):
                    yield spec

    def _build(self, split: DataSplit, file: DataFileMeta, specs: Sequence[IndexSpec]) -> dict[tuple[ColumnRef, str], list[StoredIndex]]:
        """Return the payloads of each index, built from the rows of a file."""
        schema = self.store.schemas.get(file.schema_id)
        # An index of its own writer is built as if it were the only one of its column.
        writers = [(spec, DataFileIndexWriter.create(FileIndexOptions((spec,)), schema.column_types)) for spec in specs]
        if not writers:
            return {}
        columns = list(dict.fromkeys(spec.column.name for spec in specs))
        read = DataFileRead(self.store.with_schema(schema), split.partition, split.bucket, file, columns, use_index=False)
        for batch in read.batches():
            for _, writer in writers:
                if writer is not None:
                    writer.write(batch)
        return {(spec.column, spec.index_type): indexes for spec, writer in writers if writer is not None and (indexes := writer.finish())}

    def _rows(self, number: int, declared: set[tuple[str, str]]) -> Iterator[dict[str, Any]]:
        files, rows = self._sampled.get(number, (0, 0))
        mine = [
            (column, kind, effect)
            for (filter_, column, kind), effect in self._effects.items()
            if filter_ == number and (effect.skipped_rows or effect.exact_files or (column, kind) in declared)
        ]
        for column, kind, effect in sorted(mine, key=lambda row: (-row[2].skipped_rows / row[2].rows, row[2].bytes)):
            yield {
                "filter": self.filters[number].text,
                "column_name": column,
                "index_type": kind,
                "is_declared": (column, kind) in declared,
                "rows_skipped": effect.skipped_rows / effect.rows,
                "pages_skipped": effect.skipped_pages / effect.pages,
                "files_skipped": effect.skipped_files / effect.files,
                "is_exact": effect.exact_files == effect.files,
                "bytes_per_row": effect.bytes / effect.rows,
                "estimated_bytes": round(effect.bytes / effect.rows * self.row_count),
                "sampled_files": files,
                "sampled_rows": rows,
                "option": f"{kind}.index.columns" if kind.startswith("pk-") else option_key(kind, "columns"),
            }
        if not mine:
            yield {"filter": self.filters[number].text, "sampled_files": files, "sampled_rows": rows}


def _built(options: SortedIndexOptions, column_type: ColumnType, rows: SortedRows) -> SortedIndexReader[Any]:
    """Return the reader of a payload in memory."""
    payload = io.BytesIO()
    writer = sorted_index_writer(options, column_type, payload.write)
    writer.add(rows.values, rows.ordinals, rows.counts)
    writer.add_nulls(rows.null_ordinals)
    meta, data = writer.finish(), payload.getvalue()
    read = partial(_part, data)
    return open_sorted_index(options.kind, read, len(data), column_type=column_type, row_count=writer.row_count, meta=meta)


def _part(data: bytes, offset: int, length: int) -> bytes:
    return data[offset : offset + length]


def _answer(reader: SortedIndexReader[Any], column: ColumnRef, predicate: Predicate) -> FileIndexResult:
    """Return what an index of one column says about a filter."""

    def leaf(condition: Leaf) -> FileIndexResult:
        return reader.evaluate(condition) if condition.column == column else REMAIN

    (result,), _ = answer_terms([Projection(predicate, exact=True)], leaf, lambda _: REMAIN)
    return result


def _columns(predicate: Predicate) -> Iterator[ColumnRef]:
    """Yield the columns that an index may serve."""
    for leaf in leaves(predicate):
        yield leaf.column
    for computed in computed_predicates(predicate):
        required = required_texts(computed)
        if required is not None:
            yield from columns_required(required)

"""Read of an open data file by row groups.

Late materialisation: filter columns are decoded first. Other columns are decoded only for row groups with remaining rows,
up to the last such row. Every batch has the table's types, whatever the types of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from fileindex.predicate.evaluate_rows import mask
from fileindex.predicate.projection import Projection
from fileindex.predicate.tree import TRUE, Predicate, columns_of, conjuncts
from fileindex.rowset.roaring import bitmap_to_rows
from lsm.arrow.row_kind import retracts
from lsm.arrow.text_form import codes_fit, plain_text, plain_texts
from lsm.formats.open_data_file import OpenDataFile
from lsm.keys.sort import VALUE_KIND
from lsm.parquet.footer import RowGroup
from lsm.parquet.narrow_column import NarrowColumn, evaluate
from lsm.parquet.row_group_pages import GroupPages, matching_rows
from lsm.read.chosen_rows import ChosenRows
from lsm.read.column_cache import ColumnCache
from lsm.read.metrics import ReadReport
from lsm.read.row_group_pruner import RowGroupPruner
from lsm.read.text_search import TextRows
from lsm.scan.predicates import required_texts
from lsm.schema.evolution import SchemaMapping, is_same, to_read_schema, way_back
from lsm.schema.parquet_schema import KIND_FIELD
from manifest.io.errors import CastFailed, OutOfMemory
from manifest.io.storage_errors import is_out_of_memory
from paimon_base.errors import CorruptFile, CorruptVariant
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Int64s, Mask, arrow_array, numpy_array
from sparkexpr.values.column_type import ColumnType, Plain
from sparkexpr.values.plain_value import to_scalar

_Mask = Mask
_Rows = Int64s


def _ignore_progress(row: int) -> None:
    """Accept a row position without use."""


@dataclass(frozen=True)
class RowGroupRead:
    """Read of an open file.

    Args:
        data: Open data file.
        mapping: Mapping from table columns to file columns.
        types: Types of the table's columns, for predicates.
        columns: Table columns to return, in order.
        constants: Columns with one value (None: null) in the whole file. They are not decoded.
        residual: Filter of rows without columns of ``constants``.
        rows: Positions of the rows to return. None: all.
        drop_retracts: Drop ``-U`` and ``-D`` rows.
        report: Counters to add to.
        batch_bytes: Approximate maximum size of a batch.
        dictionaries: Columns whose texts may be dictionary arrays.
        passed: Progress callback, given the first row position not yet processed.
    """

    data: OpenDataFile
    mapping: SchemaMapping
    types: Mapping[str, ColumnType]
    columns: Sequence[str]
    constants: Mapping[str, Plain]
    residual: Predicate
    rows: BitMap | None
    drop_retracts: bool
    report: ReadReport
    batch_bytes: int = field(default_factory=lambda: thresholds.batch_bytes)
    dictionaries: Collection[str] = ()
    passed: Callable[[int], None] = _ignore_progress

    def batches(self) -> Iterator[Any]:
        """Yield record batches in file order.

        Raises:
            CorruptFile: Pages cannot be decoded.
        """
        everything, groups = self.data.row_groups, self._groups
        self.report.row_groups += len(everything)
        self.report.row_groups_skipped += len(everything) - len(groups)
        self.report.rows_decoded += sum([group.num_rows for group in groups])
        if self.rows is None and not self._filter_columns:
            row = 0
            for batch in self._decode(self._rest, groups, dictionaries=self._rest):
                yield self._assemble(batch, batch.num_rows)
                self.passed(row := row + batch.num_rows)
        else:
            for group in groups:
                yield from self._read_filtered(group)
                self.passed(group.end_row)

    def at(self, rows: _Rows) -> Iterator[Any]:
        """Yield the rows at ascending positions of the file, in batches.

        The filter is ignored. Retracts are dropped with ``drop_retracts``.

        Raises:
            CorruptFile: Pages cannot be decoded.
        """
        names = [*([VALUE_KIND] if self.drop_retracts else []), *self._rest]
        self.report.row_groups += len(self.data.row_groups)
        for group in self.data.row_groups:
            low, high = np.searchsorted(rows, [group.first_row, group.end_row])
            if low == high:
                self.report.row_groups_skipped += 1
                continue
            self.report.rows_decoded += group.num_rows
            for batch in self._at_rows(names, group, rows[low:high] - group.first_row):
                visible = batch.filter(arrow_array(~retracts(batch.column(VALUE_KIND)))) if self.drop_retracts else batch
                yield self._assemble(visible, visible.num_rows)

    def _at_rows(self, names: Sequence[str], group: RowGroup, rows: _Rows) -> Iterator[Any]:
        """Yield columns at positions of the group, the cheapest way."""
        if not names:
            yield _batch([], (), len(rows))
            return
        narrow_columns = self._by_table_name(names, self._columns.cached(self._physical(names), group))
        if len(narrow_columns) == len(names):
            yield self._take(narrow_columns, rows)
            return
        pages = self.data.pages(group)
        if pages is not None and thresholds.sparse * len(rows) <= group.num_rows:
            absent = [name for name in names if name not in narrow_columns]
            self.data.prefetch(self._physical(absent), group, pages, rows)
            cost, pays = pages.cost(self._physical(absent), rows)
            if pays:
                self.report.bytes_read += cost
                yield _join(self._take(narrow_columns, rows), self._at(absent, group, pages, rows))
                return
        columns = self._by_mask(names, group, pages, ChosenRows(group.num_rows, rows=rows))
        if columns is not None:
            yield columns
            return
        start = 0
        for batch in self._decode(names, [group]):
            low, high = np.searchsorted(rows, [start, start + batch.num_rows])
            if low != high:
                yield batch.take(arrow_array(rows[low:high] - start))
            start += batch.num_rows
            if high == len(rows):
                break

    def key_columns(self, group: RowGroup, rows: _Rows | None) -> list[Any]:
        """Return the columns of the read, each as one array.

        ``rows`` are ascending positions of the group. None: all.
        """
        pages = None if rows is None else self.data.pages(group)
        if pages is None or rows is None:
            batch = _one_batch(list(self._decode(self.columns, [group])))
            batch = batch if rows is None else batch.take(arrow_array(rows))
        else:
            self.data.prefetch(self._physical(self.columns), group, pages, rows)
            batch = self._at(self.columns, group, pages, rows)
        return [plain_text(column) for column in batch.columns]

    @cached_property
    def _filter_columns(self) -> list[str]:
        kind = [VALUE_KIND] if self.drop_retracts else []
        return list(dict.fromkeys([*columns_of(self.residual), *kind]))

    @cached_property
    def _decoded_columns(self) -> list[str]:
        """Returned columns without those of ``constants``."""
        return [name for name in dict.fromkeys(self.columns) if name not in self.constants]

    @cached_property
    def _rest(self) -> list[str]:
        """Columns to decode after filtering."""
        return [name for name in self._decoded_columns if name not in self._filter_columns]

    @cached_property
    def pruner(self) -> RowGroupPruner:
        """Pruner of the file's row groups and pages."""
        filter_sources = self._physical(self._filter_columns)
        return RowGroupPruner(self.data, self.mapping, self.types, self.residual, self.rows, self.report, filter_sources)

    @cached_property
    def _schema(self) -> Any:
        return pa.schema([self.mapping.read[name].arrow_field for name in self.columns])

    def _physical(self, names: Sequence[str]) -> list[str]:
        """Return the file names of columns that the file has."""
        return [source.name for name in names if (source := self.mapping.sources[name]) is not None]

    def _decode(
        self,
        names: Sequence[str],
        groups: Sequence[RowGroup],
        *,
        dictionaries: Sequence[str] = (),
        count: bool = True,
        in_one_batch: bool = False,
    ) -> Iterator[Any]:
        """Yield batches of table columns ``names``.

        Columns have the table's types, or are dictionary arrays. ``in_one_batch`` allows longer batches, because few rows are used.
        """
        sources = self._physical(names)
        nanos = self.mapping.int96.intersection(sources)
        self.report.bytes_read += self.data.compressed_size(sources, groups) if count else 0
        coded = sources if dictionaries is names else self._physical(dictionaries) if dictionaries else ()
        max_rows = self.data.num_rows if in_one_batch else thresholds.batch_rows
        for batch in self.data.batches(sources, groups, nanos=nanos, dictionaries=coded, batch_bytes=self.batch_bytes, batch_rows=max_rows):
            yield _batch(list(map(self._conform, names, batch.columns)), names, batch.num_rows)

    def _conform(self, name: str, array: Any) -> Any:
        source, target_type = self.mapping.sources[name], self.mapping.read[name].type
        assert source is not None
        if array.type == target_type.arrow and source.type is target_type:  # the usual case: the type did not change
            return array
        if pa.types.is_dictionary(array.type) and target_type.arrow == array.type.value_type and is_same(source.type, target_type):
            if not codes_fit(array):
                raise CorruptFile(self.data.path, f"column '{source.name}' holds codes that are missing in its dictionary")
            return array
        try:
            return to_read_schema(array, source.type, target_type)
        except CastFailed as error:
            raise CastFailed(f"{self.data.path}: column '{name}': {error}; {way_back(name, source.type, target_type)}") from error
        except CorruptVariant as error:
            raise CorruptFile(self.data.path, f"column '{source.name}' holds a VARIANT that cannot be read: {error}") from error
        except (MemoryError, pa.ArrowException) as error:
            if is_out_of_memory(error):
                raise OutOfMemory(self.data.path, str(error)) from error
            stored_type = plain_text(array.slice(0, 0)).type
            raise CorruptFile(self.data.path, f"column '{source.name}' holds {stored_type} instead of {source.type} ({error})") from error

    @cached_property
    def _columns(self) -> ColumnCache:
        return ColumnCache(self.data, self.mapping.int96)

    def _by_table_name(self, names: Sequence[str], narrow_columns: Mapping[str, NarrowColumn]) -> dict[str, NarrowColumn]:
        """Return cached columns of the file by their names in the table."""
        sources = self.mapping.sources if narrow_columns else {}
        return {
            name: narrow_columns[source.name]
            for name in names
            if (source := sources.get(name)) is not None and source.name in narrow_columns
        }

    def _read_cached(
        self, names: Sequence[str], group: RowGroup, pages: GroupPages | None, selected: ChosenRows
    ) -> dict[str, NarrowColumn]:
        """Return the columns that the cache has or takes, by table name."""
        sources = [source for name in names if (source := self.mapping.sources[name]) is not None]

        def decoded_share(absent: list[str]) -> float:
            if selected.count <= thresholds.coded_rows:
                return 0.0  # dictionary pages are searched, and lookups take equal times
            if pages is not None and thresholds.sparse * selected.count <= group.num_rows:
                cost, pays = pages.cost(absent, selected.rows)
                if pays:
                    return cost / max(1, self.data.compressed_size(absent, [group]))
            return 1.0

        return self._by_table_name(names, self._columns.read(sources, group, decoded_share))

    def _take(self, narrow_columns: Mapping[str, NarrowColumn], rows: _Rows) -> Any:
        """Return cached columns at positions of the group."""
        return _batch([self._conform(name, narrow.take(rows)) for name, narrow in narrow_columns.items()], narrow_columns, len(rows))

    def _filter_cached(self, narrow_columns: Mapping[str, NarrowColumn], group: RowGroup, selected: ChosenRows) -> tuple[ChosenRows, bool]:
        """Return the chosen rows that cached columns do not exclude.

        True: they prove the filter, and no retract is left.
        """
        by_source = {source.name: narrow for name, narrow in narrow_columns.items() if (source := self.mapping.sources[name]) is not None}
        is_proven = not self.drop_retracts
        mask: _Mask | None = None
        for projection in self._projections:
            matches = evaluate(projection.inclusive, by_source, self._source_types)
            is_proven &= projection.exact and matches is not None
            if matches is not None:
                mask = matches if mask is None else np.logical_and(mask, matches, out=mask)
        if mask is None:
            return selected, is_proven
        if selected.count < group.num_rows:
            mask &= selected.mask
        return ChosenRows(group.num_rows, mask=mask), is_proven

    @cached_property
    def _projections(self) -> list[Projection]:
        """Terms of the filter on the file's columns."""
        return [self.mapping.to_file(term) for term in conjuncts(self.residual)]

    @cached_property
    def _source_types(self) -> dict[str, ColumnType]:
        return {name: data_type.column_type for name, data_type in self.pruner.file_types.items()}

    def _read_filtered(self, group: RowGroup) -> Iterator[Any]:
        selected = self._chosen(group)
        pages = self.data.pages(group)
        if pages is not None and self.residual != TRUE:
            mask = selected.mask & matching_rows(
                self.residual, group.num_rows, lambda column: self.pruner.page_bounds(pages, column), self.types
            )
            self._count_pages(pages, mask)
            selected = ChosenRows(group.num_rows, mask=mask)
        narrow_columns = self._read_cached(self._filter_columns, group, pages, selected) if selected.count else {}
        is_proven = not self._filter_columns
        if narrow_columns:
            selected, is_proven = self._filter_cached(narrow_columns, group, selected)
        if not selected.count:
            return
        names = self._rest
        if is_proven:
            filter_batch, names = _batch([], (), selected.count), self._decoded_columns
        self._prefetch(names if is_proven else [*self._filter_columns, *names], group, pages, selected)
        if not is_proven:
            filtered = self._filter(group, pages, selected, narrow_columns)
            if filtered is None:
                return
            selected, filter_batch = filtered
        if thresholds.dense * selected.count <= group.num_rows:
            narrow_columns = self._read_cached(names, group, pages, selected)
            filter_batch = _join(filter_batch, self._take(narrow_columns, selected.rows))
            names = [name for name in names if name not in narrow_columns]
        rest = filter_batch.select([]) if not names else self._by_pages(names, group, pages, selected)
        if rest is None:
            rest = self._by_mask(names, group, pages, selected)
        if rest is None:
            yield from self._stream(names, group, selected, filter_batch)
        else:
            yield self._assemble(rest, selected.count, filter_batch)

    def _filter(
        self, group: RowGroup, pages: GroupPages | None, selected: ChosenRows, narrow_columns: Mapping[str, NarrowColumn]
    ) -> tuple[ChosenRows, Any] | None:
        """Return the matching rows and their filter columns, or None.

        ``narrow_columns`` are the cached ones.
        """
        if len(narrow_columns) == len(self._filter_columns) and self._fits(self._filter_columns, group, selected):
            filter_batch = self._take(narrow_columns, selected.rows)
        else:
            filter_batch = self._by_pages(self._filter_columns, group, pages, selected)
        if filter_batch is None and self._texts is not None and self._texts.strike_others(group, mask := selected.mask):
            selected = ChosenRows(group.num_rows, mask=mask)
            if not selected.count:
                return None
            filter_batch = self._by_pages(self._filter_columns, group, pages, selected)
        if filter_batch is None:
            mask = selected.mask
            filter_batch = self._decide(group, mask)
            selected = ChosenRows(group.num_rows, mask=mask)
        else:
            keep = self._matches(filter_batch)
            selected = ChosenRows(group.num_rows, rows=selected.rows[keep])
            filter_batch = filter_batch.filter(arrow_array(keep))
        return (selected, filter_batch) if selected.count else None

    @cached_property
    def _groups(self) -> Sequence[RowGroup]:
        return [group for group in self.data.row_groups if self.pruner.may_match(group)]

    @cached_property
    def _texts(self) -> TextRows | None:
        """Search for the texts that the filter requires.

        None: the filter requires no text, or the file's column has another type.
        """
        sources = {name: source for name in self._filter_columns if (source := self.mapping.sources[name]) is not None}
        alike = [name for name, source in sources.items() if is_same(source.type, self.mapping.read[name].type)]
        required = required_texts(self.residual, alike)
        return None if required is None else TextRows(self.data, sources[required[0]].name, required[1], self._groups, self.report)

    def _count_pages(self, pages: GroupPages, row_mask: _Mask) -> None:
        """Count pages of filter columns, and pages without chosen rows."""
        for name in self._physical(self._filter_columns):
            column = pages.column(name)
            if column is None:
                continue
            starts = column.starts[:-1]
            self.report.pages += len(starts)
            self.report.pages_skipped += len(starts) - int(np.count_nonzero(np.logical_or.reduceat(row_mask, starts)))

    def _prefetch(self, names: Sequence[str], group: RowGroup, pages: GroupPages | None, selected: ChosenRows) -> None:
        """Prefetch the needed column chunks from remote storage.

        Always the filter columns among ``names``. The other ones too, unless they are large.
        """
        is_sparse = pages is not None and thresholds.sparse * selected.count <= group.num_rows
        cached = self._columns.cached(self._physical(names), group)
        names = [name for name in self._physical(names) if name not in cached]
        if not is_sparse and self.data.compressed_size(names, [group]) > thresholds.unasked_bytes:
            filter_names = set(self._physical(self._filter_columns))
            names = [name for name in names if name in filter_names]
        self.data.prefetch(names, group, pages if is_sparse else None, selected.rows if is_sparse else None)

    def _by_pages(self, names: Sequence[str], group: RowGroup, pages: GroupPages | None, selected: ChosenRows) -> Any | None:
        """Read columns of the chosen rows from single pages.

        None: another method is faster.
        """
        if pages is None or thresholds.sparse * selected.count > group.num_rows:
            return None
        cost, pays = pages.cost(self._physical(names), selected.rows)
        if not pays:
            return None
        self.report.bytes_read += cost
        return self._at(names, group, pages, selected.rows)

    def _by_mask(self, names: Sequence[str], group: RowGroup, pages: GroupPages | None, selected: ChosenRows) -> Any | None:
        """Read columns of the chosen rows with a masking decoder.

        None: another method is faster.
        """
        if pages is None or thresholds.dense * selected.count > group.num_rows:
            return None
        if not self._fits(names, group, selected):
            return None
        masked_arrays = self.data.take_masked(pages, self._physical(names), selected.mask)
        if masked_arrays is None:
            return None
        self.report.bytes_read += self.data.compressed_size(self._physical(names), [group])
        return self._complete_batch(names, masked_arrays, group, selected.rows)

    def _fits(self, names: Sequence[str], group: RowGroup, selected: ChosenRows) -> bool:
        """Return whether columns of the chosen rows may be decoded at once."""
        return self.data.decoded_size(self._physical(names), group) * selected.count <= thresholds.masked_bytes * group.num_rows

    def _at(self, names: Sequence[str], group: RowGroup, pages: GroupPages, rows: _Rows) -> Any:
        """Read columns at positions of the group."""
        return self._complete_batch(names, self.data.take(pages, self._physical(names), rows), group, rows)

    def _complete_batch(self, names: Sequence[str], arrays_or_none: Sequence[Any | None], group: RowGroup, rows: _Rows) -> Any:
        """Build a batch of columns at positions of the group.

        Columns without an array in ``arrays_or_none`` are decoded.
        """
        decoded_arrays = self._whole([name for name, array in zip(names, arrays_or_none, strict=True) if array is None], group, rows)
        arrays = [
            next(decoded_arrays) if array is None else self._conform(name, array) for name, array in zip(names, arrays_or_none, strict=True)
        ]
        return _batch(arrays, names, len(rows))

    def _whole(self, names: Sequence[str], group: RowGroup, rows: _Rows) -> Iterator[Any]:
        """Decode columns up to the last of ``rows``.

        For columns whose pages cannot be read separately.
        """
        if not names:
            return
        pieces: list[Any] = []
        start = 0
        for batch in self._decode(names, [group], count=False):
            low, high = np.searchsorted(rows, [start, start + batch.num_rows])
            pieces.append(batch.take(arrow_array(rows[low:high] - start)))
            start += batch.num_rows
            if high == len(rows):
                break
        yield from _one_batch(pieces).columns

    def _stream(self, names: Sequence[str], group: RowGroup, selected: ChosenRows, filter_batch: Any) -> Iterator[Any]:
        """Yield the chosen rows in batches.

        Decodes the columns ``names`` up to the last chosen row. ``filter_batch`` has the other ones.
        """
        rows = selected.rows
        is_sparse = thresholds.sparse * len(rows) < group.num_rows
        start, rows_returned = 0, 0
        for batch in self._decode(names, [group], dictionaries=names if is_sparse else (), in_one_batch=is_sparse):
            end = start + batch.num_rows
            until = int(np.searchsorted(rows, end))
            count = until - rows_returned
            if count:
                if count == batch.num_rows:
                    piece = batch
                elif is_sparse:
                    piece = batch.take(arrow_array(rows[rows_returned:until] - start))
                else:
                    piece = batch.filter(arrow_array(selected.mask[start:end]))
                yield self._assemble(piece, count, filter_batch.slice(rows_returned, count))
            start, rows_returned = end, until
            if rows_returned == len(rows):
                break

    def _decide(self, group: RowGroup, row_mask: _Mask) -> Any:
        """Remove rows that do not match from ``row_mask``.

        Returns the filter columns of the remaining rows, if they are in ``columns``.
        """
        returned = [name for name in self._filter_columns if name in self.columns]
        pieces: list[Any] = []
        start = 0
        for batch in self._decode(self._filter_columns, [group], dictionaries=self._filter_columns):
            batch_mask = row_mask[start : start + batch.num_rows]
            start += batch.num_rows
            if batch_mask.any():
                batch_mask &= self._matches(batch)
            if returned and batch_mask.any():
                pieces.append(plain_texts(batch.select(returned).filter(arrow_array(batch_mask))))
        return _one_batch(pieces) if pieces else _batch([], (), int(np.count_nonzero(row_mask)))

    def _matches(self, batch: Any) -> _Mask:
        """Return a mask of matching rows of a decoded batch."""
        if self.residual == TRUE:
            matching = np.ones(batch.num_rows, np.bool_)
        else:
            matching = np.array(numpy_array(mask(self.residual, batch, self.types)))
        if self.drop_retracts:
            matching &= ~retracts(batch.column(VALUE_KIND))
        return matching

    def _chosen(self, group: RowGroup) -> ChosenRows:
        """Return the group's rows in ``rows``."""
        if self.rows is None:
            return ChosenRows(group.num_rows, mask=np.ones(group.num_rows, np.bool_))
        group_rows = bitmap_to_rows(self.rows & BitMap(range(group.first_row, group.end_row)))
        return ChosenRows(group.num_rows, rows=group_rows.astype(np.int64) - group.first_row)

    def _assemble(self, batch: Any, count: int, filter_batch: Any = None) -> Any:
        """Build the returned batch from decoded columns and constants."""
        arrays = []
        for column_field in self._schema:
            if column_field.name in self.constants:
                arrays.append(self._repeat(column_field, count))
            elif filter_batch is not None and filter_batch.schema.get_field_index(column_field.name) >= 0:
                arrays.append(filter_batch.column(column_field.name))
            else:
                arrays.append(batch.column(column_field.name))
        return self._at_edge(arrays, count)

    def _at_edge(self, arrays: Sequence[Any], count: int) -> Any:
        """Build the returned batch, decoding unwanted dictionaries."""
        if not self.dictionaries:
            return _batch(list(map(plain_text, arrays)), self._schema, count)
        arrays = [array if name in self.dictionaries else plain_text(array) for name, array in zip(self.columns, arrays, strict=True)]
        return _batch(arrays, pa.schema([field.with_type(array.type) for field, array in zip(self._schema, arrays, strict=True)]), count)

    def _repeat(self, field: Any, count: int) -> Any:
        value = self.constants[field.name]
        return pa.nulls(count, field.type) if value is None else pa.repeat(to_scalar(value, self.types[field.name]), count)


def may_have_retracts(data: OpenDataFile, delete_row_count: int | None) -> bool:
    """Return whether a file may hold ``-U`` or ``-D`` rows.

    Uses the metadata and the footer.
    """
    if delete_row_count != 0:
        return True
    # Some writers do not record deletes in the metadata. The statistics of ``_VALUE_KIND`` show them.
    for group in data.row_groups:
        kind_bounds = data.bounds(group, VALUE_KIND, KIND_FIELD.type)
        if kind_bounds is None or kind_bounds.max != 0:
            return True
    return False


def _batch(arrays: Sequence[Any], columns: Any, count: int) -> Any:
    """Build a record batch with a row count without columns.

    ``columns`` are names or a schema.
    """
    if arrays:
        naming = {"schema": columns} if isinstance(columns, pa.Schema) else {"names": list(columns)}
        return pa.RecordBatch.from_arrays(list(arrays), **naming)
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))


def _join(batch: Any, other: Any) -> Any:
    """Return the columns of two batches with the same rows."""
    return _batch([*batch.columns, *other.columns], [*batch.schema.names, *other.schema.names], batch.num_rows)


def _one_batch(pieces: Sequence[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    table = pa.Table.from_batches(pieces)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(column.chunks) for column in table.columns], schema=table.schema)

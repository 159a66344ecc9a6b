"""Reading an open data file row group by row group: statistics skip, filter columns decide, the rest follows.

Late materialisation: the columns of the filter are decoded first; the others only for row groups that still have rows,
and only as far as the last of them. Every batch has the table's types, whatever the file's are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from fileindex.column_type import ColumnType, Plain
from fileindex.plain import to_scalar
from fileindex.predicate import FALSE, TRUE, ColumnRef, Predicate, columns_of
from fileindex.roaring import bitmap_to_rows
from fileindex.row_filter import mask
from lsm.evolution import SchemaMapping, conform
from lsm.file_schema import KIND_FIELD, needs_int96
from lsm.merge_function import retracts
from lsm.parquet_read import ParquetDataFile, RowGroup
from lsm.read_report import ReadReport
from lsm.sort_key import VALUE_KIND
from manifest.errors import CorruptFile
from manifest.stats import ColumnBounds, may_match

_Mask = npt.NDArray[np.bool_]
_SPARSE = 8
"""Texts stay dictionaries until they are filtered if at most one row in so many is returned."""


@dataclass(frozen=True)
class RowGroupRead:
    """What to read of an open file.

    Args:
        data: the file.
        mapping: from the table's columns to the file's.
        types: the table's columns, as predicates know them.
        columns: the table's names to return, in order.
        constants: columns with one value (None: null) in the whole file; they are not decoded.
        residual: rows to return; mentions no column of ``constants``.
        rows: positions of the rows to return at most; None for all.
        drop_retracts: leave out ``-U`` and ``-D`` rows.
        report: counters to add to.
    """

    data: ParquetDataFile
    mapping: SchemaMapping
    types: Mapping[str, ColumnType]
    columns: Sequence[str]
    constants: Mapping[str, Plain]
    residual: Predicate
    rows: BitMap | None
    drop_retracts: bool
    report: ReadReport

    def batches(self) -> Iterator[Any]:
        """Record batches in file order; ``CorruptFile`` if pages do not decode."""
        everything = self.data.row_groups
        groups = [group for group in everything if self._may_match(group)]
        self.report.row_groups += len(everything)
        self.report.row_groups_skipped += len(everything) - len(groups)
        self.report.rows_decoded += sum(group.num_rows for group in groups)
        if self.rows is None and not self._filter_columns:
            for batch in self._decode(self._rest, groups):
                yield self._assemble(batch, batch.num_rows)
        else:
            for group in groups:
                yield from self._filtered(group)

    @cached_property
    def _filter_columns(self) -> list[str]:
        kind = [VALUE_KIND] if self.drop_retracts else []
        return list(dict.fromkeys([*columns_of(self.residual), *kind]))

    @cached_property
    def _rest(self) -> list[str]:
        """Columns to decode after the filter has decided."""
        return [name for name in dict.fromkeys(self.columns) if name not in self.constants and name not in self._filter_columns]

    @cached_property
    def _schema(self) -> Any:
        return pa.schema([self.mapping.read[name].arrow_field for name in self.columns])

    def _may_match(self, group: RowGroup) -> bool:
        if self.residual == FALSE:
            return False
        if self.rows is not None and not self.rows.range_cardinality(group.first_row, group.end_row):
            return False
        return may_match(self.residual, lambda column: self._bounds(group, column), self.types)

    def _bounds(self, group: RowGroup, column: ColumnRef) -> ColumnBounds | None:
        source = self.mapping.sources.get(column.name)
        if column.key is not None or source is None:
            return None
        known = self.data.bounds(group, source.name, source.type)
        return None if known is None else self.mapping.bounds(column.name, known)

    def _decode(self, names: Sequence[str], groups: Sequence[RowGroup], *, keep_dictionaries: bool = False) -> Iterator[Any]:
        """Batches of the table's columns ``names``, as the table's types or as dictionaries of them."""
        fields = [source for name in names if (source := self.mapping.sources[name]) is not None]
        sources = [field.name for field in fields]
        nanos = {field.name for field in fields if needs_int96([field])}
        self.report.bytes_read += self.data.compressed_size(sources, groups)
        for batch in self.data.batches(sources, groups, nanos=nanos, keep_dictionaries=keep_dictionaries):
            arrays = [self._conform(name, array) for name, array in zip(names, batch.columns, strict=True)]
            yield _batch(arrays, pa.schema([pa.field(name, array.type) for name, array in zip(names, arrays, strict=True)]), batch.num_rows)

    def _conform(self, name: str, array: Any) -> Any:
        source, wanted = self.mapping.sources[name], self.mapping.read[name].type
        assert source is not None
        if pa.types.is_dictionary(array.type) and wanted.arrow == array.type.value_type:
            return array
        try:
            return conform(array, source.type, wanted)
        except pa.ArrowException as error:
            raise CorruptFile(self.data.path, f"column '{source.name}' holds {array.type} instead of {source.type} ({error})") from error

    def _filtered(self, group: RowGroup) -> Iterator[Any]:
        chosen, kept = self._decide(group)
        if not kept.num_rows:
            return
        if not self._rest:
            yield self._assemble(kept, kept.num_rows)
            return
        last = int(len(chosen) - np.argmax(chosen[::-1]))
        start, taken = 0, 0
        is_sparse = _SPARSE * kept.num_rows < group.num_rows
        for batch in self._decode(self._rest, [group], keep_dictionaries=is_sparse):
            wanted = chosen[start : start + batch.num_rows]
            count = int(np.count_nonzero(wanted))
            if count:
                rows = batch if count == batch.num_rows else batch.filter(pa.array(wanted))
                yield self._assemble(_plain_texts(rows), count, kept.slice(taken, count))
            start, taken = start + batch.num_rows, taken + count
            if start >= last:
                break

    def _decide(self, group: RowGroup) -> tuple[_Mask, Any]:
        """Which rows of the group to return, and those of its filter columns that are returned too."""
        chosen = self._selected(group)
        returned = [name for name in self._filter_columns if name in self.columns]
        pieces: list[Any] = []
        start = 0
        for batch in self._decode(self._filter_columns, [group], keep_dictionaries=True):
            here = chosen[start : start + batch.num_rows]
            start += batch.num_rows
            if self.residual != TRUE and here.any():
                here &= mask(self.residual, batch, self.types).to_numpy(zero_copy_only=False)
            if self.drop_retracts:
                here &= ~retracts(batch.column(VALUE_KIND))
            if returned and here.any():
                pieces.append(_plain_texts(batch.select(returned).filter(pa.array(here))))
        count = int(np.count_nonzero(chosen))
        return chosen, _one_batch(pieces) if pieces else _batch([], pa.schema([]), count)

    def _selected(self, group: RowGroup) -> _Mask:
        """Mask of the group's rows that ``rows`` leaves."""
        if self.rows is None:
            return np.ones(group.num_rows, np.bool_)
        chosen = np.zeros(group.num_rows, np.bool_)
        chosen[bitmap_to_rows(self.rows & BitMap(range(group.first_row, group.end_row))) - group.first_row] = True
        return chosen

    def _assemble(self, batch: Any, count: int, kept: Any = None) -> Any:
        """The columns to return, from decoded ones, those of the filter, and constants."""
        arrays = []
        for field in self._schema:
            if field.name in self.constants:
                arrays.append(self._repeat(field, count))
            elif kept is not None and kept.schema.get_field_index(field.name) >= 0:
                arrays.append(kept.column(field.name))
            else:
                arrays.append(batch.column(field.name))
        return _batch(arrays, self._schema, count)

    def _repeat(self, field: Any, count: int) -> Any:
        value = self.constants[field.name]
        return pa.nulls(count, field.type) if value is None else pa.repeat(to_scalar(value, self.types[field.name]), count)


def may_have_retracts(data: ParquetDataFile, delete_row_count: int | None) -> bool:
    """Whether a file may hold ``-U`` or ``-D`` rows, by its metadata and its footer.

    Some writers record no deletes although there are; the statistics of ``_VALUE_KIND`` tell.
    """
    if delete_row_count != 0:
        return True
    bounds = (data.bounds(group, VALUE_KIND, KIND_FIELD.type) for group in data.row_groups)
    return any(known is None or known.max != 0 for known in bounds)


def _batch(arrays: Sequence[Any], schema: Any, count: int) -> Any:
    """A record batch that keeps its number of rows even without columns."""
    if arrays:
        return pa.RecordBatch.from_arrays(list(arrays), schema=schema)
    return pa.RecordBatch.from_struct_array(pa.StructArray.from_buffers(pa.struct([]), count, [None]))


def _one_batch(pieces: Sequence[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    table = pa.Table.from_batches(pieces)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(column.chunks) for column in table.columns], schema=table.schema)


def _plain_texts(batch: Any) -> Any:
    """``batch`` with its dictionaries expanded."""
    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    arrays = [pc.cast(array, array.type.value_type) if pa.types.is_dictionary(array.type) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


__all__ = ["RowGroupRead", "may_have_retracts"]

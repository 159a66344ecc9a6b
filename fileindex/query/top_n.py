"""The rows that ``ORDER BY column LIMIT k`` can need, from the range-bitmap of the column."""

from __future__ import annotations

from collections.abc import Mapping

from pyroaring import BitMap

from fileindex.base.column_type import ColumnType
from fileindex.format.container import ContainerReader
from fileindex.format.range_bitmap_reader import RangeBitmapReader
from fileindex.format.registry import IndexReader
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.query.reader import MAX_ROWS, FileIndexes
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult, RowSet

RANGE_BITMAP = "range-bitmap"


def top_n(
    container: ContainerReader,
    column: ColumnRef,
    types: Mapping[str, ColumnType],
    k: int,
    *,
    ascending: bool,
    nulls_first: bool,
    strict: bool,
    candidates: BitMap | None,
    row_count: int,
    notes: IndexMetrics,
) -> FileIndexResult:
    """A row set that holds the first ``k`` rows of a file; REMAIN if no index tells. Never an exception.

    The answer is that of Paimon's ``RangeBitmap`` file index, except that a column of nothing but nulls, too, heeds ``k`` and
    ``candidates``, and that the two zeros of a float column tie.

    Args:
        container: the file's indexes.
        column: the first sort column.
        types: the data file's columns.
        k: rows wanted.
        ascending: the smallest instead of the greatest.
        nulls_first: where nulls come.
        strict: there is no other sort column, so of rows that tie any will do; else all rows that tie with the last are kept.
        candidates: rows that exist and may match (not deleted, wanted by a filter); None for all.
        row_count: the data file's rows; an index of another number of rows says nothing.
        notes: gets what was read, used, and could not be used.

    >>> import pyarrow as pa
    >>> from fileindex.format.container import write_index_container
    >>> from fileindex.keys.group_by import ColumnRows
    >>> from fileindex.format.range_bitmap_writer import write_range_bitmap
    >>> kind, rows = ColumnType("INT"), ColumnRows(ColumnType("INT"))
    >>> rows.append(pa.array([10, 20, 30, 5, 15], pa.int32()))
    >>> container = ContainerReader.of(write_index_container([("a", "range-bitmap", write_range_bitmap(rows.grouped(), kind))]))
    >>> how = dict(ascending=True, nulls_first=False, strict=True, candidates=None, row_count=5, notes=IndexMetrics())
    >>> top_n(container, ColumnRef("a"), {"a": kind}, 3, **how).rows
    BitMap([0, 3, 4])
    """
    if row_count > MAX_ROWS:
        return REMAIN
    if k <= 0 or candidates == BitMap():
        return SKIP
    indexes = FileIndexes(container, types, row_count, notes)
    known = indexes.of(column)
    if known is None:
        return REMAIN
    column_type, entries = known

    def ask(reader: IndexReader) -> FileIndexResult:
        assert isinstance(reader, RangeBitmapReader)
        return RowSet(reader.top_n(k, ascending=ascending, nulls_first=nulls_first, strict=strict, candidates=candidates))

    for entry in entries:
        if entry.index_type == RANGE_BITMAP:
            found = _of_nulls(k, strict, candidates, row_count) if entry.is_empty else indexes.ask(entry, column_type, ask)
            if entry.is_empty:
                indexes.note(entry, found)
            return indexes.settle(found)
    return REMAIN


def _of_nulls(k: int, strict: bool, candidates: BitMap | None, row_count: int) -> FileIndexResult:
    """The answer of an empty index: no row has a value, so all tie."""
    rows = BitMap(range(row_count)) if candidates is None else candidates
    return RowSet(rows[:k] if strict else rows)


__all__ = ["top_n"]

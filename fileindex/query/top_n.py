"""Top-n rows and aggregates of a column, from its index.

``top_n`` returns candidate rows of ``ORDER BY column LIMIT k`` from a range-bitmap. ``summary`` returns count, extremes and sum of some
rows from a ``bsi`` index (O'Neil and Quass, 1997).
"""

from __future__ import annotations

from collections.abc import Mapping

from pyroaring import BitMap

from fileindex.format.bsi import BsiReader, NumberSummary
from fileindex.format.container import ContainerReader
from fileindex.format.range_bitmap_reader import RangeBitmapReader
from fileindex.format.registry import IndexReader
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.query.reader import MAX_ROWS, FileIndexes
from fileindex.rowset.result import REMAIN, SKIP, FileIndexResult, RowSet
from sparkexpr.values.column_type import ColumnType

RANGE_BITMAP = "range-bitmap"
BSI = "bsi"


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
    """Return rows that include the file's first ``k`` rows.

    REMAIN without a usable index. Never raises. The answer is that of Paimon's ``RangeBitmap`` file index, with two exceptions:
    a column of nulls only also respects ``k`` and ``candidates``, and the two zeros of a float column tie.

    Args:
        container: The file's indexes.
        column: The first sort column.
        types: The data file's columns.
        k: Number of rows.
        ascending: Smallest first. If False, greatest first.
        nulls_first: Position of nulls.
        strict: There is no other sort column, so any of the tied rows will do. If False, keep all rows that tie with the last.
        candidates: Rows that exist and may match (not deleted, selected by a filter). None: all.
        row_count: The data file's rows. An index of another number of rows is ignored.
        notes: Receives what was read, used, and could not be used.

    >>> import pyarrow as pa
    >>> from fileindex.format.container import write_index_container
    >>> from fileindex.keys.group_by import ColumnRows
    >>> from fileindex.format.range_bitmap_writer import write_range_bitmap
    >>> kind, rows = ColumnType("INT"), ColumnRows(ColumnType("INT"))
    >>> rows.append(pa.array([10, 20, 30, 5, 15], pa.int32()))
    >>> container = ContainerReader.of(write_index_container([("a", "range-bitmap", write_range_bitmap(rows.group(), kind))]))
    >>> how = dict(ascending=True, nulls_first=False, strict=True, candidates=None, row_count=5, notes=IndexMetrics())
    >>> top_n(container, ColumnRef("a"), {"a": kind}, 3, **how).rows
    BitMap([0, 3, 4])
    """
    if row_count > MAX_ROWS:
        return REMAIN
    if k <= 0 or candidates == BitMap():
        return SKIP
    indexes = FileIndexes(container, types, row_count, notes)
    indexed = indexes.of(column)
    if indexed is None:
        return REMAIN
    column_type, entries = indexed

    def best_rows(reader: IndexReader) -> FileIndexResult:
        assert isinstance(reader, RangeBitmapReader)
        return RowSet(reader.top_n(k, ascending=ascending, nulls_first=nulls_first, strict=strict, candidates=candidates))

    for entry in entries:
        if entry.index_type == RANGE_BITMAP:
            top_rows = _top_nulls(k, strict, candidates, row_count) if entry.is_empty else indexes.evaluate(entry, column_type, best_rows)
            if entry.is_empty:
                indexes.record_answer(entry, top_rows)
            return indexes.record_usage(top_rows)
    return REMAIN


def _top_nulls(k: int, strict: bool, candidates: BitMap | None, row_count: int) -> FileIndexResult:
    """Return the answer of an empty index.

    No row has a value, so all tie.
    """
    rows = BitMap(range(row_count)) if candidates is None else candidates
    return RowSet(rows[:k] if strict else rows)


def summary(
    container: ContainerReader,
    column: ColumnRef,
    types: Mapping[str, ColumnType],
    rows: BitMap | None,
    *,
    row_count: int,
    notes: IndexMetrics,
) -> NumberSummary | None:
    """Return the exact summary of the numbers of ``rows``.

    None without a usable index. Never raises.

    Args:
        container: The file's indexes.
        column: Column of the numbers.
        types: The data file's columns.
        rows: Positions of the rows. None: all rows.
        row_count: The data file's rows. An index of another number of rows is ignored.
        notes: Receives what was read, used, and could not be used.

    >>> import pyarrow as pa
    >>> from fileindex.format.bsi import write_bsi
    >>> from fileindex.format.container import write_index_container
    >>> from fileindex.keys.group_by import ColumnRows
    >>> numbers = ColumnRows(ColumnType("INT"))
    >>> numbers.append(pa.array([10, None, -30, 5], pa.int32()))
    >>> container = ContainerReader.of(write_index_container([("a", "bsi", write_bsi(numbers.group()))]))
    >>> summary(container, ColumnRef("a"), {"a": ColumnType("INT")}, BitMap([0, 1, 2]), row_count=4, notes=IndexMetrics())
    NumberSummary(count=2, least=-30, greatest=10, total=-20)
    """
    if row_count > MAX_ROWS:
        return None
    indexes = FileIndexes(container, types, row_count, notes)
    indexed = indexes.of(column)
    if indexed is None:
        return None

    def summarize(reader: IndexReader) -> NumberSummary | None:
        assert isinstance(reader, BsiReader)
        return reader.summary(rows)

    for entry in indexed[1]:
        if entry.index_type == BSI:
            return NumberSummary(0, None, None, 0) if entry.is_empty else indexes.query(entry, indexed[0], summarize)
    return None

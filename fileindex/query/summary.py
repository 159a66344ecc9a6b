"""Count, extremes and sum of a column's numbers in some rows of a file, from the ``bsi`` index of the column (O'Neil and Quass, 1997)."""

from __future__ import annotations

from collections.abc import Mapping

from pyroaring import BitMap

from fileindex.base.column_type import ColumnType
from fileindex.format.bsi import BsiReader, NumberSummary
from fileindex.format.container import ContainerReader
from fileindex.format.registry import IndexReader
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.query.reader import MAX_ROWS, FileIndexes

BSI = "bsi"


def summary(
    container: ContainerReader,
    column: ColumnRef,
    types: Mapping[str, ColumnType],
    rows: BitMap | None,
    *,
    row_count: int,
    notes: IndexMetrics,
) -> NumberSummary | None:
    """What the numbers of ``rows`` (None: all) come to, exactly; None if no index tells. Never an exception.

    Args:
        container: the file's indexes.
        column: whose numbers.
        types: the data file's columns.
        rows: positions that count.
        row_count: the data file's rows; an index of another number of rows says nothing.
        notes: gets what was read, used, and could not be used.

    >>> import pyarrow as pa
    >>> from fileindex.format.bsi import write_bsi
    >>> from fileindex.format.container import write_index_container
    >>> from fileindex.keys.group_by import ColumnRows
    >>> numbers = ColumnRows(ColumnType("INT"))
    >>> numbers.append(pa.array([10, None, -30, 5], pa.int32()))
    >>> container = ContainerReader.of(write_index_container([("a", "bsi", write_bsi(numbers.grouped()))]))
    >>> summary(container, ColumnRef("a"), {"a": ColumnType("INT")}, BitMap([0, 1, 2]), row_count=4, notes=IndexMetrics())
    NumberSummary(count=2, least=-30, greatest=10, total=-20)
    """
    if row_count > MAX_ROWS:
        return None
    indexes = FileIndexes(container, types, row_count, notes)
    known = indexes.of(column)
    if known is None:
        return None

    def ask(reader: IndexReader) -> NumberSummary | None:
        assert isinstance(reader, BsiReader)
        return reader.summary(rows)

    for entry in known[1]:
        if entry.index_type == BSI:
            return NumberSummary(0, None, None, 0) if entry.is_empty else indexes.told(entry, known[0], ask)
    return None


__all__ = ["summary"]

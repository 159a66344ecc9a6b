"""Aggregates of a column from its ``bsi`` index.

Count, extremes and sum of some rows of a file (O'Neil and Quass, 1997).
"""

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
    known = indexes.of(column)
    if known is None:
        return None

    def summarize(reader: IndexReader) -> NumberSummary | None:
        assert isinstance(reader, BsiReader)
        return reader.summary(rows)

    for entry in known[1]:
        if entry.index_type == BSI:
            return NumberSummary(0, None, None, 0) if entry.is_empty else indexes.query(entry, known[0], summarize)
    return None


__all__ = ["summary"]

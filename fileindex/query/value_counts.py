"""Values of a column and how many rows have each, by a bitmap index."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
from pyroaring import BitMap

from fileindex.format.bitmap_reader import BitmapReader
from fileindex.format.container import ContainerReader
from fileindex.format.registry import IndexReader
from fileindex.keys.fixed import is_lossy
from fileindex.predicate.tree import ColumnRef
from fileindex.query.metrics import IndexMetrics
from fileindex.query.reader import MAX_ROWS, FileIndexes
from paimon_base.thresholds import thresholds
from sparkexpr.values.column_type import ColumnType

BITMAP = "bitmap"


def value_counts(
    container: ContainerReader,
    column: ColumnRef,
    types: Mapping[str, ColumnType],
    rows: BitMap | None,
    *,
    row_count: int,
    notes: IndexMetrics,
) -> tuple[Any, Any] | None:
    """Return the values and the number of ``rows`` with each, both as arrays.

    The null comes last. A value may have no row. None without an index that has all values, or if it has so many that reading the column costs
    less. Never raises.

    Args:
        container: The file's indexes.
        column: Column or map entry.
        types: The data file's columns.
        rows: Positions of the rows. None: all rows.
        row_count: The data file's rows. An index of another number of rows is ignored.
        notes: Receives what was read, used, and could not be used.

    >>> from fileindex.format.bitmap_writer import write_bitmap
    >>> from fileindex.format.container import write_index_container
    >>> from fileindex.keys.group_by import ColumnRows
    >>> texts, kind = ColumnRows(ColumnType("VARCHAR")), ColumnType("VARCHAR")
    >>> texts.append(pa.array(["a", None, "b", "a"]))
    >>> container = ContainerReader.of(write_index_container([("c", "bitmap", write_bitmap(texts.group(), kind))]))
    >>> values, counts = value_counts(container, ColumnRef("c"), {"c": kind}, BitMap([0, 1, 3]), row_count=4, notes=IndexMetrics())
    >>> dict(zip(values.to_pylist(), counts.to_pylist()))
    {'a': 2, 'b': 0, None: 1}
    """
    if row_count > MAX_ROWS:
        return None
    indexes = FileIndexes(container, types, row_count, notes)
    indexed = indexes.of(column)
    if indexed is None or is_lossy(indexed[0]):
        return None

    def counts(reader: IndexReader) -> tuple[Any, Any] | None:
        assert isinstance(reader, BitmapReader)
        # With a selection, each set is decoded: that costs as much as the column, unless there are few values.
        if reader.distinct > (thresholds.row_sets if rows is None or 2 * len(rows) > row_count else thresholds.dense_sets):
            return None
        values, sizes = reader.value_counts(rows)
        return values, pa.array(sizes)

    entry = next((entry for entry in indexed[1] if entry.index_type == BITMAP and not entry.is_empty), None)
    return None if entry is None else indexes.query(entry, indexed[0], counts)

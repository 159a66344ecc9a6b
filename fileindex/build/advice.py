"""Advice about indexes that cost more than they save.

It is given when indexes are declared, and after they are built.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fileindex.build.options import IndexSpec

FEW_ROWS_A_VALUE = 2
"""With fewer rows for each distinct value, a bitmap index consists mostly of the list of values."""

SMALL = 4096
"""Bytes of an index up to which no advice is given."""

BY_VALUE = "bitmap"
"""Index type with one bitmap per value."""


def nearly_all_differ(rows: int, distinct: int, size: int) -> bool:
    """Return whether nearly all rows have distinct values.

    An index of at most ``SMALL`` bytes (``size``) is exempt.
    """
    return 0 < rows < FEW_ROWS_A_VALUE * distinct and size > SMALL


def size_advice(rows: int, distinct: int, size: int) -> str | None:
    """Return advice for a bitmap index that was just built.

    None if its size is justified.

    >>> size_advice(1000, 1000, 50_000)
    'takes 50,000 bytes: 1,000 of 1,000 rows have distinct values; file-index.bloom-filter.columns finds equal values in about 1,000 bytes'
    >>> size_advice(1000, 10, 50_000)
    """
    if not nearly_all_differ(rows, distinct, size):
        return None
    # A bloom filter of one byte per value has a false positive rate of about 2 %.
    return (
        f"takes {size:,} bytes: {distinct:,} of {rows:,} rows have distinct values; "
        f"file-index.bloom-filter.columns finds equal values in about {distinct:,} bytes"
    )


def unique_column_advice(specs: Iterable[IndexSpec], unique: Collection[str]) -> Iterator[str]:
    """Yield advice about declared indexes on unique columns.

    Args:
        specs: Declared indexes.
        unique: Columns without repeated values.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> next(unique_column_advice([IndexSpec(ColumnRef("id"), "bitmap")], {"id"}))
    "file-index.bitmap.columns: the values of 'id' are unique, so a bitmap is as large as the column; use file-index.bloom-filter.columns"
    """
    for spec in specs:
        if spec.index_type == BY_VALUE and spec.column.key is None and spec.column.name in unique:
            yield (
                f"file-index.bitmap.columns: the values of '{spec.column.name}' are unique, so a bitmap is as large as the column; "
                "use file-index.bloom-filter.columns"
            )

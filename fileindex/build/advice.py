"""Indexes that cost more than they give, told before and while they are built."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from fileindex.build.options import IndexSpec

FEW_ROWS_A_VALUE = 2
"""With fewer rows for each distinct value an index by value is mostly the list of values."""

SMALL = 4096
"""Bytes of an index about which nothing need be said."""

BY_VALUE = "bitmap"
"""The index type that has a bitmap for each value."""


def nearly_all_differ(rows: int, distinct: int, size: int) -> bool:
    """Whether an index by value, of ``size`` bytes, is large because nearly every row has a value of its own."""
    return 0 < rows < FEW_ROWS_A_VALUE * distinct and size > SMALL


def costly(rows: int, distinct: int, size: int) -> str | None:
    """What to say of an index by value that was just built, with what it costs; None if it is well chosen.

    >>> costly(1000, 1000, 50_000)
    'takes 50,000 bytes, for 1,000 of 1,000 rows have a value of their own; file-index.bloom-filter.columns finds equal values in about 1,000 bytes'
    >>> costly(1000, 10, 50_000)
    """
    if not nearly_all_differ(rows, distinct, size):
        return None
    return (  # of the bloom filter: a byte a value lets about one in fifty through
        f"takes {size:,} bytes, for {distinct:,} of {rows:,} rows have a value of their own; "
        f"file-index.bloom-filter.columns finds equal values in about {distinct:,} bytes"
    )


def unwise(specs: Iterable[IndexSpec], unique: Collection[str]) -> Iterator[str]:
    """What to say of indexes that are asked for; ``unique`` columns have no value twice.

    >>> from fileindex.predicate.tree import ColumnRef
    >>> next(unwise([IndexSpec(ColumnRef("id"), "bitmap")], {"id"}))
    "file-index.bitmap.columns: no value of 'id' is there twice, so a bitmap is as large as the column; use file-index.bloom-filter.columns"
    """
    for spec in specs:
        if spec.index_type == BY_VALUE and spec.column.key is None and spec.column.name in unique:
            yield (
                f"file-index.bitmap.columns: no value of '{spec.column.name}' is there twice, so a bitmap is as large as the column; "
                "use file-index.bloom-filter.columns"
            )


__all__ = ["BY_VALUE", "FEW_ROWS_A_VALUE", "SMALL", "costly", "nearly_all_differ", "unwise"]

"""The second Parquet decoder, polars: it filters while it decodes, which is most of the work where hits lie in almost every page.

It gets chunks whose checksums have been verified, and never decides alone: a type that it reads as another one is left to the first
decoder, and so is a file that it cannot read.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from fileindex.base.arrays import Int64s, Mask
from fileindex.base.process import can_use_polars
from lsm.parquet.chunk_reader import ChunkGroup, chunk_file
from lsm.parquet.page_index import ColumnPages

_Rows = Int64s
_ALIKE = (
    pa.types.is_boolean,
    pa.types.is_signed_integer,
    pa.types.is_float32,
    pa.types.is_float64,
    pa.types.is_date32,
    pa.types.is_decimal128,
    pa.types.is_string,
    pa.types.is_binary,
)


def can_decode(arrow: Any) -> bool:
    """Whether values of a type of the file come out as they do of the first decoder.

    >>> can_decode(pa.string()), can_decode(pa.decimal128(38, 2)), can_decode(pa.list_(pa.int32())), can_decode(pa.timestamp("us"))
    (True, True, False, False)
    """
    return any(is_such(arrow) for is_such in _ALIKE)


def masked_rows(leaves: Sequence[ColumnPages], types: Sequence[Any], mask: Mask) -> list[Any] | None:
    """The values of flat leaves of one row group where ``mask`` is true, an Array of the file's ``types`` for each.

    None if this decoder cannot tell. Raises ``ValueError`` or ``LookupError`` if pages are not as the file promises.
    """
    if not can_use_polars():
        return None
    names = [leaf.name for leaf in leaves]
    own = _other_name(names)
    wanted = _polars().col(own)
    found = _collected(chunk_file([ChunkGroup(leaves, mask)], own), lambda file: file.filter(wanted).select(names))
    if found is None or len(found) != np.count_nonzero(mask):
        return None
    arrays = [_as(column, arrow) for column, arrow in zip(found.get_columns(), types, strict=True)]
    return None if any(array is None for array in arrays) else arrays


def rows_of_texts(leaves: Sequence[ColumnPages], texts: Sequence[str]) -> list[_Rows] | None:
    """Where a text column is one of ``texts``: of each of its chunks (one for every row group) the positions in the group.

    None and errors as for ``masked_rows``.
    """
    if not can_use_polars():
        return None
    name = leaves[0].name
    own = _other_name([name])
    pl = _polars()
    wanted = pl.col(name) == texts[0] if len(texts) == 1 else pl.col(name).is_in(pl.Series(texts).implode())
    groups = [ChunkGroup([leaf]) for leaf in leaves]
    found = _collected(chunk_file(groups), lambda file: file.with_row_index(own).filter(wanted).select(own))
    if found is None:
        return None
    rows = found.get_column(own).to_numpy().astype(np.int64)
    starts = np.cumsum([0, *(group.rows for group in groups)])
    pieces = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [piece - start for piece, start in zip(pieces, starts[:-1], strict=True)]


def _collected(content: bytes, query: Any) -> Any | None:
    pl = _polars()
    try:
        file = pl.scan_parquet(content, parallel="auto", use_statistics=False, glob=False, hive_partitioning=False)
        return query(file).collect()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, ValueError, TypeError, OSError):
        return None


def _other_name(names: Sequence[str]) -> str:
    name = "_rows"
    while name in names:
        name += "_"
    return name


@cache
def _polars() -> Any:
    """Loaded when it is needed: that takes a fifth of a second, which only scattered hits are worth."""
    import polars as pl  # noqa: PLC0415

    return pl


def _as(column: Any, arrow: Any) -> Any | None:
    """A column as one Array; None if it has another type than the file's."""
    array = column.to_arrow(compat_level=_polars().CompatLevel.oldest())
    if pa.types.is_large_string(array.type):
        array = array.cast(pa.string())
    elif pa.types.is_large_binary(array.type):
        array = array.cast(pa.binary())
    return array if array.type == arrow else None


__all__ = ["can_decode", "masked_rows", "rows_of_texts"]

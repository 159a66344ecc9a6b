"""The second Parquet decoder, polars.

It filters while decoding, which is faster if hits are in almost every page. It receives chunks with verified checksums.
The first decoder is used if polars reads a column as another type, or cannot read the file.
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
    """Return whether both decoders agree on a type.

    >>> can_decode(pa.string()), can_decode(pa.decimal128(38, 2)), can_decode(pa.list_(pa.int32())), can_decode(pa.timestamp("us"))
    (True, True, False, False)
    """
    return any(is_such(arrow) for is_such in _ALIKE)


def masked_rows(leaves: Sequence[ColumnPages], types: Sequence[Any], mask: Mask) -> list[Any] | None:
    """Return the values of flat leaves where ``mask`` is True.

    Leaves are of one row group. One Array per leaf, with the file's ``types``. None: this decoder cannot read them.

    Raises:
        ValueError, LookupError: Pages do not match the file's metadata.
    """
    if not can_use_polars():
        return None
    names = [leaf.name for leaf in leaves]
    own = _other_name(names)
    wanted = _polars().col(own)
    found = _collect(chunk_file([ChunkGroup(leaves, mask)], own), lambda file: file.filter(wanted).select(names))
    if found is None or len(found) != np.count_nonzero(mask):
        return None
    arrays = [_as(column, arrow) for column, arrow in zip(found.get_columns(), types, strict=True)]
    return None if any(array is None for array in arrays) else arrays


def rows_of_texts(leaves: Sequence[ColumnPages], texts: Sequence[str]) -> list[_Rows] | None:
    """Return the positions of ``texts`` in each chunk.

    Positions are relative to the row group. None and errors are as for ``masked_rows``.
    """
    if not can_use_polars():
        return None
    name = leaves[0].name
    own = _other_name([name])
    pl = _polars()
    wanted = pl.col(name) == texts[0] if len(texts) == 1 else pl.col(name).is_in(pl.Series(texts).implode())
    groups = [ChunkGroup([leaf]) for leaf in leaves]
    found = _collect(chunk_file(groups), lambda file: file.with_row_index(own).filter(wanted).select(own))
    if found is None:
        return None
    rows = found.get_column(own).to_numpy().astype(np.int64)
    starts = np.cumsum([0, *(group.rows for group in groups)])
    pieces = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [piece - start for piece, start in zip(pieces, starts[:-1], strict=True)]


def _collect(content: bytes, query: Any) -> Any | None:
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
    """Import polars."""
    # Loading takes 0.2 s, so it is delayed until scattered hits need it.
    import polars as pl  # noqa: PLC0415

    return pl


def _as(column: Any, arrow: Any) -> Any | None:
    """Return a column as one Array. None: its type differs."""
    array = column.to_arrow(compat_level=_polars().CompatLevel.oldest())
    if pa.types.is_large_string(array.type):
        array = array.cast(pa.string())
    elif pa.types.is_large_binary(array.type):
        array = array.cast(pa.binary())
    return array if array.type == arrow else None


__all__ = ["can_decode", "masked_rows", "rows_of_texts"]

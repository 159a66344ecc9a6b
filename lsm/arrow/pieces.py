"""Tables cut into pieces that fit Arrow's 32-bit offsets.

The texts of one array must have less than 2 GiB once expanded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lsm.arrow.leaf_types import with_leaves, without_views
from paimon_base.thresholds import thresholds

_FARTHEST = (1 << 31) - 1


def in_pieces(rows: Any, kinds: Any = None, max_bytes: int | None = None) -> Iterator[tuple[Any, Any]]:
    """Cut rows into pieces of at most ``max_bytes`` bytes.

    ``kinds`` are cut alike.

    Bytes are counted with dictionaries expanded. None: ``Thresholds.piece_bytes``. A single row is never cut.

    >>> repeated = pa.DictionaryArray.from_arrays(pa.array([0] * 8), pa.array(["x" * 100]))
    >>> [piece.num_rows for piece, _ in in_pieces(pa.table({"text": repeated}), max_bytes=450)]
    [4, 4]
    """
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    max_bytes = thresholds.piece_bytes if max_bytes is None else max_bytes
    if sum(map(_expanded_size, table.columns)) <= max_bytes:
        if not any(map(_lies_far, table.columns)):
            yield table, kinds
            return
    else:
        # A slice of views counts the bytes of all views, and Arrow cannot take rows of views.
        table = table.cast(pa.schema([field.with_type(with_leaves(field.type, without_views)) for field in table.schema]))
    pieces = list(_cut(table, 0, max_bytes))
    if len(pieces) == 1 and not any(map(_lies_far, table.columns)):
        yield table, kinds
        return
    for first, last in pieces:
        piece = table.slice(first, last - first)
        yield piece.take(pa.array(np.arange(last - first))), None if kinds is None else kinds[first:last]  # a copy whose offsets begin at 0


def _cut(table: Any, first: int, max_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of each piece.

    ``first`` is the number of rows before ``table``.
    """
    rows = table.num_rows
    if rows < 2 or sum(map(_expanded_size, table.columns)) <= max_bytes:
        yield first, first + rows
        return
    half = rows // 2
    yield from _cut(table.slice(0, half), first, max_bytes)
    yield from _cut(table.slice(half), first + half, max_bytes)


def _lies_far(column: Any) -> bool:
    """Return whether offsets of rows may exceed 32 bits.

    Rows may be a slice of a much longer column.
    """
    types = pa.types
    wide = types.is_large_string(column.type) or types.is_large_binary(column.type) or types.is_nested(column.type)
    return bool(wide and column.get_total_buffer_size() > _FARTHEST)


def _expanded_size(column: Any) -> int:
    """Return the bytes of a column with dictionaries expanded."""
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    return sum(_plain_size(chunk) for chunk in column.chunks)


def _plain_size(chunk: Any) -> int:
    values = chunk.dictionary
    if not len(values):
        return 0
    mean = values.nbytes / len(values)
    if _is_sized(values.type):
        lengths = pc.binary_length(values).fill_null(0).to_numpy(zero_copy_only=False)
        if int(lengths.max()) * len(chunk) > thresholds.piece_bytes:  # otherwise the estimate by the mean is small enough
            codes = chunk.indices.drop_null().to_numpy(zero_copy_only=False)
            return int(lengths[codes].sum(dtype=np.int64))
    return int(mean * len(chunk))


def _is_sized(kind: Any) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind))

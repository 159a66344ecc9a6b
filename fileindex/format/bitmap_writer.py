"""Writer of the ``bitmap`` index, versions 1 and 2.

For every distinct value of a column, and for null, the index stores the set of its rows. A value with one row needs no set:
its offset is ``-1 - row``. All parts (keys, offsets, index blocks, sets) are assembled for all values at once.
Layout as in Paimon's ``BitmapFileIndexMeta`` and ``BitmapFileIndexMetaV2``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from fileindex.format.int_range import check_size
from fileindex.keys.group_by import GroupedColumn
from fileindex.keys.stored import KeyEntries, key_entries
from fileindex.rowset.roaring import SINGLETON_BYTES, rows_to_bitmap, serialize, serialize_groups
from sparkexpr.values.column_type import ColumnType

VERSION_1 = 1
VERSION_2 = 2
DEFAULT_BLOCK_SIZE = 16384

_Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def write_bitmap(
    column: GroupedColumn, column_type: ColumnType, *, version: int = VERSION_2, block_size: int = DEFAULT_BLOCK_SIZE
) -> bytes:
    """Return the payload for a grouped column.

    Raises:
        OverflowError: The row sets exceed 2 GiB, the range of offsets.

    >>> import pyarrow as pa
    >>> from fileindex.keys.group_by import ColumnRows
    >>> rows, kind = ColumnRows(ColumnType("INT")), ColumnType("INT")
    >>> rows.append(pa.array([0, 1, None], pa.int32()))
    >>> write_bitmap(rows.group(), kind, version=1).hex()
    '01000000030000000201fffffffd00000000ffffffff00000001fffffffe'
    """
    keys = column.keys
    nulls = serialize(rows_to_bitmap(column.null_rows)) if len(column.null_rows) > 1 else b""
    offsets, lengths, sets = _value_sets(column, len(nulls))
    head = [struct.pack(">bii?", version, column.row_count, len(keys), len(column.null_rows) > 0)]
    if len(column.null_rows):
        head.append(struct.pack(">i", 0 if nulls else -1 - int(column.null_rows[0])))
    if version == VERSION_1:
        index: list[bytes | memoryview] = [key_entries(keys, column_type, [offsets]).data]
    else:
        if len(column.null_rows):
            head.append(struct.pack(">i", len(nulls) or SINGLETON_BYTES))
        index = _blocks(key_entries(keys, column_type, [offsets, lengths]), block_size)
    return b"".join([*head, *index, nulls, sets])


def _value_sets(column: GroupedColumn, start: int) -> tuple[_Ints, _Ints, bytes]:
    """Return offsets, lengths and bytes of the row sets.

    The sets are in key order and follow ``start`` bytes of the body.
    """
    counts = np.diff(column.starts)
    single = counts == 1
    offsets = np.empty(len(counts), dtype=np.int64)
    lengths = np.full(len(counts), -1, dtype=np.int64)
    # A set of one row has no bytes: its negative offset is the row.
    offsets[single] = -1 - column.rows[column.starts[:-1][single]].astype(np.int64)
    several = ~single
    shared = column.rows[np.repeat(several, counts)] if single.any() else column.rows
    data, bounds = serialize_groups(shared, np.concatenate([[0], np.cumsum(counts[several])]))
    check_size("a bitmap index", start + len(data))
    offsets[several] = start + bounds[:-1]
    lengths[several] = np.diff(bounds)
    return offsets, lengths, data.tobytes()


def _blocks(entries: KeyEntries, block_size: int) -> list[bytes | memoryview]:
    """Return version 2's directory of first keys, and the blocks.

    A block holds as many entries as ``block_size`` allows, but at least one.
    """
    directory: list[bytes | memoryview] = []
    blocks: list[bytes | memoryview] = []
    size = 0
    for first, last in _partition(entries.bounds, block_size - 4):
        directory += [entries.key(first), struct.pack(">i", size)]
        block = entries.data[int(entries.bounds[first]) : int(entries.bounds[last])]
        blocks += [struct.pack(">i", last - first), block]
        size += 4 + len(block)
    check_size("the key section of a bitmap index", size)
    return [struct.pack(">i", len(directory) // 2), *directory, struct.pack(">i", size), *blocks]


def _partition(bounds: _Ints, room: int) -> Iterator[tuple[int, int]]:
    first, count = 0, len(bounds) - 1
    while first < count:
        last = int(np.searchsorted(bounds, bounds[first] + room, side="right")) - 1
        last = min(max(last, first + 1), count)
        yield first, last
        first = last

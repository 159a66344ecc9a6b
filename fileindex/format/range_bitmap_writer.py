"""Writer of the ``range-bitmap`` index.

A sorted dictionary numbers the distinct values. Bit slices store every row's number.
Layout as in Paimon's ``RangeBitmap``, ``ChunkedDictionary`` and ``BitSliceIndexBitmap``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from fileindex.format.int_range import MAX_INT, check_size
from fileindex.keys.fixed import key_width
from fileindex.keys.group_by import GroupedColumn
from fileindex.keys.stored import KeyEntries, key_entries
from fileindex.rowset.flags import serialize_flags, serialize_slices
from sparkexpr.values.column_type import STRINGS, ColumnType, Kind

RANGE_BITMAP_VERSION = 1
DEFAULT_CHUNK_SIZE = 16384

_SMALL = frozenset({Kind.BOOLEAN, Kind.TINYINT, Kind.SMALLINT})
_Ints: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


def default_chunk_size(column_type: ColumnType) -> int:
    """Return the default bytes of keys per dictionary chunk.

    For the smallest types 0: a chunk has only its first key.

    >>> default_chunk_size(ColumnType("INT")), default_chunk_size(ColumnType("TINYINT"))
    (16384, 0)
    """
    return 0 if column_type.kind in _SMALL else DEFAULT_CHUNK_SIZE


def write_range_bitmap(column: GroupedColumn, column_type: ColumnType, *, chunk_size: int | None = None) -> bytes:
    """Return the payload for a grouped column.

    Raises:
        OverflowError: A section exceeds 2 GiB, the range of offsets.

    >>> from fileindex.keys.group_by import ColumnRows
    >>> import pyarrow as pa
    >>> rows = ColumnRows(ColumnType("INT"))
    >>> rows.append(pa.array([7, 7], pa.int32()))
    >>> len(write_range_bitmap(rows.group(), ColumnType("INT")))
    121
    """
    keys = key_entries(column.keys, column_type)
    room = default_chunk_size(column_type) if chunk_size is None else min(chunk_size, MAX_INT)
    dictionary = _text_dictionary(keys, room) if column_type.kind in STRINGS else _fixed_dictionary(keys, key_width(column_type), room)
    bounds = [bytes(keys.key(0)), bytes(keys.key(len(keys) - 1))] if len(keys) else []
    check_size("a range-bitmap dictionary", len(dictionary))
    header = struct.pack(">bii", RANGE_BITMAP_VERSION, column.row_count, len(keys)) + b"".join(bounds) + struct.pack(">i", len(dictionary))
    return b"".join([struct.pack(">i", len(header)), header, dictionary, _slices(column, len(keys))])


def _fixed_dictionary(keys: KeyEntries, width: int, room: int) -> bytes:
    """Return a dictionary of fixed-size keys.

    All chunks have the same number of keys. The first key of each is in its header.
    """
    count, per_chunk = len(keys), 1 + room // width
    first = np.arange(0, count, per_chunk)
    size = np.diff(np.append(first, count)) - 1
    table = np.frombuffer(keys.data, dtype=np.dtype((np.void, width))) if count else np.zeros(0, dtype=np.dtype((np.void, width)))
    record = np.dtype(
        [
            ("version", "i1"),
            ("key", np.dtype((np.void, width))),
            ("code", ">i4"),
            ("at", ">i4"),
            ("size", ">i4"),
            ("bytes", ">i4"),
            ("width", ">i4"),
        ]
    )
    headers = np.zeros(len(first), dtype=record)
    headers["version"] = RANGE_BITMAP_VERSION
    headers["key"] = table[first]
    headers["code"] = first
    headers["at"] = (np.cumsum(size) - size) * width
    headers["size"] = size
    headers["bytes"] = size * width
    headers["width"] = width
    offsets = (np.arange(len(first)) * record.itemsize).astype(">i4")
    return _dictionary(offsets.tobytes(), headers.tobytes(), np.delete(table, first).tobytes())


def _text_dictionary(keys: KeyEntries, room: int) -> bytes:
    """Return a dictionary of texts.

    A chunk is filled while its texts, and its offsets, fit ``room`` bytes. A chunk's key area has the offsets first, then the texts.
    """
    offsets: list[int] = []
    headers: list[bytes | memoryview] = []
    areas: list[bytes | memoryview] = []
    header_at = area_at = 0
    for first, last in _partition(keys.bounds, room):
        key = keys.key(first)
        begin = int(keys.bounds[first + 1])
        text_offsets = (keys.bounds[first + 1 : last] - begin).astype(">i4").tobytes()
        texts = keys.data[begin : int(keys.bounds[last])]
        tail = struct.pack(">iiiii", first, area_at, last - first - 1, len(text_offsets), len(texts))
        offsets.append(header_at)
        headers += [struct.pack(">b", RANGE_BITMAP_VERSION), key, tail]
        areas += [text_offsets, texts]
        header_at += 1 + len(key) + len(tail)
        area_at += len(text_offsets) + len(texts)
    check_size("a part of a range-bitmap dictionary", max(header_at, area_at))
    return _dictionary(np.array(offsets, dtype=">i4").tobytes(), b"".join(headers), b"".join(areas))


def _partition(bounds: _Ints, room: int) -> Iterator[tuple[int, int]]:
    first, count = 0, len(bounds) - 1
    while first < count:
        last = int(np.searchsorted(bounds, bounds[first + 1] + room, side="right")) - 1
        last = min(last, first + 1 + room // 4, count)
        yield first, last
        first = last


def _dictionary(offsets: bytes, headers: bytes, keys: bytes) -> bytes:
    head = struct.pack(">ibiii", 13, RANGE_BITMAP_VERSION, len(offsets) // 4, len(offsets), len(headers))
    return b"".join([head, offsets, headers, keys])


def _slices(column: GroupedColumn, cardinality: int) -> bytes:
    slices = serialize_slices(column.expand(column.codes), max(1, (cardinality - 1).bit_length() if cardinality else 1))
    existence = serialize_flags(column.present)
    lengths = np.array([len(data) for data in slices], dtype=np.int64)
    offsets = np.cumsum(lengths) - lengths
    check_size("the bit slices of a range-bitmap", int(offsets[-1]))
    indexes = np.stack([offsets, lengths], axis=1).astype(">i4").tobytes()
    head = struct.pack(">ibbii", 10 + len(indexes), RANGE_BITMAP_VERSION, len(slices), len(existence), len(indexes))
    return b"".join([head, indexes, existence, *slices])

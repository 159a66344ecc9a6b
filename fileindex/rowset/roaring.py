"""Conversion between numpy arrays and 32-bit Roaring bitmaps.

Bitmaps are stored in the portable, run-optimised, little-endian format. Large sets are serialised by ``pyroaring``.
The many small sets of a bitmap index (one per distinct value) are serialised together by numpy, to the same bytes.
Bytes from a file are validated here before the C library reads them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from pyroaring import BitMap

from paimon_base.errors import CorruptIndex
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import Mask, UInt32s

_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Bytes: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]

_NO_RUNS, _RUNS = 12346, 12347
_ARRAY_MAX = 4096
_BITSET_BYTES = 8192
_NO_OFFSETS_BELOW = 4
SINGLETON_BYTES = 18
"""Serialised size of a set of one row."""


def rows_to_bitmap(rows: UInt32s) -> BitMap:
    """Return the set of row numbers in any order.

    >>> rows_to_bitmap(np.array([3, 1], dtype=np.uint32))
    BitMap([1, 3])
    """
    return BitMap(
        array("I", np.ascontiguousarray(rows, dtype=np.uint32).tobytes())
    )  # pyroaring iterates over any other buffer item by item


def bitmap_to_rows(rows: BitMap) -> UInt32s:
    """Return the row numbers of a set, ascending.

    >>> bitmap_to_rows(BitMap([3, 1])).tolist()
    [1, 3]
    """
    return np.frombuffer(rows.to_array(), dtype=np.uint32)


def all_rows(row_count: int) -> BitMap:
    """Return the set of all rows of a file.

    >>> all_rows(3)
    BitMap([0, 1, 2])
    """
    return BitMap(range(row_count))


def serialize(rows: BitMap) -> bytes:
    """Return portable bytes, run optimised as Java's writer does.

    Optimises ``rows`` in place.

    >>> serialize(BitMap([0, 1, 2, 3])).hex()
    '3b3000000100000300010000000300'
    """
    rows.run_optimize()
    data: bytes = rows.serialize()
    return data


def deserialize(data: bytes | memoryview) -> tuple[BitMap, int]:
    """Return the first set in ``data``, and its size.

    The size is its number of bytes. Further bytes are ignored.

    Raises:
        CorruptIndex: The bytes are truncated, or violate an invariant of the format.

    >>> deserialize(bytes.fromhex("3a3000000100000000000000100000000500ffff"))
    (BitMap([5]), 18)
    """
    try:
        length = _check(data)
    except ValueError as error:
        raise CorruptIndex(f"a row set is malformed: {error}") from error
    return BitMap.deserialize(bytes(data[:length])), length


def cardinality(data: bytes | memoryview) -> int:
    """Return the number of rows of the first set in ``data``, from its header.

    Raises:
        CorruptIndex: The header is truncated or unknown.

    >>> cardinality(bytes.fromhex("3a3000000100000000000000100000000500"))
    1
    """
    cookie = int.from_bytes(data[:4], "little")
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        header_start = 4 + (count + 7) // 8
    elif cookie == _NO_RUNS:
        count, header_start = int.from_bytes(data[4:8], "little"), 8
    else:
        raise CorruptIndex(f"a row set is malformed: unknown cookie {cookie}")
    if header_start + 4 * count > len(data):
        raise CorruptIndex(f"a row set is malformed: its header of {count} containers is truncated")
    # A container stores its cardinality minus one: 65,536 does not fit 16 bits.
    return count + int(np.frombuffer(data, "<u2", 2 * count, header_start)[1::2].sum(dtype=np.int64))


def bytes_in_memory(rows: BitMap) -> int:
    """Return the approximate bytes in memory.

    >>> bytes_in_memory(BitMap([1, 2, 3]))
    206
    """
    statistics = rows.get_statistics()
    return 200 + statistics["n_bytes_array_containers"] + statistics["n_bytes_run_containers"] + statistics["n_bytes_bitset_containers"]


def _check(data: bytes | memoryview) -> int:
    """Return the length of the serialised set.

    Raises ValueError if it is malformed.
    """
    cookie = int.from_bytes(data[:4], "little")
    has_runs = cookie & 0xFFFF == _RUNS
    if has_runs:
        count = (cookie >> 16) + 1
        flags = np.unpackbits(np.frombuffer(data, np.uint8, (count + 7) // 8, 4), bitorder="little")[:count].astype(bool)
        position = 4 + (count + 7) // 8
    elif cookie == _NO_RUNS:
        count = int.from_bytes(data[4:8], "little")
        if count > 65536:
            raise ValueError(f"it has {count} containers, more than 65536")
        flags, position = np.zeros(count, dtype=bool), 8
    else:
        raise ValueError(f"unknown cookie {cookie}")
    header = np.frombuffer(data, "<u2", 2 * count, position).reshape(count, 2).astype(np.int64)
    position += 4 * count
    if (np.diff(header[:, 0]) <= 0).any():
        raise ValueError("containers out of order")
    offsets = None
    if not has_runs or count >= _NO_OFFSETS_BELOW:
        offsets = np.frombuffer(data, "<u4", count, position)
        position += 4 * count
    counts = header[:, 1] + 1
    is_bitset = ~flags & (counts > _ARRAY_MAX)
    for first, last in _spans(is_bitset):
        if offsets is not None and int(offsets[first]) != position:
            raise ValueError("a container is not at its offset")
        if is_bitset[first]:
            _check_bitsets(data, position, counts[first:last], None if offsets is None else offsets[first:last])
            position += _BITSET_BYTES * (last - first)
        else:
            position += _check_container(data, position, int(counts[first]), is_run=bool(flags[first]))
    return position


def _spans(is_bitset: Mask) -> Iterator[tuple[int, int]]:
    """Yield ranges of containers.

    Consecutive bitsets form one range; each other container is a separate range.
    """
    opens = np.ones(len(is_bitset), np.bool_)
    opens[1:] = ~(is_bitset[1:] & is_bitset[:-1])
    starts = np.flatnonzero(opens).tolist()
    return pairwise([*starts, len(is_bitset)])


def _check_bitsets(data: bytes | memoryview, position: int, counts: _Longs, offsets: UInt32s | None) -> None:
    """Check consecutive bitset containers."""
    if offsets is not None and (np.diff(offsets.astype(np.int64)) != _BITSET_BYTES).any():
        raise ValueError("a container is not at its offset")
    words = np.frombuffer(data, "<u8", len(counts) * _BITSET_BYTES // 8, position).reshape(len(counts), -1)
    if (np.bitwise_count(words).sum(axis=1, dtype=np.int64) != counts).any():
        raise ValueError("a bitset container has a wrong cardinality")


def _check_container(data: bytes | memoryview, position: int, cardinality: int, *, is_run: bool) -> int:
    """Return the bytes of an array or run container."""
    if is_run:
        runs = int(np.frombuffer(data, "<u2", 1, position)[0])
        pairs = np.frombuffer(data, "<u2", 2 * runs, position + 2).reshape(runs, 2).astype(np.int64)
        ends = pairs[:, 0] + pairs[:, 1]
        if not runs or (ends > 0xFFFF).any() or (pairs[1:, 0] <= ends[:-1]).any() or int(pairs[:, 1].sum()) + runs != cardinality:
            raise ValueError("a container has invalid runs")
        return 2 + 4 * runs
    values = np.frombuffer(data, "<u2", cardinality, position)
    if (values[1:] <= values[:-1]).any():
        raise ValueError("an array container out of order")
    return 2 * cardinality


def serialize_groups(rows: UInt32s, starts: _Longs) -> tuple[_Bytes, _Longs]:
    """Return the serialised sets of many groups of rows.

    Args:
        rows: Rows of all groups, ascending inside a group. Each group has 2 rows or more.
        starts: Start of each group in ``rows``, and finally the number of rows.

    Returns:
        All bytes, and the start of each set (and finally the number of bytes).

    >>> data, offsets = serialize_groups(np.array([0, 1, 5, 7], dtype=np.uint32), np.array([0, 2, 4]))
    >>> data.tobytes()[: offsets[1]].hex()
    '3a30000001000000000001001000000000000100'
    """
    step = thresholds.row_set_part
    parts = [_serialize_part(rows, starts[first : first + step + 1]) for first in range(0, len(starts) - 1, step)]
    if not parts:
        return np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)
    lengths = np.concatenate([np.diff(offsets) for _, offsets in parts])
    return np.concatenate([data for data, _ in parts]), np.concatenate([[0], np.cumsum(lengths)])


def _serialize_part(rows: UInt32s, starts: _Longs) -> tuple[_Bytes, _Longs]:
    counts = np.diff(starts)
    rows, starts = rows[starts[0] : starts[-1]], starts - starts[0]
    large = np.flatnonzero(counts >= thresholds.large_group)
    small = np.flatnonzero(counts < thresholds.large_group)
    blobs = [serialize(rows_to_bitmap(rows[starts[group] : starts[group + 1]])) for group in large]
    is_small = np.repeat(counts < thresholds.large_group, counts)
    layout = _Layout(rows[is_small] if len(large) else rows, counts[small]) if len(small) else None
    sizes = np.zeros(len(counts), dtype=np.int64)
    sizes[large] = [len(blob) for blob in blobs]
    if layout is not None:
        sizes[small] = layout.sizes
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    out = np.zeros(int(offsets[-1]), dtype=np.uint8)
    for group, blob in zip(large.tolist(), blobs, strict=True):
        out[offsets[group] : offsets[group + 1]] = np.frombuffer(blob, np.uint8)
    if layout is not None:
        layout.write(out, offsets[small])
    return out, offsets


class _Layout:
    """Layout of many small sets, computed without a loop.

    Their containers (arrays and runs only), sizes and bytes.
    """

    def __init__(self, rows: UInt32s, counts: _Longs) -> None:
        self.low = (rows & 0xFFFF).astype(np.int64)
        high = (rows >> 16).astype(np.int64)
        group_of_row = np.repeat(np.arange(len(counts)), counts)
        opens = np.ones(len(rows), dtype=bool)
        opens[1:] = (np.diff(group_of_row) != 0) | (np.diff(high) != 0)
        self.first_row = np.flatnonzero(opens)
        self.key = high[self.first_row]
        self.group = group_of_row[self.first_row]
        self.cardinality = np.diff(np.append(self.first_row, len(rows)))
        self.run_opens = opens.copy()
        self.run_opens[1:] |= np.diff(self.low) != 1
        self.runs = np.add.reduceat(self.run_opens.astype(np.int64), self.first_row)
        self.is_run = 2 + 4 * self.runs < 2 * self.cardinality
        self.container_size = np.where(self.is_run, 2 + 4 * self.runs, 2 * self.cardinality)
        self.containers = np.bincount(self.group, minlength=len(counts))
        self.first_container = np.cumsum(self.containers) - self.containers
        self.has_runs = np.logical_or.reduceat(self.is_run, self.first_container)
        self.flag_bytes = np.where(self.has_runs, (self.containers + 7) // 8, 0)
        self.has_offsets = ~self.has_runs | (self.containers >= _NO_OFFSETS_BELOW)
        self.keys_at = np.where(self.has_runs, 4 + self.flag_bytes, 8)
        header = self.keys_at + 4 * self.containers + np.where(self.has_offsets, 4 * self.containers, 0)
        ends = np.cumsum(self.container_size)
        before = ends - self.container_size
        self.data_at = header[self.group] + before - before[self.first_container][self.group]
        self.sizes = header + np.add.reduceat(self.container_size, self.first_container)

    def write(self, out: _Bytes, set_starts: _Longs) -> None:
        """Write every set's bytes into ``out``.

        Set ``i`` starts at ``at[i]``.
        """
        plain, runs = ~self.has_runs, self.has_runs
        _put(out, set_starts, np.where(runs, _RUNS | (self.containers - 1) << 16, _NO_RUNS), 4)
        _put(out, set_starts[plain] + 4, self.containers[plain], 4)
        number = np.arange(len(self.group)) - self.first_container[self.group]
        run_containers = np.flatnonzero(self.is_run)
        owners = self.group[run_containers]
        flags_at = set_starts[owners] + 4 + (number[run_containers] >> 3)
        np.bitwise_or.at(out, flags_at, (1 << (number[run_containers] & 7)).astype(np.uint8))
        start = set_starts[self.group]
        keys_at = start + self.keys_at[self.group] + 4 * number
        _put(out, keys_at, self.key, 2)
        _put(out, keys_at + 2, self.cardinality - 1, 2)
        listed = self.has_offsets[self.group]
        offsets_at = start + self.keys_at[self.group] + 4 * self.containers[self.group] + 4 * number
        _put(out, offsets_at[listed], self.data_at[listed], 4)
        self._write_data(out, start + self.data_at)

    def _write_data(self, out: _Bytes, data_starts: _Longs) -> None:
        container = np.repeat(np.arange(len(self.group)), self.cardinality)
        position = np.arange(len(self.low)) - self.first_row[container]
        arrays = ~self.is_run[container]
        _put(out, data_starts[container][arrays] + 2 * position[arrays], self.low[arrays], 2)
        _put(out, data_starts[self.is_run], self.runs[self.is_run], 2)
        opens = np.flatnonzero(self.run_opens)
        lengths = np.diff(np.append(opens, len(self.low)))
        owner = container[opens]
        first_run = np.cumsum(self.runs) - self.runs
        runs_at = data_starts[owner] + 2 + 4 * (np.arange(len(opens)) - first_run[owner])
        in_run = self.is_run[owner]
        _put(out, runs_at[in_run], self.low[opens][in_run], 2)
        _put(out, runs_at[in_run] + 2, lengths[in_run] - 1, 2)


def _put(out: _Bytes, positions: _Longs, values: _Longs, width: int) -> None:
    """Write ``values`` into ``out`` at the byte positions ``positions``.

    Numbers are little-endian and have ``width`` bytes.
    """
    for byte in range(width):
        out[positions + byte] = (values >> (8 * byte)) & 0xFF

"""Serialised row sets from a flag for every row.

They are written straight from the bits, 65536 rows per container, without a list of rows. The bytes are the same as from ``roaring.serialize``.
For sets with a large part of the rows, such as bit slices, this is many times faster.
"""

from __future__ import annotations

import struct
from typing import Any, TypeAlias

import numpy as np

_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]

_BITSET_BYTES = 8192
_NO_RUNS, _RUNS = 12346, 12347
_ARRAY_MAX = 4096
_NO_OFFSETS_BELOW = 4
_ONE, _LAST = np.uint64(1), np.uint64(63)


def serialize_flags(flags: Any) -> bytes:
    """Return the set of rows with a non-zero flag.

    ``flags`` are booleans or bytes. The result is portable and run optimised.

    >>> serialize_flags(np.array([1, 1, 1, 1, 0], dtype=np.uint8)).hex()
    '3b3000000100000300010000000300'
    """
    packed = np.packbits(flags, bitorder="little")
    bits = np.zeros(-(-len(packed) // _BITSET_BYTES) * _BITSET_BYTES, dtype=np.uint8)
    bits[: len(packed)] = packed
    return _serialize(bits.view("<u8").reshape(-1, _BITSET_BYTES // 8))


def serialize_slices(numbers: Any, count: int) -> list[bytes]:
    """Return the rows with each of the lowest bits.

    Args:
        numbers: Unsigned numbers of all rows.
        count: Number of bits.

    >>> [len(data) for data in serialize_slices(np.array([1, 3], dtype=np.uint32), 2)]
    [20, 18]
    """
    planes = np.ascontiguousarray(numbers).astype(numbers.dtype.newbyteorder("<"), copy=False).view(np.uint8)
    planes = planes.reshape(len(numbers), numbers.itemsize)
    slices = []
    for low in range(0, count, 8):
        plane = np.ascontiguousarray(planes[:, low // 8])
        slices += [serialize_flags(plane & np.uint8(1 << bit)) for bit in range(min(8, count - low))]
    return slices


def _serialize(words: _Words) -> bytes:
    """Return the set of the bits of ``words``.

    Each line is one container.
    """
    cardinalities = np.bitwise_count(words).sum(axis=1, dtype=np.int64)
    keys = np.flatnonzero(cardinalities)
    count = len(keys)
    if count == 0:
        return struct.pack("<II", _NO_RUNS, 0)
    opens = _run_starts(words)
    runs = np.bitwise_count(opens).sum(axis=1, dtype=np.int64)
    is_run = (2 + 4 * runs < np.minimum(2 * cardinalities, _BITSET_BYTES))[keys]
    blobs = [
        _run_container(words[key], opens[key]) if run else _container(words[key], int(cardinalities[key]))
        for key, run in zip(keys.tolist(), is_run.tolist(), strict=True)
    ]
    head = _head(is_run)
    header = np.stack([keys, cardinalities[keys] - 1], axis=1).astype("<u2").tobytes()
    offsets = b""
    if not is_run.any() or count >= _NO_OFFSETS_BELOW:
        lengths = np.array([len(blob) for blob in blobs], dtype=np.int64)
        offsets = (len(head) + 8 * count + np.cumsum(lengths) - lengths).astype("<u4").tobytes()
    return b"".join([head, header, offsets, *blobs])


def _head(is_run: np.ndarray[Any, np.dtype[np.bool_]]) -> bytes:
    count = len(is_run)
    if not is_run.any():
        return struct.pack("<II", _NO_RUNS, count)
    return struct.pack("<I", _RUNS | (count - 1) << 16) + np.packbits(is_run, bitorder="little").tobytes()


def _run_starts(words: _Words) -> _Words:
    """Return the bits at which runs begin."""
    before = words << _ONE
    before[:, 1:] |= words[:, :-1] >> _LAST
    return words & ~before


def _container(words: _Words, cardinality: int) -> bytes:
    return words.tobytes() if cardinality > _ARRAY_MAX else _positions(words).tobytes()


def _run_container(words: _Words, opens: _Words) -> bytes:
    after = words >> _ONE
    after[:-1] |= words[1:] << _LAST
    starts, ends = _positions(opens), _positions(words & ~after)
    return struct.pack("<H", len(starts)) + np.stack([starts, ends - starts], axis=1).tobytes()


def _positions(words: _Words) -> Any:
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)).astype("<u2")

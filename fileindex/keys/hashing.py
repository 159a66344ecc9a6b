"""Hashes of the bloom filter: XXH64, and Thomas Wang's mix.

XXH64 hashes texts and bytes, Wang's mix hashes numbers; both give 64 bits. XXH64 processes all values of an array together:
one numpy step per 8-byte lane instead of one call per value. Long values, for which this is slower, go to the ``xxhash`` library one by one.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import xxhash

from fileindex.keys.fixed import convert_keys
from paimon_base.thresholds import thresholds
from sparkexpr.values.arrays import numpy_array
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, ColumnType, Kind

_Words: TypeAlias = np.ndarray[Any, np.dtype[np.uint64]]
_Longs: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]

_STRIPE = 32
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime) for prime in (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
)
_SEEDS = tuple(np.uint64(seed % 2**64) for seed in (int(_P1) + int(_P2), int(_P2), 0, -int(_P1)))
_ROTATIONS = (1, 7, 12, 18)


def hash_array(values: Any, column_type: ColumnType) -> _Words:
    """Return the hashes of an array's non-null values, in order.

    ``values`` are in physical form (``plain_array``). Numbers are hashed by Paimon's ``FastHash`` rules: integers, dates and times sign extended;
    floats by their bits with one NaN; timestamps as milliseconds up to precision 3, else as microseconds.

    >>> [f"{value:016x}" for value in hash_array(pa.array(["a", None, "hello"]), ColumnType(Kind.VARCHAR))]
    ['d24ec4f1a98c6e5b', '26c7827d889f6da3']
    """
    dense = values.drop_null() if values.null_count else values
    if column_type.kind in STRINGS or column_type.kind in BINARIES:
        return xxh64(dense)
    return wang_mix(_longs(dense, column_type)).view(np.uint64)


def _longs(values: Any, column_type: ColumnType) -> _Longs:
    numbers = numpy_array(values)
    if column_type.kind is Kind.FLOAT:
        bits = numbers.astype(np.float32, copy=True)
        bits[np.isnan(bits)] = np.nan
        return np.asarray(bits.view(np.int32).astype(np.int64))
    if column_type.kind is Kind.DOUBLE:
        bits = numbers.astype(np.float64, copy=True)
        bits[np.isnan(bits)] = np.nan
        return np.asarray(bits.view(np.int64))
    if column_type.kind in TIMESTAMPS and column_type.unit == "ns":
        return np.asarray(np.floor_divide(numbers, 1000))
    return np.asarray(numbers.astype(np.int64))


def wang_mix(values: _Longs) -> _Longs:
    """Return Thomas Wang's 64-bit mix of each value.

    Right shifts propagate the sign, as in Paimon.

    >>> f"{wang_mix(np.array([-1]))[0]:016x}"
    '5bca868437950d03'
    """
    mixed = np.empty_like(values)
    step = thresholds.hash_chunk
    for first in range(0, len(values), step):
        mixed[first : first + step] = _mix(values[first : first + step])
    return mixed


def _mix(values: _Longs) -> _Longs:
    x = values << 21
    x -= values
    x -= 1
    x ^= x >> 24
    x += (x << 3) + (x << 8)
    x ^= x >> 14
    x += (x << 2) + (x << 4)
    x ^= x >> 28
    x += x << 31
    return np.asarray(x)


def hash_keys(keys: Any, column_type: ColumnType) -> _Words:
    """Return the hashes of index keys.

    ``keys`` are sortable numbers (``keys.to_keys``), or a large_string array. A key has the same hash as its value.

    >>> hash_keys(np.array([2]), ColumnType(Kind.INT)) == hash_array(pa.array([2]), ColumnType(Kind.INT))
    array([ True])
    """
    return xxh64(keys) if column_type.kind in STRINGS else wang_mix(convert_keys(keys, column_type)).view(np.uint64)


def xxh64(values: Any) -> _Words:
    """Return XXH64 with seed 0 of every value.

    ``values`` is a string or binary array (small or large offsets) without nulls.

    >>> f"{xxh64(pa.array(['paimon']))[0]:016x}"
    '088c6247bf3815e4'
    """
    offsets, data = text_buffers(values)
    starts, lengths = offsets[:-1], np.diff(offsets)
    result = np.empty(len(values), dtype=np.uint64)
    classes = np.minimum(lengths, thresholds.long_value_bytes).astype(np.uint16)
    order = np.argsort(classes, kind="stable")  # a radix sort that groups values of one length
    bounds = np.searchsorted(classes[order], np.arange(thresholds.long_value_bytes + 2))
    for length in np.flatnonzero(np.diff(bounds)).tolist():
        first, last = int(bounds[length]), int(bounds[length + 1])
        if length == thresholds.long_value_bytes or last - first < thresholds.few_values:
            for index in order[first:last].tolist():
                result[index] = xxhash.xxh64_intdigest(data.data[starts[index] : starts[index] + lengths[index]])
            continue
        for begin in range(first, last, thresholds.hash_chunk):
            chunk = order[begin : min(begin + thresholds.hash_chunk, last)]
            result[chunk] = _xxh64_equal(data, starts[chunk], length)
    return result


def text_buffers(values: Any) -> tuple[_Longs, np.ndarray[Any, np.dtype[np.uint8]]]:
    """Return offsets and data of a string or binary array.

    Offsets are int64, one more than values. They count from the start of the data.
    """
    wide = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    if not (wide or pa.types.is_string(values.type) or pa.types.is_binary(values.type)):
        raise TypeError(f"{values.type} is neither text nor bytes")
    _, offsets, data = values.buffers()
    if offsets is None or len(values) == 0:
        return np.zeros(len(values) + 1, dtype=np.int64), np.zeros(0, dtype=np.uint8)
    raw = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[values.offset : values.offset + len(values) + 1]
    return raw.astype(np.int64, copy=False), np.frombuffer(data, dtype=np.uint8) if data is not None else np.zeros(0, dtype=np.uint8)


def _xxh64_equal(data: np.ndarray[Any, np.dtype[np.uint8]], offsets: _Longs, length: int) -> _Words:
    """Return XXH64 of values of one length.

    ``offsets`` has the position of each value.
    """
    words, halves = _unaligned(data, np.dtype("<u8")), _unaligned(data, np.dtype("<u4"))
    state = _stripes(words, offsets, length) if length >= _STRIPE else np.full(len(offsets), _P5)
    state += np.uint64(length)
    for lane in range(length - length % _STRIPE, length - 7, 8):
        state ^= _rotate(words[offsets + lane] * _P2, 31) * _P1
        state = _rotate(state, 27) * _P1 + _P4
    hashed_bytes = length - length % 8
    if length - hashed_bytes >= 4:
        state = _rotate(state ^ (halves[offsets + hashed_bytes].astype(np.uint64) * _P1), 23) * _P2 + _P3
        hashed_bytes += 4
    for byte in range(hashed_bytes, length):
        state = _rotate(state ^ (data[offsets + byte].astype(np.uint64) * _P5), 11) * _P1
    state ^= state >> np.uint64(33)
    state *= _P2
    state ^= state >> np.uint64(29)
    state *= _P3
    state ^= state >> np.uint64(32)
    return state


def _stripes(words: _Words, offsets: _Longs, length: int) -> _Words:
    """Return the merged four accumulators over all whole stripes."""
    lanes = [np.full(len(offsets), seed) for seed in _SEEDS]
    for stripe in range(0, length - _STRIPE + 1, _STRIPE):
        for number in range(4):
            lanes[number] = _rotate(lanes[number] + words[offsets + (stripe + 8 * number)] * _P2, 31) * _P1
    state = np.zeros(len(offsets), dtype=np.uint64)
    for lane, rotation in zip(lanes, _ROTATIONS, strict=True):
        state += _rotate(lane, rotation)
    for lane in lanes:
        state = (state ^ (_rotate(lane * _P2, 31) * _P1)) * _P1 + _P4
    return state


def _rotate(values: _Words, bits: int) -> _Words:
    return (values << np.uint64(bits)) | (values >> np.uint64(64 - bits))


def _unaligned(data: np.ndarray[Any, np.dtype[np.uint8]], kind: np.dtype[Any]) -> Any:
    """Return a view whose element ``i`` starts at byte ``i``."""
    count = max(0, len(data) - kind.itemsize + 1)
    return np.ndarray((count,), dtype=kind, buffer=data, strides=(1,)) if count else np.zeros(0, dtype=kind)

"""Unsigned LEB128 numbers and byte ranges, many at once."""

from __future__ import annotations

import numpy as np

from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import AnyArray, Int64s, UInt8s

_UNTERMINATED = 1 << 48
INT_BYTES = 5
LONG_BYTES = 9


def bounds_of(lengths: AnyArray) -> Int64s:
    """Return the start of each length's range, and the end of the last.

    >>> bounds_of(np.array([3, 0, 2])).tolist()
    [0, 3, 3, 5]
    """
    bounds = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    return bounds


def varint_size(number: int) -> int:
    """Return the bytes of a number.

    >>> varint_size(127), varint_size(128)
    (1, 2)
    """
    return max(1, -(-number.bit_length() // 7))


def encode_varints(numbers: Int64s) -> tuple[UInt8s, Int64s]:
    """Return the bytes of all numbers, and the bounds of each.

    >>> data, bounds = encode_varints(np.array([1, 300]))
    >>> data.tobytes().hex(), bounds.tolist()
    ('01ac02', [0, 1, 3])
    """
    sizes = np.ones(len(numbers), np.int64)
    for bits in range(7, int(numbers.max(initial=0)).bit_length(), 7):
        sizes += numbers >= 1 << bits
    bounds = bounds_of(sizes)
    data = np.empty(int(bounds[-1]), np.uint8)
    for byte in range(int(sizes.max(initial=0))):
        longer = sizes > byte
        octets = numbers[longer] >> 7 * byte & 0x7F | (sizes[longer] > byte + 1) << 7
        data[bounds[:-1][longer] + byte] = octets
    return data, bounds


def encode_varint(number: int) -> bytes:
    """Return the bytes of one number."""
    return encode_varints(np.array([number], np.int64))[0].tobytes()


def varints_at(data: UInt8s, starts: Int64s, most_bytes: int) -> tuple[Int64s, Int64s]:
    """Return the numbers that start at positions, and their ends.

    A number of more than ``most_bytes`` has an end far behind the data: compare the ends with the expected ones.

    >>> [part.tolist() for part in varints_at(np.array([1, 0xAC, 2], np.uint8), np.array([0, 1]), INT_BYTES)]
    [[1, 300], [1, 3]]
    """
    numbers, ends = np.zeros(len(starts), np.int64), starts.astype(np.int64)
    if not len(data):
        return numbers, ends + _UNTERMINATED
    is_open = np.ones(len(starts), np.bool_)
    for byte in range(most_bytes):
        octets = data[np.minimum(ends, len(data) - 1)].astype(np.int64)
        numbers |= np.where(is_open, (octets & 0x7F) << 7 * byte, 0)
        ends += is_open
        is_open &= octets >= 0x80
        if not is_open.any():
            return numbers, ends
    return numbers, ends + _UNTERMINATED * is_open


def decode_varints(data: UInt8s, most_bytes: int) -> tuple[Int64s, Int64s]:
    """Return the numbers that follow each other in ``data``, and their ends.

    Raises CorruptIndex if the last one is cut off, or one has more than ``most_bytes``.

    >>> decode_varints(np.array([1, 0xAC, 2], np.uint8), INT_BYTES)[0].tolist()
    [1, 300]
    """
    ends = np.flatnonzero(data < 0x80) + 1
    starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]]) if len(ends) else ends
    if int(ends[-1] if len(ends) else 0) != len(data) or int((ends - starts).max(initial=0)) > most_bytes:
        raise CorruptIndex("a number of an index is malformed")
    return varints_at(data, starts, most_bytes)


def gather(data: UInt8s, starts: Int64s, lengths: Int64s) -> tuple[UInt8s, Int64s]:
    """Return ranges of bytes one after the other, and their bounds.

    Raises CorruptIndex for a range outside of the data.

    >>> gathered, bounds = gather(np.arange(9, dtype=np.uint8), np.array([7, 1]), np.array([2, 1]))
    >>> gathered.tolist(), bounds.tolist()
    ([7, 8, 1], [0, 2, 3])
    """
    if len(starts) and (int(lengths.min()) < 0 or int(starts.min()) < 0 or int((starts + lengths).max()) > len(data)):
        raise CorruptIndex("a part of an index lies outside of its block")
    bounds = bounds_of(lengths)
    if not int(bounds[-1]):
        return data[:0], bounds
    if int(bounds[-1]) > 64 * len(lengths):  # a position for each byte would take more than the bytes
        return np.concatenate(
            [data[start : start + length] for start, length in zip(starts.tolist(), lengths.tolist(), strict=True)]
        ), bounds
    return data[np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], lengths)], bounds

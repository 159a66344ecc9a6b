"""Keys of a sorted index: values as sortable keys, and as stored bytes.

Sortable keys are 64-bit numbers, or bytes in a ``large_string`` array (texts, and decimals of more than 18 digits). They order as Paimon's
``KeySerializer`` compares: floats in Java's total order with one NaN, texts by their bytes. Stored numbers are little endian, so their
bytes do not sort.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fileindex.keys.fixed import convert_keys, key_width, literal_keys, stored_keys, to_keys
from fileindex.keys.hashing import text_buffers
from fileindex.sorted_index.varints import INT_BYTES, bounds_of, encode_varints, gather, varints_at
from paimon_base.errors import CorruptIndex
from sparkexpr.values.arrays import Int64s, Mask, UInt8s, arrow_array, numpy_array
from sparkexpr.values.column_type import FLOATS, INTEGERS, STRINGS, TIMESTAMPS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import is_plain, plain_array

Key: TypeAlias = int | bytes
Keys: TypeAlias = Any
"""Sortable keys: an int64 array of numpy, or a large_string array of Arrow that need not be UTF-8."""

_KINDS = STRINGS | INTEGERS | FLOATS | TIMESTAMPS | {Kind.BOOLEAN, Kind.DECIMAL, Kind.DATE, Kind.TIME}
_MAX_LONG = 2**63 - 1
_LONG_DIGITS = 18
_WIDE = 16
_SIGN = 0x80
_NANOS_PER_MILLI = 1_000_000


def supports(column_type: ColumnType) -> bool:
    """Return whether columns of a type can have a sorted index.

    >>> supports(ColumnType(Kind.DATE)), supports(ColumnType(Kind.VARBINARY))
    (True, False)
    """
    return column_type.kind in _KINDS


class KeyCodec:
    """Conversions between values, sortable keys and stored bytes of a column."""

    def __init__(self, column_type: ColumnType) -> None:
        if not supports(column_type):
            raise CorruptIndex(f"a column of type {column_type.kind} cannot have a sorted index")
        self._type = column_type
        self._is_wide = column_type.kind is Kind.DECIMAL and column_type.precision > _LONG_DIGITS
        self.has_texts = self._is_wide or column_type.kind in STRINGS
        self.key_type = column_type
        """A type whose values sort and compare as the keys do."""
        if self.has_texts:
            self.key_type = ColumnType(Kind.VARCHAR)
        elif column_type.kind in TIMESTAMPS:
            self.key_type = ColumnType(Kind.BIGINT)
        self._ticks_per_milli = {"ms": 0, "us": 1000, "ns": _NANOS_PER_MILLI}[column_type.unit] if column_type.kind in TIMESTAMPS else 0
        """Of timestamps with nanoseconds in their keys, else 0."""

    def physical(self, array: Any) -> Any:
        """Return a column as an array of ``key_type`` in physical form. Nulls are kept."""
        physical = plain_array(array, self._type)
        if self._is_wide:
            return _biased(physical)
        return physical.cast(pa.large_string()) if self.has_texts else physical

    def keys(self, array: Any) -> Keys:
        """Return the sortable keys of a column without nulls.

        >>> KeyCodec(ColumnType(Kind.DATE)).keys(pa.array([3, 1], pa.date32())).tolist()
        [3, 1]
        """
        physical = self.physical(array)
        return physical if self.has_texts else to_keys(physical, self.key_type)

    def values(self, keys: Keys) -> Any:
        """Return the values of sortable keys, as an array of the column's type.

        Raises CorruptIndex for texts that are not UTF-8.

        >>> KeyCodec(ColumnType(Kind.FLOAT)).values(np.array([-1, 0])).to_pylist()
        [-0.0, 0.0]
        """
        if self._is_wide:
            table = _bytes_table(keys)
            table[:, 0] ^= _SIGN
            return _decimals(table[:, ::-1], self._type)
        if self.has_texts:
            try:
                keys.validate(full=True)
            except pa.ArrowInvalid as error:
                raise CorruptIndex("a text of an index is not UTF-8") from error
            return keys
        match self._type.kind:
            case Kind.BOOLEAN:
                return arrow_array(keys != 0)
            case Kind.DECIMAL:
                return _decimals(np.stack([keys, keys >> 63], axis=1), self._type)
            case kind:
                width = key_width(self._type)
                numbers = convert_keys(keys, self._type).astype(f"i{width}")
                return arrow_array(numbers.view(f"f{width}")) if kind in FLOATS else arrow_array(numbers).view(self._type.arrow)

    def encode(self, keys: Keys) -> Any:
        """Return the stored bytes of sortable keys, as a large_binary array.

        >>> KeyCodec(ColumnType(Kind.INT)).encode(np.array([-2])).to_pylist()[0].hex()
        'feffffff'
        """
        if self._is_wide:
            return _minimal(keys)
        if self.has_texts:
            return keys.view(pa.large_binary())
        if not self._ticks_per_milli:
            return _fixed_binary(convert_keys(keys, self._type).astype(f"<i{key_width(self._type)}"))
        millis, ticks = np.divmod(keys, self._ticks_per_milli)
        nanos, bounds = encode_varints(ticks * (_NANOS_PER_MILLI // self._ticks_per_milli))
        return join_binaries(_fixed_binary(millis.astype("<i8")), binaries(nanos, bounds))

    def decode(self, data: UInt8s, bounds: Int64s) -> Keys:
        """Return the sortable keys of stored bytes: key ``i`` ends at ``bounds[i + 1]``.

        Raises CorruptIndex for bytes that are no key of the column.

        >>> KeyCodec(ColumnType(Kind.SMALLINT)).decode(np.array([1, 0, 0xFE, 0xFF], np.uint8), np.array([0, 2, 4])).tolist()
        [1, -2]
        """
        lengths = np.diff(bounds)
        if self._is_wide:
            return _widened(data, bounds)
        if self.has_texts:
            return binaries(data, bounds).view(pa.large_string())
        width = key_width(self._type)
        if self._ticks_per_milli:
            return self._decode_ticks(data, bounds)
        if (lengths != width).any():
            raise CorruptIndex(f"a key of an index has other than {width} bytes")
        numbers = np.ascontiguousarray(data[: int(bounds[-1])]).view(f"<i{width}")
        if self._type.kind is Kind.BOOLEAN and (numbers & ~1).any():
            raise CorruptIndex("a key of an index is not a boolean")
        return stored_keys(numbers, self._type)

    def _decode_ticks(self, data: UInt8s, bounds: Int64s) -> Int64s:
        starts = bounds[:-1]
        if (np.diff(bounds) <= 8).any():
            raise CorruptIndex("a key of an index has fewer bytes than a timestamp")
        head, _ = gather(data, starts, np.full(len(starts), 8))
        millis = head.view("<i8")
        nanos, ends = varints_at(data, starts + 8, INT_BYTES)
        keys: Int64s = millis * self._ticks_per_milli + nanos // (_NANOS_PER_MILLI // self._ticks_per_milli)
        # A timestamp beyond 64 bits overflows, so that its milliseconds do not come back.
        if (ends != bounds[1:]).any() or (nanos >= _NANOS_PER_MILLI).any() or (keys // self._ticks_per_milli != millis).any():
            raise CorruptIndex("a key of an index is not a timestamp of the column")
        return keys

    def literals(self, value: Plain) -> tuple[Key, ...] | None:
        """Return the keys of values that equal a literal, ascending.

        A zero of a float column has the keys of both zeros. None: the column cannot have the literal.

        >>> KeyCodec(ColumnType(Kind.DOUBLE)).literals(0.0), KeyCodec(ColumnType(Kind.TINYINT)).literals(300)
        ((-1, 0), None)
        """
        if value is None or not is_plain(value, self._type):
            return None
        if self._is_wide and isinstance(value, int):
            return ((value + (1 << 127)).to_bytes(_WIDE, "big"),)
        return literal_keys(value, self.key_type)


@lru_cache
def codec_of(column_type: ColumnType) -> KeyCodec:
    """Return the codec of a type."""
    return KeyCodec(column_type)


def binaries(data: UInt8s, bounds: Int64s) -> Any:
    """Return parts of ``data`` as a large_binary array, without a copy."""
    offsets = np.ascontiguousarray(bounds, np.int64)
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(bounds) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def join_binaries(*columns: Any) -> Any:
    """Return the parts of each row joined: large_binary arrays or scalars."""
    return pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.large_binary()))


def key_list(keys: Keys) -> list[Any]:
    """Return sortable keys as Python objects."""
    values: list[Any] = keys.tolist() if isinstance(keys, np.ndarray) else keys.view(pa.large_binary()).to_pylist()
    return values


def take_keys(keys: Keys, positions: Int64s) -> Keys:
    """Return the keys at positions."""
    return keys[positions] if isinstance(keys, np.ndarray) else keys.take(arrow_array(positions))


def is_less(keys: Keys, *, or_equal: bool) -> Mask:
    """Return for each key whether it is less than the following one.

    >>> is_less(np.array([1, 2, 2]), or_equal=False).tolist()
    [True, False]
    """
    if isinstance(keys, np.ndarray):
        return keys[:-1] <= keys[1:] if or_equal else keys[:-1] < keys[1:]
    return numpy_array((pc.less_equal if or_equal else pc.less)(keys[:-1], keys[1:]))


def first_not_less(keys: Keys, bounds: Iterable[Key]) -> list[int]:
    """Return for each bound the position of the first key that is not less.

    The keys ascend.

    >>> first_not_less(np.array([1, 5]), [5, 6, 2**63])
    [1, 2, 2]
    """
    if isinstance(keys, np.ndarray):
        ints = [int(bound) for bound in bounds]
        positions: list[int] = np.searchsorted(keys, np.array([min(bound, _MAX_LONG) for bound in ints], np.int64)).tolist()
        return [len(keys) if bound > _MAX_LONG else position for bound, position in zip(ints, positions, strict=True)]
    stored, rows = keys.view(pa.large_binary()), range(len(keys))
    return [bisect_left(rows, bound, key=lambda row: stored[row].as_py()) for bound in bounds]


def _fixed_binary(numbers: Any) -> Any:
    """Return fixed-width numbers as binary values."""
    return binaries(np.ascontiguousarray(numbers).view(np.uint8), np.arange(len(numbers) + 1, dtype=np.int64) * numbers.itemsize)


def _bytes_table(keys: Keys) -> UInt8s:
    """Return the bytes of wide decimals' keys, a row each."""
    offsets, data = text_buffers(keys)
    return data[int(offsets[0]) : int(offsets[-1])].reshape(-1, _WIDE).copy()


def _decimals(table: Any, column_type: ColumnType) -> Any:
    """Return little-endian unscaled numbers of 16 bytes as decimals."""
    return pa.Array.from_buffers(column_type.arrow, len(table), [None, pa.py_buffer(np.ascontiguousarray(table))])


def _biased(decimals: Any) -> Any:
    """Return wide decimals as bytes that sort: big endian with the sign flipped."""
    count = len(decimals)
    raw = np.frombuffer(decimals.buffers()[1], np.uint8, _WIDE * count, _WIDE * decimals.offset) if count else np.zeros(0, np.uint8)
    table = raw.reshape(-1, _WIDE)[:, ::-1].copy()
    table[:, 0] ^= _SIGN
    valid = pa.py_buffer(np.packbits(numpy_array(decimals.is_valid()), bitorder="little")) if decimals.null_count else None
    offsets = pa.py_buffer(np.arange(count + 1, dtype=np.int64) * _WIDE)
    return pa.LargeStringArray.from_buffers(count, offsets, pa.py_buffer(table), valid)


def _minimal(keys: Keys) -> Any:
    """Return wide decimals as Java's ``BigInteger.toByteArray``: as few bytes as hold the sign."""
    table = _bytes_table(keys)
    table[:, 0] ^= _SIGN
    is_negative = table[:, :1] >= _SIGN
    redundant = (table[:, :-1] == np.where(is_negative, 0xFF, 0)) & ((table[:, 1:] >= _SIGN) == is_negative)
    dropped = np.logical_and.accumulate(redundant, axis=1).sum(axis=1)
    is_needed = np.arange(_WIDE) >= dropped[:, None]
    return binaries(table[is_needed], bounds_of(_WIDE - dropped))


def _widened(data: UInt8s, bounds: Int64s) -> Any:
    """Return the keys of wide decimals."""
    lengths = np.diff(bounds)
    if (lengths < 1).any() or (lengths > _WIDE).any():
        raise CorruptIndex("a key of an index is not a decimal of the column")
    starts = bounds[:-1]
    table = np.empty((len(lengths), _WIDE), np.uint8)
    table[:] = np.where(data[starts] >= _SIGN, np.uint8(0xFF), np.uint8(0))[:, None]
    for byte in range(_WIDE):
        longer = lengths > byte
        table[longer, _WIDE - 1 - byte] = data[bounds[1:][longer] - 1 - byte]
    table[:, 0] ^= _SIGN
    return binaries(table.reshape(-1), np.arange(len(lengths) + 1, dtype=np.int64) * _WIDE).view(pa.large_string())

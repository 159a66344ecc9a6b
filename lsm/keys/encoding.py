"""Arrow columns as uint64 *words* in Paimon's key order.

The unsigned order of words is the order of keys. Nulls come first. Numbers, dates and times are ordered by value, BOOLEAN false first, strings and
binaries by unsigned bytes, a prefix before longer values. Floats have Java's total order: -0.0 before 0.0, every NaN equal and last.
A descending column only reverses the comparison of values: its nulls stay first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from paimon_base.errors import UnsupportedType
from sparkexpr.values.arrays import AnyArray, Int64s, Mask, UInt64s, numpy_array
from sparkexpr.values.float_order import total_order

WordOf: TypeAlias = Callable[[Int64s | None], UInt64s]

_SIGN = np.uint64(1 << 63)
_WORD_BYTES = 8
_MAX_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True)
class WordColumn:
    """Words of a column, the most significant first.

    ``words[k](rows)`` computes word ``k`` of ``rows`` (positions; None: all rows), so words are computed only for rows that need them.

    >>> column = WordColumn.of(pa.array([2, None, -1], pa.int32()))
    >>> [word(None).tolist() for word in column.words]
    [[1, 0, 1], [9223372036854775810, 0, 9223372036854775807]]
    """

    words: tuple[WordOf, ...]
    length: int

    @classmethod
    def of(cls, column: Any, *, descending: bool = False) -> WordColumn:
        """Return the words of an Array or ChunkedArray.

        Raises:
            UnsupportedType: Values of the column's type have no order.
        """
        array = one_array(column)
        valid = numpy_array(array.is_valid()) if array.null_count else None
        words = _variable_words(array) if is_variable(array.type) else [_of_array(word) for word in fixed_words(array)]
        if descending:
            words = [_invert(word) for word in words]
        if valid is not None:
            words = [_of_array(valid.astype(np.uint64)), *(_nulls_zeroed(word, valid) for word in words)]
        return cls(tuple(words), len(array))


def one_array(column: Any) -> Any:
    """Return ``column`` as one Array, dictionaries and views expanded.

    Does not copy an Array. Strings and binaries too large for 32-bit offsets get 64-bit ones.
    """
    if isinstance(column, pa.ChunkedArray):
        if column.num_chunks > 1 and column.nbytes > _MAX_OFFSET and (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
            column = column.cast(pa.large_string() if pa.types.is_string(column.type) else pa.large_binary())
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if pa.types.is_dictionary(column.type):
        return one_array(column.dictionary_decode())
    if column.type == pa.string_view():
        return column.cast(pa.large_string())
    if column.type == pa.binary_view():
        return column.cast(pa.large_binary())
    return column


def fixed_words(array: Any) -> list[UInt64s]:
    """Return the words of a fixed-width column.

    One word, or two for DECIMAL. Words of nulls are arbitrary.

    Raises:
        UnsupportedType: The type is nested, or has no order.
    """
    kind = array.type
    if pa.types.is_boolean(kind):
        return [array.cast(pa.uint8()).fill_null(0).to_numpy().astype(np.uint64)]
    if pa.types.is_decimal128(kind):
        halves = _values(array, np.dtype("<u8"), per_row=2)
        return [halves[1::2] ^ _SIGN, halves[0::2].copy()]
    if pa.types.is_floating(kind) and kind.bit_width in {32, 64}:
        return [_float_words(array)]
    if pa.types.is_signed_integer(kind) or pa.types.is_temporal(kind):
        return [_values(array, np.dtype(f"<i{kind.bit_width // 8}")).astype(np.int64).view(np.uint64) ^ _SIGN]
    if pa.types.is_unsigned_integer(kind):
        return [_values(array, np.dtype(f"<u{kind.bit_width // 8}")).astype(np.uint64)]
    raise UnsupportedType(f"a column of Arrow type {kind} has no order and cannot be a key or a sequence field")


def _values(array: Any, dtype: np.dtype[Any], *, per_row: int = 1, extra: int = 0) -> AnyArray:
    """Return the values buffer of ``array`` without a copy.

    Applies the offset of the array. Has ``per_row`` values per row, and ``extra`` at the end.
    """
    buffer = array.buffers()[1]
    count = len(array) * per_row + extra
    if buffer is None:
        return np.zeros(count, dtype)
    return np.frombuffer(buffer, dtype)[array.offset * per_row :][:count]


def _float_words(array: Any) -> UInt64s:
    """Return words in Java's total order."""
    wide = _values(array, np.dtype(f"<f{array.type.bit_width // 8}")).astype(np.float64)  # preserves the order and the sign of zero
    return total_order(wide).view(np.uint64) ^ _SIGN


def is_variable(kind: Any) -> bool:
    """Return whether an Arrow type is a string or binary."""
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_large_binary(kind))


def _variable_words(array: Any) -> list[WordOf]:
    """Return words of strings or binaries.

    Eight big-endian bytes per word, padded with zeros, then the length. The length distinguishes values with trailing NUL bytes.
    """
    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    offsets = _values(array, np.dtype("<i8" if wide else "<i4"), extra=1).astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    data = array.buffers()[2]
    first, last = (int(offsets[0]), int(offsets[-1])) if len(offsets) else (0, 0)
    padded = np.zeros(last - first + _WORD_BYTES, np.uint8)
    if data is not None:
        padded[: last - first] = np.frombuffer(data, np.uint8, count=last)[first:]
    # Stride 1: a word of eight bytes can begin at every byte.
    unaligned: AnyArray = np.ndarray((last - first + 1,), np.dtype(">u8"), padded.data, strides=(1,))
    starts = starts - first

    def word(position: int) -> WordOf:
        def of_rows(rows: Int64s | None) -> UInt64s:
            begin, length = (starts, lengths) if rows is None else (starts[rows], lengths[rows])
            if shortest >= (position + 1) * _WORD_BYTES:
                return unaligned[begin + position * _WORD_BYTES].astype(np.uint64)
            rest = np.clip(length - position * _WORD_BYTES, 0, _WORD_BYTES)
            begin_in_data = np.minimum(begin + position * _WORD_BYTES, last - first)
            read = unaligned[begin_in_data].astype(np.uint64)
            unused = ((_WORD_BYTES - rest) * 8).astype(np.uint64)
            # A shift by 64 bits is undefined in C: shift by at most 63, and set empty words apart.
            used_bytes = np.where(rest == 0, np.uint64(0), read >> np.minimum(unused, np.uint64(63)))
            return np.where(rest == 0, np.uint64(0), used_bytes << np.minimum(unused, np.uint64(63)))

        return of_rows

    shortest, longest = (int(lengths.min()), int(lengths.max())) if len(lengths) else (0, 0)
    return [*(word(position) for position in range(-(-longest // _WORD_BYTES))), _of_array(lengths.astype(np.uint64))]


def _of_array(words: UInt64s) -> WordOf:
    return lambda rows: words if rows is None else words[rows]


def _invert(word: WordOf) -> WordOf:
    return lambda rows: ~word(rows)


def _nulls_zeroed(word: WordOf, valid: Mask) -> WordOf:
    return lambda rows: np.where(valid if rows is None else valid[rows], word(rows), np.uint64(0))

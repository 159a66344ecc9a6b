"""BinaryRow images of many keys as columns of 32-bit words.

Bucket hashes read them, so no row has to be built. A row image is the header of null bits, a slot of two words per field, then the
variable parts in field order. The layout of a row is in ``manifest.row.binary_row``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from manifest.row.binary_row import header_size, reserved_bytes
from manifest.types.data_type import DataType
from paimon_base.errors import UnsupportedType
from sparkexpr.values.arrays import Int64s, Mask, UInt32s, UInt64s, numpy_array
from sparkexpr.values.column_type import BINARIES, STRINGS, Kind
from sparkexpr.values.plain_value import plain_array

_INLINE = 7
_LONG_DECIMAL_BYTES = 16
_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_PER_MILLI = {"us": 1_000, "ns": 1_000_000}


@dataclass(frozen=True, slots=True)
class WordStep:
    """One word of the images.

    ``rows`` are the rows whose variable part is that long. None: all rows.
    """

    words: UInt32s
    rows: Int64s | None = None


@dataclass(frozen=True, slots=True)
class RowImages:
    """Words of the images in order, and the images' sizes."""

    steps: Iterator[WordStep]
    sizes: Int64s


def row_images(columns: Sequence[pa.Array], types: Sequence[DataType]) -> RowImages:
    """Return the images of the rows of ``columns``.

    ``sizes`` are available before the steps are consumed. Raises ``UnsupportedType`` for a nested column.
    """
    fields = [_field(column, data_type) for column, data_type in zip(columns, types, strict=True)]
    count = len(columns[0])
    header = header_size(len(types))
    offsets: list[Int64s] = []
    size = np.full(count, header + 8 * len(types), dtype=np.int64)
    for field in fields:
        offsets.append(size)
        size = size + field.variable_sizes()
    return RowImages(_steps(fields, offsets, header, count), size)


def _steps(fields: Sequence[_Field], offsets: Sequence[Int64s], header: int, count: int) -> Iterator[WordStep]:
    yield from _header_steps(fields, header, count)
    for field, offset in zip(fields, offsets, strict=True):
        slots = field.slots(offset.astype(np.uint64))
        yield WordStep(slots.astype(np.uint32))
        yield WordStep((slots >> np.uint64(32)).astype(np.uint32))
    for field in fields:
        yield from field.variable_steps()


def _header_steps(fields: Sequence[_Field], header: int, count: int) -> Iterator[WordStep]:
    words = np.zeros((header // 4, count), dtype=np.uint32)
    for i, field in enumerate(fields):
        if field.nulls is not None:
            words[(i + 8) // 32] |= field.nulls.astype(np.uint32) << np.uint32((i + 8) % 32)
    for word in words:
        yield WordStep(word)


def _field(column: pa.Array, data_type: DataType) -> _Field:
    plain = plain_array(column, data_type.column_type)
    nulls = None if plain.null_count == 0 else np.asarray(numpy_array(plain.is_null()))
    if data_type.kind in STRINGS or data_type.kind in BINARIES:
        return _TextField(nulls, plain)
    if data_type.is_nested or data_type.kind in {Kind.VARIANT, Kind.BLOB}:
        raise UnsupportedType(f"a key of type {data_type} cannot be hashed")
    if not reserved_bytes(data_type):
        return _FixedField(nulls, plain)
    return _DecimalField(nulls, plain) if data_type.kind is Kind.DECIMAL else _TimestampField(nulls, plain, data_type.column_type.unit)


class _Field:
    """A column of the images: slots and optional variable part."""

    def __init__(self, nulls: Mask | None) -> None:
        self.nulls = nulls

    def clear_nulls(self, values: UInt64s) -> UInt64s:
        return values if self.nulls is None else np.where(self.nulls, np.uint64(0), values)

    def variable_sizes(self) -> Int64s | int:
        return 0

    def slots(self, _offsets: UInt64s) -> UInt64s:
        raise AssertionError("every kind of field has slots")

    def variable_steps(self) -> Iterator[WordStep]:
        return iter(())


class _FixedField(_Field):
    """Up to 8 bytes in the slot itself, not sign-extended."""

    def __init__(self, nulls: Mask | None, plain: pa.Array) -> None:
        super().__init__(nulls)
        self.values = _numbers(plain)

    def slots(self, _offsets: UInt64s) -> UInt64s:
        return self.clear_nulls(self.values.view(_UNSIGNED[self.values.itemsize]).astype(np.uint64))


class _TimestampField(_Field):
    """Nanoseconds of the millisecond in the slot, variable part milliseconds.

    A null has a variable part too.
    """

    def __init__(self, nulls: Mask | None, plain: pa.Array, unit: str) -> None:
        super().__init__(nulls)
        per_milli = _PER_MILLI[unit]
        millis, rest = np.divmod(_numbers(plain), per_milli)
        self.nanos = self.clear_nulls((rest * (1_000_000 // per_milli)).astype(np.uint64))
        self.millis = self.clear_nulls(millis.view(np.uint64))

    def variable_sizes(self) -> int:
        return 8

    def slots(self, offsets: UInt64s) -> UInt64s:
        return self.nanos | offsets << np.uint64(32)

    def variable_steps(self) -> Iterator[WordStep]:
        yield WordStep(self.millis.astype(np.uint32))
        yield WordStep((self.millis >> np.uint64(32)).astype(np.uint32))


class _DecimalField(_Field):
    """The length in the slot, the value in variable part.

    The value has 16 bytes: the shortest big-endian two's complement, followed by zeros.
    """

    def __init__(self, nulls: Mask | None, plain: pa.Array) -> None:
        super().__init__(nulls)
        raw = np.frombuffer(plain.buffers()[1], dtype=np.uint8, count=16 * len(plain), offset=16 * plain.offset)
        big_endian = raw.reshape(-1, 16)[:, ::-1]
        sign = np.where(big_endian[:, 0] & 0x80, np.uint8(0xFF), np.uint8(0))
        redundant = (big_endian[:, :-1] == sign[:, None]) & ((big_endian[:, 1:] ^ sign[:, None]) & 0x80 == 0)
        skipped = np.cumprod(redundant, axis=1).sum(axis=1)
        positions = np.arange(_LONG_DECIMAL_BYTES) + skipped[:, None]
        shifted = np.take_along_axis(big_endian, np.minimum(positions, 15), axis=1)
        shifted[positions > 15] = 0
        lengths = (_LONG_DECIMAL_BYTES - skipped).astype(np.uint64)
        if nulls is not None:
            shifted[nulls] = 0
        self.lengths = self.clear_nulls(lengths)
        self.words = np.ascontiguousarray(shifted).view("<u4")

    def variable_sizes(self) -> int:
        return _LONG_DECIMAL_BYTES

    def slots(self, offsets: UInt64s) -> UInt64s:
        return self.lengths | offsets << np.uint64(32)

    def variable_steps(self) -> Iterator[WordStep]:
        for i in range(self.words.shape[1]):
            yield WordStep(np.ascontiguousarray(self.words[:, i]))


class _TextField(_Field):
    """Short values in the slot, others in the variable part.

    The slot has up to 7 bytes. The variable part is padded to a multiple of 8 bytes.
    """

    def __init__(self, nulls: Mask | None, plain: pa.Array) -> None:
        super().__init__(nulls)
        _, offsets, data = plain.buffers()
        wide = pa.types.is_large_string(plain.type) or pa.types.is_large_binary(plain.type)
        ends = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)[plain.offset : plain.offset + len(plain) + 1].astype(np.int64)
        first, last = (int(ends[0]), int(ends[-1])) if len(ends) else (0, 0)
        content = b"" if data is None else memoryview(data)[first:last]
        padded = np.zeros(last - first + 8, dtype=np.uint8)
        padded[: last - first] = np.frombuffer(content, dtype=np.uint8)
        self.padded = padded
        self.starts = ends[:-1] - first
        self.lengths = ends[1:] - ends[:-1]
        if nulls is not None:
            self.lengths = np.where(nulls, 0, self.lengths)

    def variable_sizes(self) -> Int64s:
        return np.where(self.lengths > _INLINE, self.lengths + 7 & ~7, 0)

    def slots(self, offsets: UInt64s) -> UInt64s:
        lengths = self.lengths.astype(np.uint64)
        bits = np.minimum(lengths, _INLINE) * np.uint64(8)
        text = self._gather("<u8", self.starts) & ((np.uint64(1) << bits) - np.uint64(1))
        inline = text | (lengths | np.uint64(0x80)) << np.uint64(56)
        return self.clear_nulls(np.where(self.lengths > _INLINE, lengths | offsets << np.uint64(32), inline))

    def variable_steps(self) -> Iterator[WordStep]:
        """Yield the words of the rows that still have one.

        So a few long strings cost only their own bytes.
        """
        words = (self.lengths + 7 & ~7) // 4
        rows = np.flatnonzero(self.lengths > _INLINE)
        word_index = 0
        while len(rows):
            rest = self.lengths[rows] - 4 * word_index
            step_words = self._gather("<u4", np.minimum(self.starts[rows] + 4 * word_index, len(self.padded) - 8))
            bits = np.clip(rest, 0, 4).astype(np.uint64) * np.uint64(8)
            masks = ((np.uint64(1) << bits) - np.uint64(1)).astype(np.uint32)
            yield WordStep(step_words & masks, rows)
            word_index += 1
            rows = rows[words[rows] > word_index]

    def _gather(self, dtype: str, starts: Int64s) -> Any:
        width = np.dtype(dtype).itemsize
        windows = np.ndarray((len(self.padded) - width + 1,), dtype=dtype, buffer=self.padded.data, strides=(1,))
        return windows[starts]


def _numbers(plain: pa.Array) -> Any:
    if pa.types.is_boolean(plain.type):
        plain = plain.cast(pa.uint8())
    dtype = plain.type.to_pandas_dtype()
    return np.frombuffer(plain.buffers()[1], dtype=dtype, count=len(plain), offset=plain.offset * np.dtype(dtype).itemsize)

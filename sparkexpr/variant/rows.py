"""Parts of all rows of a VARIANT array at once.

Rows are positions in one buffer: a step to a key or an index computes the next positions of all rows by numpy. The keys in metadata are read once
for each distinct metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa

from sparkexpr.errors import CorruptVariant
from sparkexpr.values.arrays import Int8s, Int64s, Mask, UInt8s, numpy_array
from sparkexpr.variant.codes import DECIMAL_DIGITS, DECIMAL_WIDTHS, INTEGER_WIDTHS, Basic, Primitive
from sparkexpr.variant.decoding import key_names


class ValueKind(IntEnum):
    """Kinds of values, as casts distinguish them."""

    ABSENT = 0
    NULL = 1
    BOOLEAN = 2
    INTEGER = 3
    DOUBLE = 4
    FLOAT = 5
    DECIMAL = 6
    DATE = 7
    TIMESTAMP = 8
    TIMESTAMP_NTZ = 9
    STRING = 10
    BINARY = 11
    UUID = 12
    OBJECT = 13
    ARRAY = 14


_UNKNOWN = -1
_KIND_OF_PRIMITIVE = {
    Primitive.NULL: ValueKind.NULL,
    Primitive.TRUE: ValueKind.BOOLEAN,
    Primitive.FALSE: ValueKind.BOOLEAN,
    **dict.fromkeys(INTEGER_WIDTHS, ValueKind.INTEGER),
    **dict.fromkeys(DECIMAL_WIDTHS, ValueKind.DECIMAL),
    Primitive.DOUBLE: ValueKind.DOUBLE,
    Primitive.FLOAT: ValueKind.FLOAT,
    Primitive.DATE: ValueKind.DATE,
    Primitive.TIMESTAMP: ValueKind.TIMESTAMP,
    Primitive.TIMESTAMP_NTZ: ValueKind.TIMESTAMP_NTZ,
    Primitive.BINARY: ValueKind.BINARY,
    Primitive.STRING: ValueKind.STRING,
    Primitive.UUID: ValueKind.UUID,
}
_KIND_OF_BASIC = {Basic.SHORT_STRING: ValueKind.STRING, Basic.OBJECT: ValueKind.OBJECT, Basic.ARRAY: ValueKind.ARRAY}


def _kind_of_header(header: int) -> int:
    basic = Basic(header & 3)
    if basic is not Basic.PRIMITIVE:
        return _KIND_OF_BASIC[basic]
    code = header >> 2
    return _KIND_OF_PRIMITIVE[Primitive(code)] if code in set(Primitive) else _UNKNOWN


_KINDS: Int8s = np.array([_kind_of_header(header) for header in range(256)], np.int8)


@dataclass(frozen=True)
class VariantRows:
    """One value of each row, or none.

    Args:
        data: Bytes of all values.
        starts: Position of each row's value, -1 for an absent one.
        ends: Position behind the bytes of each row.
        metadata: Distinct metadata.
        codes: Position of each row's metadata in ``metadata``.
    """

    data: UInt8s
    starts: Int64s
    ends: Int64s
    metadata: Sequence[bytes]
    codes: Int64s

    @classmethod
    def of(cls, array: Any) -> VariantRows:
        """Return the rows of a VARIANT array. A null row is absent.

        >>> from sparkexpr.variant.values import variant_column
        >>> VariantRows.of(variant_column([{"a": 1}, None, 2])).field("a").kinds.tolist()
        [3, 0, 0]
        """
        values, metadata = (array.field(name) for name in ("value", "metadata"))
        offsets, data = _binary_buffers(values)
        coded = metadata.dictionary_encode()
        starts = offsets[:-1].copy()
        gone = np.asarray(array.is_null())
        starts[gone] = -1
        return cls(data, starts, offsets[1:], coded.dictionary.to_pylist(), numpy_array(coded.indices.fill_null(0)).astype(np.int64))

    @property
    def present(self) -> Mask:
        """Mask of the rows with a value."""
        return self.starts >= 0

    @property
    def kinds(self) -> Int8s:
        """``ValueKind`` of each row.

        Raises ``CorruptVariant`` for a value that has no bytes, or a type that Paimon does not know.
        """
        present_rows = np.flatnonzero(self.present)
        kinds = np.zeros(len(self.starts), np.int8)
        self._check(present_rows, self.starts[present_rows], np.ones(len(present_rows), np.int64))
        kinds[present_rows] = _KINDS[self.data[self.starts[present_rows]]]
        if (kinds == _UNKNOWN).any():
            header = int(self.data[self.starts[np.flatnonzero(kinds == _UNKNOWN)[0]]])
            raise CorruptVariant(f"a value has type {header >> 2}, which Paimon does not know")
        return kinds

    def step(self, step: str | int) -> VariantRows:
        """Return the field or element of each row. It is absent where the row has none."""
        return self.field(step) if isinstance(step, str) else self.element(step)

    def field(self, name: str) -> VariantRows:
        """Return the field ``name`` of each row's object."""
        starts = np.full(len(self.starts), -1, np.int64)
        objects = np.flatnonzero(self.kinds == ValueKind.OBJECT)
        for ids in self._numbers_of(name, np.unique(self.codes[objects])):
            candidates = objects[ids[self.codes[objects]] >= 0]
            if len(candidates):
                matching_rows, positions = self._fields(candidates, ids[self.codes[candidates]])
                starts[matching_rows] = positions
        return replace(self, starts=starts)

    def _numbers_of(self, name: str, used: Int64s) -> list[Int64s]:
        """Return the number of a key in each ``used`` metadata, -1 for none.

        More than one array only if metadata repeats the key.
        """
        numbers_by_rank: list[Int64s] = []
        for code in used.tolist():
            for rank, number in enumerate([key_number for key_number, key in enumerate(key_names(self.metadata[code])) if key == name]):
                if rank == len(numbers_by_rank):
                    numbers_by_rank.append(np.full(len(self.metadata), -1, np.int64))
                numbers_by_rank[rank][code] = number
        return numbers_by_rank

    def _fields(self, row_numbers: Int64s, numbers: Int64s) -> tuple[Int64s, Int64s]:
        """Return the rows whose object has a key number, and the position of its value."""
        starts = self.starts[row_numbers]
        header = self.data[starts].astype(np.int64) >> 2
        width, id_width, wide = (header & 3) + 1, (header >> 2 & 3) + 1, np.where(header & 16, 4, 1)
        counts = self._unsigned(row_numbers, starts + 1, wide)
        ids = starts + 1 + wide
        offsets = ids + counts * id_width
        self._check(row_numbers, ids, counts * id_width + (counts + 1) * width)
        owner = np.repeat(np.arange(len(row_numbers)), counts)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        stored = self._unsigned(row_numbers[owner], ids[owner] + number * id_width[owner], id_width[owner])
        hits = np.flatnonzero(stored == numbers[owner])
        owner, number = owner[hits], number[hits]
        places = self._unsigned(row_numbers[owner], offsets[owner] + number * width[owner], width[owner])
        return row_numbers[owner], offsets[owner] + (counts[owner] + 1) * width[owner] + places

    def element(self, index: int) -> VariantRows:
        """Return the element ``index``, from 0, of each row's array."""
        element_starts = np.full(len(self.starts), -1, np.int64)
        array_rows = np.flatnonzero(self.kinds == ValueKind.ARRAY)
        starts = self.starts[array_rows]
        header = self.data[starts].astype(np.int64) >> 2
        width, wide = (header & 3) + 1, np.where(header & 4, 4, 1)
        counts = self._unsigned(array_rows, starts + 1, wide)
        offsets = starts + 1 + wide
        self._check(array_rows, offsets, (counts + 1) * width)
        has_element = index < counts
        array_rows, offsets, width, counts = array_rows[has_element], offsets[has_element], width[has_element], counts[has_element]
        element_starts[array_rows] = offsets + (counts + 1) * width + self._unsigned(array_rows, offsets + index * width, width)
        return replace(self, starts=element_starts)

    def booleans(self, row_numbers: Int64s) -> Mask:
        """Return the values of rows ``row_numbers``, which are booleans."""
        is_true: Mask = self.data[self.starts[row_numbers]] == Primitive.TRUE << 2
        return is_true

    def integers(self, row_numbers: Int64s) -> Int64s:
        """Return the values of rows ``row_numbers``: integers, days, or microseconds."""
        widths = _INTEGER_WIDTHS[self.data[self.starts[row_numbers]] >> 2]
        raw = self._unsigned(row_numbers, self.starts[row_numbers] + 1, widths)
        spare = (8 - widths) * 8
        signed: Int64s = (raw << spare) >> spare
        return signed

    def floats(self, row_numbers: Int64s, *, single: bool) -> Any:
        """Return the values of rows ``row_numbers``, which are DOUBLE, or FLOAT if ``single``."""
        raw = self._unsigned(row_numbers, self.starts[row_numbers] + 1, np.full(len(row_numbers), 4 if single else 8))
        return raw.astype(np.uint32).view(np.float32) if single else raw.view(np.float64)

    def decimals(self, row_numbers: Int64s) -> list[Decimal]:
        """Return the values of rows ``row_numbers``, which are decimals of any scale.

        Raises ``CorruptVariant`` for one with more digits than its form has.
        """
        codes = self.data[self.starts[row_numbers]] >> 2
        decimals: list[Decimal] = [Decimal(0)] * len(row_numbers)
        for kind, width in DECIMAL_WIDTHS.items():
            positions = np.flatnonzero(codes == kind)
            self._check(row_numbers[positions], self.starts[row_numbers[positions]], np.full(len(positions), width + 2))
            for position, start in zip(positions.tolist(), self.starts[row_numbers[positions]].tolist(), strict=True):
                number = int.from_bytes(self.data[start + 2 : start + 2 + width].tobytes(), "little", signed=True)
                scale = int(self.data[start + 1])
                if abs(number) >= 10 ** DECIMAL_DIGITS[kind] or scale > DECIMAL_DIGITS[kind]:
                    raise CorruptVariant(f"a decimal of {width} bytes has {len(str(abs(number)))} digits and scale {scale}")
                decimals[position] = Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))
        return decimals

    def binaries(self, row_numbers: Int64s) -> Any:
        """Return the bytes of rows ``row_numbers``: texts, binaries or UUIDs, as large binary."""
        starts = self.starts[row_numbers]
        header = self.data[starts].astype(np.int64)
        short, uuid = header & 3 == Basic.SHORT_STRING, header == Primitive.UUID << 2
        lengths = np.where(short, header >> 2, 16)
        long = np.flatnonzero(~(short | uuid))
        lengths[long] = self._unsigned(row_numbers[long], starts[long] + 1, np.full(len(long), 4))
        begins = starts + np.where(short | uuid, 1, 5)
        self._check(row_numbers, begins, lengths)
        return _gather(self.data, begins, lengths)

    def values(self, row_numbers: Int64s) -> list[tuple[bytes, bytes]]:
        """Return bytes and metadata of the values of rows ``row_numbers``. Other bytes may follow those of a value."""
        codes, ends = self.codes[row_numbers].tolist(), self.ends[row_numbers].tolist()
        return [
            (self.data[start:end].tobytes(), self.metadata[code])
            for start, end, code in zip(self.starts[row_numbers].tolist(), ends, codes, strict=True)
        ]

    def _unsigned(self, row_numbers: Int64s, places: Int64s, widths: Int64s) -> Int64s:
        """Return little-endian numbers at ``places`` of rows ``row_numbers``."""
        self._check(row_numbers, places, widths)
        numbers = np.zeros(len(places), np.uint64)
        for byte in range(int(widths.max(initial=0))):
            used = np.flatnonzero(widths > byte)
            numbers[used] |= self.data[places[used] + byte].astype(np.uint64) << np.uint64(8 * byte)
        return numbers.view(np.int64)

    def _check(self, row_numbers: Int64s, places: Int64s, lengths: Any) -> None:
        """Raise ``CorruptVariant`` for bytes outside of their rows."""
        if ((lengths < 0) | (places + lengths > self.ends[row_numbers])).any():
            raise CorruptVariant("the bytes of a value end before one of its parts")


_INTEGER_WIDTHS: Int64s = np.zeros(64, np.int64)
for _kind, _size in (*INTEGER_WIDTHS.items(), (Primitive.DATE, 4), (Primitive.TIMESTAMP, 8), (Primitive.TIMESTAMP_NTZ, 8)):
    _INTEGER_WIDTHS[_kind] = _size


def _binary_buffers(array: Any) -> tuple[Int64s, UInt8s]:
    large = array.cast(pa.large_binary())
    _, offsets, data = large.buffers()
    if not len(large):
        return np.zeros(1, np.int64), np.zeros(0, np.uint8)
    bounds = np.frombuffer(offsets, np.int64)[large.offset : large.offset + len(large) + 1]
    return bounds, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _gather(data: UInt8s, begins: Int64s, lengths: Int64s) -> Any:
    ends = np.cumsum(lengths)
    places = np.repeat(begins - (ends - lengths), lengths) + np.arange(int(ends[-1]) if len(ends) else 0)
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    return pa.Array.from_buffers(pa.large_binary(), len(begins), [None, pa.py_buffer(offsets), pa.py_buffer(data[places])])

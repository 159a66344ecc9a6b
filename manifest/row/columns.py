"""Decoding of fields of many serialised rows at once.

The rows are adjacent in a file's bytes and are not built as objects. The layout of a row is in ``manifest.row.binary_row``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifest.avro.columnar import at_offsets
from manifest.row.binary_row import header_size, reserved_bytes
from manifest.types.data_type import DataType
from paimon_base.errors import UnsupportedType
from sparkexpr.values.arrays import AnyArray, Int64s, Mask
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, Kind

_ARITY_BYTES = 4
_WORD = 8
_INLINE = 7
_INLINE_MARK = 0x80
_NANOS_PER_MILLI = 1_000_000
_LIMIT = 2**63 - 1
_FIXED = {
    Kind.BOOLEAN: "<u1",
    Kind.TINYINT: "<i1",
    Kind.SMALLINT: "<i2",
    Kind.INT: "<i4",
    Kind.DATE: "<i4",
    Kind.TIME: "<i4",
    Kind.BIGINT: "<i8",
    Kind.FLOAT: "<f4",
    Kind.DOUBLE: "<f8",
}


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Rows of one arity inside ``payload``.

    Row i begins, after its arity, at ``start[i]`` and has ``size[i]`` bytes.
    """

    payload: bytes
    start: Int64s
    size: Int64s
    arity: int

    @classmethod
    def of(cls, payload: bytes, start: Int64s, end: Int64s, arity: int) -> RowColumns:
        """Return the serialised rows between ``start`` and ``end``.

        Raises ``ValueError`` if a row has another arity or is too short.

        >>> from manifest.row.binary_row import encode_row
        >>> types = (DataType(Kind.INT), DataType(Kind.VARCHAR))
        >>> rows = [encode_row(row, types) for row in ((7, "Oslo"), (None, "Reykjavik"))]
        >>> ends = np.cumsum([len(row) for row in rows])
        >>> columns = RowColumns.of(b"".join(rows), ends - [len(row) for row in rows], ends, 2)
        >>> columns.field(0, types[0])
        (array([7, 0]), array([ True, False]))
        >>> columns.field(1, types[1])[0].tolist()
        [b'Oslo', b'Reykjavik']
        """
        least = _ARITY_BYTES + header_size(arity) + _WORD * arity
        if (end - start < least).any() or (at_offsets(payload, ">i4", start) != arity).any():
            raise ValueError(f"a row does not have {arity} fields")
        return cls(payload, start + _ARITY_BYTES, end - start - _ARITY_BYTES, arity)

    def field(self, position: int, data_type: DataType) -> tuple[AnyArray, Mask]:
        """Return a field's values, and where they are not null.

        Null is 0 or b''. Raises ``ValueError`` if a value lies outside of its row.
        """
        flags = at_offsets(self.payload, "<u1", self.start + (position + _WORD >> 3))
        present: Mask = (flags >> (position + _WORD & 7)) & 1 == 0
        slot = self.start + header_size(self.arity) + _WORD * position
        kind = data_type.kind
        if kind in _FIXED:
            values = at_offsets(self.payload, _FIXED[kind], slot).astype(np.float64 if kind in {Kind.FLOAT, Kind.DOUBLE} else np.int64)
        elif kind in STRINGS or kind in BINARIES:
            values = self._texts(slot, present)
        elif kind is not Kind.DECIMAL and kind not in TIMESTAMPS:
            if present.any():
                raise UnsupportedType(f"{data_type} cannot be used in a key, a partition or a statistic")
            values = np.zeros(present.size, np.int64)
        elif not reserved_bytes(data_type):
            values = at_offsets(self.payload, "<i8", slot)
        elif kind is Kind.DECIMAL:
            values = self._decimals(slot, present)
        else:
            values = self._timestamps(slot, present, data_type)
        values[~present] = b"" if kind in STRINGS or kind in BINARIES else 0
        return values, present

    def _texts(self, slot: Int64s, present: Mask) -> AnyArray:
        mark = at_offsets(self.payload, "<u1", slot + _INLINE).astype(np.int64)
        inline = mark >= _INLINE_MARK
        length = np.where(inline, np.minimum(mark - _INLINE_MARK, _INLINE), at_offsets(self.payload, "<i4", slot).astype(np.int64))
        offset = np.where(inline, slot - self.start, at_offsets(self.payload, "<i4", slot + 4).astype(np.int64))
        return self._slices(offset, length, present)

    def _decimals(self, slot: Int64s, present: Mask) -> AnyArray:
        length, offset = (at_offsets(self.payload, "<i4", slot + half).astype(np.int64) for half in (0, 4))
        encoded = self._slices(offset, length, present)
        return _objects([int.from_bytes(piece, "big", signed=True) for piece in encoded.tolist()])

    def _timestamps(self, slot: Int64s, present: Mask, data_type: DataType) -> AnyArray:
        nanos, offset = (at_offsets(self.payload, "<i4", slot + half).astype(np.int64) for half in (0, 4))
        self._check(offset, np.full(offset.size, _WORD), present)
        millis = at_offsets(self.payload, "<i8", self.start + np.where(present, offset, 0))
        per_milli = 1_000 if data_type.column_type.unit == "us" else _NANOS_PER_MILLI
        if millis.size and max(abs(int(millis.min())), abs(int(millis.max()))) >= _LIMIT // per_milli:
            millis = millis.astype(object)  # nanoseconds of the year 3000 exceed int64
        return millis * per_milli + nanos // (_NANOS_PER_MILLI // per_milli)

    def _slices(self, offset: Int64s, length: Int64s, present: Mask) -> AnyArray:
        self._check(offset, length, present)
        start = self.start + offset
        bounds = zip(start.tolist(), (start + length).tolist(), present.tolist(), strict=True)
        return _objects([self.payload[first:last] if is_present else b"" for first, last, is_present in bounds])

    def _check(self, offset: Int64s, length: Int64s, present: Mask) -> None:
        if (present & ((offset < 0) | (length < 0) | (offset + length > self.size))).any():
            raise ValueError("a field lies outside of its row")


def _objects(values: list[Any]) -> AnyArray:
    objects = np.empty(len(values), object)
    objects[:] = values
    return objects

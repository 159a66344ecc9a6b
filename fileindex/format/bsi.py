"""The ``bsi`` index: the bit slices of a numeric column.

Negative numbers are stored separately by their absolute values.
Layout as in Paimon's ``BitSliceIndexBitmapFileIndex`` and ``BitSliceIndexRoaringBitmap``. It answers every comparison exactly,
except for timestamps finer than a microsecond, which it stores in microseconds.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from pyroaring import BitMap

from fileindex.format.container import Payload
from fileindex.keys.fixed import is_lossy
from fileindex.keys.group_by import GroupedColumn
from fileindex.predicate.tree import Compare, In, IsNull, Leaf, Op
from fileindex.rowset.bit_sliced import BitSlices
from fileindex.rowset.flags import serialize_flags, serialize_slices
from fileindex.rowset.result import REMAIN, FileIndexResult, RowSet
from fileindex.rowset.roaring import all_rows, deserialize
from paimon_base.errors import CorruptIndex
from sparkexpr.values.column_type import ColumnType, Plain

BSI_VERSION = 1
_MIN_LONG = -(2**63)
_HALF_HEAD = struct.Struct(">bqq")
_Numbers: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]
_Flags: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]]


def write_bsi(column: GroupedColumn) -> bytes:
    """Return the payload for a grouped column.

    Raises:
        OverflowError: The column contains -2^63, whose absolute value exceeds 63 bits.

    >>> from fileindex.keys.group_by import ColumnRows
    >>> import pyarrow as pa
    >>> rows = ColumnRows(ColumnType("INT"))
    >>> rows.append(pa.array([None, None], pa.int32()))
    >>> write_bsi(rows.group()).hex()
    '01000000020000'
    """
    values = column.values
    if len(values) and int(values.min()) == _MIN_LONG:
        raise OverflowError("the absolute value of -2^63 exceeds 63 bits")
    present, numbers = column.present, column.expand(values)
    halves = (_half(present & (numbers >= 0), numbers), _half(numbers < 0, -numbers))
    return struct.pack(">bi", BSI_VERSION, column.row_count) + b"".join(halves)


def _half(members: _Flags, numbers: _Numbers) -> bytes:
    if not members.any():
        return b"\0"
    numbers = np.where(members, numbers, 0)
    greatest = int(numbers.max())
    slices = serialize_slices(numbers, greatest.bit_length())
    head = b"\1" + _HALF_HEAD.pack(BSI_VERSION, 0, greatest)
    return b"".join([head, serialize_flags(members), struct.pack(">i", len(slices)), *slices])


@dataclass(frozen=True, slots=True)
class NumberSummary:
    """Count, extremes and sum of the numbers of some rows.

    Rows without a number do not count.
    """

    count: int
    least: int | None
    greatest: int | None
    total: int


class _Half:
    """Numbers of one sign, as absolute values.

    It compares them with literals of that sign.
    """

    def __init__(self, low: int, high: int, slices: BitSlices) -> None:
        self.rows = slices.existence
        self._low = low
        self._high = high
        self._slices = slices

    def equal(self, number: int) -> BitMap:
        return self._slices.equal(number - self._low) if number <= self._high else BitMap()

    def below(self, number: int) -> BitMap:
        return self.rows if number > self._high else self._slices.below(number - self._low)

    def total(self, among: BitMap) -> int:
        rows = among & self.rows
        return self._slices.total(rows) + self._low * len(rows)

    def extreme(self, among: BitMap, *, greatest: bool) -> int | None:
        offset = self._slices.extreme(among, greatest=greatest)
        return None if offset is None else offset + self._low


class BsiReader:
    """Reader of one bit-sliced index.

    Answers all comparisons, ``[NOT] IN`` and ``IS [NOT] NULL`` with the rows, prefixes with REMAIN.
    """

    distinct: int | None = None

    def __init__(self, payload: Payload, column_type: ColumnType) -> None:
        data = memoryview(payload.whole())
        try:
            version, self.row_count = struct.unpack_from(">bi", data)
            if version != BSI_VERSION or self.row_count < 0:
                raise CorruptIndex(f"a bit-sliced index has version {version} and {self.row_count} rows")
            self._positive, middle = self._read_half(data, 5)
            self._negative, end = self._read_half(data, middle)
            if end != len(data) or self._positive.rows & self._negative.rows:
                raise CorruptIndex(f"a bit-sliced index of {len(data)} bytes ends at byte {end}, or has rows twice")
        except struct.error as error:
            raise CorruptIndex(f"a bit-sliced index is truncated: {error}") from error
        self._lossy = is_lossy(column_type)
        self._rows = self._positive.rows | self._negative.rows

    def _read_half(self, data: memoryview, position: int) -> tuple[_Half, int]:
        (present,) = struct.unpack_from(">b", data, position)
        if not present:
            return _Half(0, 0, BitSlices(BitMap(), 0, lambda _: BitMap())), position + 1
        version, low, high = _HALF_HEAD.unpack_from(data, position + 1)
        existence, used = deserialize(data[position + 1 + _HALF_HEAD.size :])
        position += 1 + _HALF_HEAD.size + used
        (count,) = struct.unpack_from(">i", data, position)
        position += 4
        if version != BSI_VERSION or not 0 <= low <= high or count != (high - low).bit_length():
            raise CorruptIndex(
                f"the header of a bit-sliced index is wrong: version {version}, {count} slices for the numbers {low} to {high}"
            )
        if existence and existence.max() >= self.row_count:
            raise CorruptIndex(f"a row set contains row {existence.max()}, but the file has {self.row_count} rows")
        slices = []
        for _ in range(count):
            rows, used = deserialize(data[position:])
            slices.append(rows)
            position += used
        return _Half(low, high, BitSlices(existence, count, slices.__getitem__)), position

    def evaluate(self, leaf: Leaf) -> FileIndexResult:
        """Return the matching rows.

        The literals must fit the column.
        """
        match leaf:
            case IsNull(_, negated):
                return RowSet(self._rows if negated else all_rows(self.row_count) - self._rows, exact=True)
            case Compare(_, Op.EQ, value):
                return self._any_of((value,), negated=False)
            case Compare(_, Op.NE, value):
                return self._any_of((value,), negated=True)
            case In(_, values, negated):
                return self._any_of(values, negated=negated)
            case Compare(_, op, value):
                return RowSet(self._range(op, self._number(value)), exact=not self._lossy)
            case _:
                return REMAIN

    def summary(self, rows: BitMap | None) -> NumberSummary | None:
        """Return count, extremes and sum of the numbers of ``rows``.

        ``rows`` None: all rows. Returns None if the index stores values in a coarser unit than the column.
        """
        if self._lossy:
            return None
        among = self._rows if rows is None else rows & self._rows
        below, above = self._negative.extreme, self._positive.extreme
        return NumberSummary(
            len(among),
            _first(_negate(below(among, greatest=True)), above(among, greatest=False)),
            _first(above(among, greatest=True), _negate(below(among, greatest=False))),
            self._positive.total(among) - self._negative.total(among),
        )

    def _number(self, value: Plain) -> int:
        assert isinstance(value, int)
        return value // 1000 if self._lossy else value

    def _any_of(self, values: tuple[Plain, ...], *, negated: bool) -> FileIndexResult:
        if negated and self._lossy:
            return REMAIN
        matching_rows = BitMap()
        for number in {self._number(value) for value in values}:
            matching_rows |= self._positive.equal(number) if number >= 0 else self._negative.equal(-number)
        return RowSet(self._rows - matching_rows if negated else matching_rows, exact=not self._lossy)

    def _range(self, op: Op, number: int) -> BitMap:
        """Return the rows that match a comparison."""
        # A lossy key represents several values, so rows with the bound itself may match: read a strict bound as an inclusive one.
        match op:
            case Op.LT:
                return self._below(number + self._lossy)
            case Op.LE:
                return self._below(number + 1)
            case Op.GT:
                return self._rows - self._below(number + (not self._lossy))
            case _:
                return self._rows - self._below(number)

    def _below(self, number: int) -> BitMap:
        """Return the rows with numbers less than ``number``."""
        if number >= 0:
            return self._positive.below(number) | self._negative.rows
        # Negative numbers below it have greater absolute values.
        return self._negative.rows - self._negative.below(1 - number)


def _negate(number: int | None) -> int | None:
    return None if number is None else -number


def _first(*numbers: int | None) -> int | None:
    return next((number for number in numbers if number is not None), None)

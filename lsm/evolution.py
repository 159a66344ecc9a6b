"""Reading files of older schemas: columns are matched by field id, missing ones are null, changed types are cast.

Follows Paimon's ``SchemaEvolutionUtil`` and its implicit casts. What a cast cannot carry over exactly is refused by name,
and says nothing about minima, maxima or indexes of the old file where it does not keep the order of values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fileindex.column_type import BINARIES, FLOATS, INTEGERS, STRINGS, ColumnType, Kind, Plain
from fileindex.plain import from_scalar, to_scalar
from fileindex.predicate import TRUE, ColumnRef, Compare, In, IsNull, Leaf, Predicate, StartsWith, map_leaves
from manifest.errors import PaimonError, UnsupportedTable
from manifest.stats import ColumnBounds
from manifest.types import DataField, DataType

_INTEGER_WIDTH = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_INTEGER_DIGITS = {Kind.TINYINT: 3, Kind.SMALLINT: 5, Kind.INT: 10, Kind.BIGINT: 19}
_NUMBERS = INTEGERS | FLOATS | {Kind.DECIMAL}
_MAX_DIGITS = 38


@dataclass(frozen=True, slots=True)
class SchemaMapping:
    """Where the columns that readers ask for lie in the files of one schema.

    >>> from manifest.types import DataField, DataType
    >>> old, new = DataField(4, "a", DataType(Kind.INT)), DataField(4, "b", DataType(Kind.BIGINT))
    >>> mapping = SchemaMapping.of([new, DataField(5, "a", DataType(Kind.INT))], [old], 0)
    >>> mapping.sources["b"].name, mapping.sources["a"]
    ('a', None)
    """

    read: Mapping[str, DataField]
    sources: Mapping[str, DataField | None]
    schema_id: int
    _unchanged: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, read: Sequence[DataField], file: Sequence[DataField], schema_id: int) -> SchemaMapping:
        """Map the columns ``read`` to those of schema ``schema_id`` by id; None where the file has no such column."""
        by_id = {column.id: column for column in file}
        return cls({column.name: column for column in read}, {column.name: by_id.get(column.id) for column in read}, schema_id)

    def check(self, columns: Sequence[str]) -> None:
        """Raise ``UnsupportedTable`` naming the first of ``columns`` whose old type cannot be read as its new one."""
        for name in columns:
            source = self.sources[name]
            if source is not None and not can_cast(source.type, self.read[name].type):
                raise UnsupportedTable(
                    f"column '{name}' was {source.type} in schema {self.schema_id} and is {self.read[name].type} now: "
                    "files of that schema cannot be read with this type change"
                )

    def same(self, column: ColumnRef) -> DataField | None:
        """The file's column if its plain values are those of the read column, so that literals need no change."""
        source = self.sources.get(column.name)
        return source if source is not None and self._is_unchanged(column.name, source) else None

    def _is_unchanged(self, column: str, source: DataField) -> bool:
        known = self._unchanged.get(column)
        if known is None:
            known = self._unchanged[column] = is_same(source.type, self.read[column].type)
        return known

    def to_file(self, predicate: Predicate) -> Predicate:
        """``predicate`` on the file's own column names; what cannot be said of the file becomes true, never false."""

        def rename(leaf: Leaf) -> Predicate:
            source = self.same(leaf.column)
            if source is None:
                return TRUE
            column = ColumnRef(source.name, leaf.column.key)
            match leaf:
                case Compare(_, op, value):
                    return Compare(column, op, value)
                case In(_, values, negated):
                    return In(column, values, negated)
                case IsNull(_, negated):
                    return IsNull(column, negated)
                case StartsWith(_, prefix, negated):
                    return StartsWith(column, prefix, negated)

        return map_leaves(predicate, rename)

    def bound(self, column: str, value: Plain) -> tuple[Plain, bool]:
        """A minimum or maximum of the file's column as a plain value of the read column; False if that is not known."""
        source, read = self.sources[column], self.read[column]
        if source is None or value is None:
            return None, True
        if self._is_unchanged(column, source):
            return value, True
        if not keeps_order(source.type, read.type):
            return None, False
        try:
            array = pa.array([to_scalar(value, source.type.column_type)])
            return from_scalar(conform(array, source.type, read.type)[0], read.type.column_type), True
        except (PaimonError, pa.ArrowException):
            return None, False

    def bounds(self, column: str, known: ColumnBounds) -> ColumnBounds:
        """Bounds of the file's column as those of the read column."""
        source = self.sources[column]
        if source is not None and self._is_unchanged(column, source):
            return known
        (low, low_known), (high, high_known) = self.bound(column, known.min), self.bound(column, known.max)
        if low_known and high_known:
            return ColumnBounds(low, high, known.null_count, known.row_count)
        return ColumnBounds(None, None, known.null_count, known.row_count)


def is_same(file: DataType, read: DataType) -> bool:
    """Whether a column of the two types holds the same plain values: equal up to nullability and unused parameters."""
    if file.kind in STRINGS and read.kind in STRINGS:
        return file.kind is read.kind or read.kind is Kind.VARCHAR
    if file.kind in BINARIES and read.kind in BINARIES:
        return True
    if file.kind is not read.kind or file.is_nested != read.is_nested:
        return False
    if file.kind is Kind.MAP:
        return is_same(file.part("key"), read.part("key")) and is_same(file.part("value"), read.part("value"))
    return not file.is_nested and file.arrow == read.arrow


def keeps_order(file: DataType, read: DataType) -> bool:
    """Whether the cast keeps the order of values: numbers to wider numbers, dates and timestamps to finer ones."""
    if file.kind in _NUMBERS:
        return read.kind in _NUMBERS
    return file.kind in {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ} and read.kind in {Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ}


def can_cast(file: DataType, read: DataType) -> bool:
    """Whether values of the old type can be read as the new one without loss."""
    if is_same(file, read):
        return not (file.kind in STRINGS | BINARIES and read.length < file.length)
    match file.kind, read.kind:
        case (Kind.ROW, Kind.ROW):
            old = {inner.id: inner for inner in file.fields}
            return all(inner.id not in old or can_cast(old[inner.id].type, inner.type) for inner in read.fields)
        case (Kind.ARRAY, Kind.ARRAY) | (Kind.MULTISET, Kind.MULTISET) | (Kind.VECTOR, Kind.VECTOR):
            return file.length == read.length and can_cast(file.part("element"), read.part("element"))
        case (Kind.MAP, Kind.MAP):
            return is_same(file.part("key"), read.part("key")) and can_cast(file.part("value"), read.part("value"))
        case (old_kind, new_kind) if old_kind in INTEGERS and new_kind in INTEGERS:
            return _INTEGER_WIDTH[old_kind] <= _INTEGER_WIDTH[new_kind]
        case (old_kind, Kind.DECIMAL) if old_kind in INTEGERS:
            return read.precision - read.scale >= _INTEGER_DIGITS[old_kind]
        case (Kind.DECIMAL, Kind.DECIMAL):
            return read.scale >= file.scale and read.precision - read.scale >= file.precision - file.scale
        case (old_kind, new_kind) if new_kind in FLOATS:
            return old_kind in INTEGERS or old_kind is Kind.DECIMAL or (old_kind is Kind.FLOAT and new_kind is Kind.DOUBLE)
        case (old_kind, Kind.VARCHAR):
            return old_kind in INTEGERS | {Kind.BOOLEAN}
        case (Kind.DATE, Kind.TIMESTAMP):
            return True
        case (Kind.TIMESTAMP, Kind.TIMESTAMP) | (Kind.TIMESTAMP_LTZ, Kind.TIMESTAMP_LTZ):
            return file.precision <= read.precision
        case _:
            return False


def conform(array: Any, file: DataType, read: DataType) -> Any:
    """``array``, decoded from a file with a column of type ``file``, as ``read.arrow``.

    Args:
        array: an Array as the Parquet decoder made it; names inside it are those of ``file``.
        file: the type in the file's schema.
        read: the type readers want; ``can_cast(file, read)``.

    Raises:
        pyarrow.ArrowException: the array does not hold values of the type that the file's schema promises.

    >>> conform(pa.array([1, None], pa.int32()), DataType(Kind.INT), DataType(Kind.BIGINT)).type
    DataType(int64)
    """
    target = read.arrow
    if not read.is_nested:
        return _cast_atomic(array, file, target)
    if array.type == target and file.with_nullable(nullable=True) == read.with_nullable(nullable=True):
        return array
    match read.kind:
        case Kind.ROW:
            return _conform_row(array, file, read)
        case Kind.ARRAY:
            values = conform(array.values, file.part("element"), read.part("element"))
            return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=_nulls(array))
        case Kind.MAP:
            keys = conform(array.keys, file.part("key"), read.part("key"))
            items = conform(array.items, file.part("value"), read.part("value"))
            return pa.MapArray.from_arrays(_offsets(array), keys, items, type=target, mask=_nulls(array))
        case Kind.MULTISET:
            keys = conform(array.keys, file.part("element"), read.part("element"))
            return pa.MapArray.from_arrays(_offsets(array), keys, array.items.cast(pa.int32()), type=target, mask=_nulls(array))
        case _:
            return array.cast(target)


def _conform_row(array: Any, file: DataType, read: DataType) -> Any:
    old = {inner.id: inner for inner in file.fields}
    children = []
    for wanted in read.fields:
        source = old.get(wanted.id)
        if source is None:
            children.append(pa.nulls(len(array), wanted.type.arrow))
        else:
            position = array.type.get_field_index(source.name)
            if position < 0:
                raise pa.ArrowInvalid(f"the file has no nested field '{source.name}'")
            children.append(conform(array.field(position), source.type, wanted.type))
    return pa.StructArray.from_arrays(children, fields=[wanted.arrow_field for wanted in read.fields], mask=_nulls(array))


def _cast_atomic(array: Any, file: DataType, target: Any) -> Any:
    if array.type == target:
        return array
    if pa.types.is_integer(array.type) and pa.types.is_decimal(target):
        digits = _INTEGER_DIGITS.get(file.kind, 19)
        array = array.cast(pa.decimal128(min(_MAX_DIGITS, max(digits, 19)), 0))
    loses_digits = pa.types.is_floating(target) and not pa.types.is_floating(array.type)
    return pc.cast(array, target, safe=not loses_digits)


def _offsets(array: Any) -> Any:
    return pa.array(array.offsets.to_numpy())  # a copy: Arrow takes no null mask together with sliced offsets


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def column_types(fields: Sequence[DataField]) -> dict[str, ColumnType]:
    """Types by name, as predicates and indexes know them."""
    return {column.name: column.type.column_type for column in fields}


__all__ = ["SchemaMapping", "can_cast", "column_types", "conform", "is_same", "keeps_order"]

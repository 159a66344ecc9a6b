"""Reads of files with older schemas (Paimon's ``SchemaEvolutionUtil``).

Columns are matched by field id, missing ones are null, changed types are cast. If a cast does not keep the order of values, minima, maxima
and indexes of the old file are not used. A cast that is not implemented raises an error with its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fileindex.predicate.projection import UNKNOWN, Projection, project
from fileindex.predicate.tree import ColumnRef, ComputedPredicate, Leaf, Predicate, columns_of
from fileindex.predicate.unwiden import unwiden
from lsm.schema.cast import cast_values
from lsm.schema.parquet_schema import is_int96
from manifest.entry.bounds import BoundsColumn
from manifest.entry.column_ranges import same_values
from manifest.io.errors import UnsupportedTable
from manifest.stats.column_stats import ColumnBounds
from manifest.types.cast_rules import Cast, cast_of, keeps_order, may_null
from manifest.types.data_type import NESTED, DataField, DataType
from paimon_base.errors import PaimonError
from paimon_base.lazy import LazyModule, cached_property
from sparkexpr.expression.tree import ColumnValue, Expression, map_columns
from sparkexpr.values.column_type import BINARIES, STRINGS, ColumnType, Kind, Plain
from sparkexpr.values.plain_value import from_scalar, to_scalar

if TYPE_CHECKING:
    from sparkexpr.variant import shredding
else:  # few files have a VARIANT
    shredding = LazyModule("sparkexpr.variant.shredding")

_UNLIKE_THEMSELVES = NESTED | {Kind.VARIANT, Kind.GEOMETRY, Kind.GEOGRAPHY}
"""Types whose values cannot be compared, or cannot be read."""


@dataclass(frozen=True)
class SchemaMapping:
    """Mapping from read columns to a schema's file columns.

    >>> from manifest.types.data_type import DataField, DataType
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
        """Map the columns ``read`` to the file's columns by id.

        None: the file does not have the column.
        """
        by_id = {column.id: column for column in file}
        return cls({column.name: column for column in read}, {column.name: by_id.get(column.id) for column in read}, schema_id)

    def check(self, columns: Sequence[str]) -> None:
        """Raise ``UnsupportedTable`` for an unsupported type change.

        The message names the first such column of ``columns``.
        """
        for name in columns:
            source = self.sources[name]
            read = self.read[name]
            if source is not None and source is not read and not can_cast(source.type, read.type):
                raise UnsupportedTable(
                    f"column '{name}' was {source.type} in schema {self.schema_id} and is {read.type} now: "
                    "files of that schema cannot be read with this type change"
                )

    @cached_property
    def int96(self) -> frozenset[str]:
        """File columns with timestamps finer than microseconds."""
        return frozenset([source.name for source in self.sources.values() if source is not None and is_int96(source.type)])

    def same(self, column: ColumnRef) -> DataField | None:
        """Return the file's column if its plain values are equal.

        Then literals need no change.
        """
        source = self.sources.get(column.name)
        return source if source is not None and self._is_unchanged(column.name, source) else None

    def _is_unchanged(self, column: str, source: DataField) -> bool:
        unchanged = self._unchanged.get(column)
        if unchanged is None:
            unchanged = self._unchanged[column] = is_same(source.type, self.read[column].type)
        return unchanged

    def to_file(self, predicate: Predicate) -> Projection:
        """Project ``predicate`` to the file's columns.

        Terms on columns of another type are lost, except where ``unwiden`` converts them. So are computed predicates of such columns.
        """

        def rename(leaf: Leaf) -> Projection:
            source, column = self.sources.get(leaf.column.name), leaf.column
            if source is None:
                return UNKNOWN
            renamed = replace(leaf, column=ColumnRef(source.name, column.key))
            if self._is_unchanged(column.name, source):
                return Projection(renamed, exact=True)
            converted = unwiden(renamed, self.read[column.name].type.column_type, source.type.column_type) if column.key is None else None
            return UNKNOWN if converted is None else Projection(converted, exact=True)

        return project(predicate, rename, self._computed_to_file)

    def _computed_to_file(self, computed: ComputedPredicate) -> Projection:
        sources = {name: self.same(ColumnRef(name)) for name in columns_of(computed)}
        if None in sources.values():
            return UNKNOWN

        def rename(column: ColumnValue) -> Expression:
            source = sources[column.name]
            assert source is not None
            return replace(column, name=source.name)

        return Projection(replace(computed, test=map_columns(computed.test, rename)), exact=True)

    def bound(self, column: str, value: Plain) -> tuple[Plain, bool]:
        """Convert a minimum or maximum to the read column.

        False: the bound is not known.
        """
        source, read = self.sources[column], self.read[column]
        if source is None or value is None:
            return None, True
        if self._is_unchanged(column, source):
            return value, True
        if not keeps_order(source.type, read.type):
            return None, False
        try:
            array = pa.array([to_scalar(value, source.type.column_type)])
            return from_scalar(to_read_schema(array, source.type, read.type)[0], read.type.column_type), True
        except (PaimonError, pa.ArrowException):
            return None, False

    def bounds(self, column: str, file_bounds: ColumnBounds) -> ColumnBounds:
        """Convert bounds of the file's column to the read column."""
        source = self.sources[column]
        if source is not None and self._is_unchanged(column, source):
            return file_bounds
        (low, low_known), (high, high_known) = self.bound(column, file_bounds.min), self.bound(column, file_bounds.max)
        if low_known and high_known:
            return ColumnBounds(low, high, file_bounds.null_count, file_bounds.row_count)
        nulls_known = source is None or file_bounds.all_null or not may_null(source.type, self.read[column].type)
        return ColumnBounds(None, None, file_bounds.null_count if nulls_known else None, file_bounds.row_count)

    def bounds_of_each(self, column: str, file_bounds: BoundsColumn) -> BoundsColumn:
        """Convert bounds of several files or pages."""
        source, read = self.sources[column], self.read[column].type
        if source is None or self._is_unchanged(column, source) or same_values(source.type, read):
            return file_bounds
        return BoundsColumn.of([self.bounds(column, bounds) for bounds in file_bounds.each(source.type)], read)


def is_same(file: DataType, read: DataType) -> bool:
    """Return whether two types hold the same plain values.

    They are equal up to nullability, or the new one is longer.
    """
    if file is read and file.kind not in _UNLIKE_THEMSELVES:  # fast path: most columns never changed
        return True
    if file.kind in STRINGS | BINARIES and read.kind in STRINGS | BINARIES:
        if file.kind is read.kind and file.length == read.length:
            return True
        roomy = {Kind.VARCHAR: STRINGS, Kind.VARBINARY: BINARIES}.get(read.kind, frozenset())
        return file.kind in roomy and read.length >= file.length
    if file.kind is not read.kind:
        return False
    if file.kind is Kind.MAP:
        return is_same(file.part("key"), read.part("key")) and is_same(file.part("value"), read.part("value"))
    return not file.is_nested and file.arrow == read.arrow and file.precision <= read.precision


def can_cast(file: DataType, read: DataType) -> bool:
    """Return whether the old type converts to the new one."""
    if is_same(file, read):
        return True
    match file.kind, read.kind:
        case (Kind.ROW, Kind.ROW):
            old = {inner.id: inner for inner in file.fields}
            return all(inner.id not in old or can_cast(old[inner.id].type, inner.type) for inner in read.fields)
        case (Kind.VARIANT, Kind.VARIANT):
            return True
        case (Kind.ARRAY, Kind.ARRAY) | (Kind.MULTISET, Kind.MULTISET) | (Kind.VECTOR, Kind.VECTOR):
            return file.length == read.length and can_cast(file.part("element"), read.part("element"))
        case (Kind.MAP, Kind.MAP):
            keys = file.part("key"), read.part("key")  # changes inside of keys are not supported
            return (is_same(*keys) or _is_equal(*keys)) and can_cast(file.part("value"), read.part("value"))
        case _:
            return not read.is_nested and cast_of(file, read) is not Cast.NONE


def to_read_schema(array: Any, file: DataType, read: DataType) -> Any:
    """Convert a decoded array of type ``file`` to ``read.arrow``.

    Args:
        array: Array from the decoder. Inner names are those in ``file``.
        file: Type in the file's schema.
        read: Type to read. ``can_cast(file, read)`` must be True.

    Raises:
        CastFailed: A value has no counterpart in the read type.
        CorruptVariant: The parts of a shredded VARIANT contradict each other.
        pyarrow.ArrowException: The array does not have the type of the file's schema.

    >>> to_read_schema(pa.array([1, None], pa.int32()), DataType(Kind.INT), DataType(Kind.BIGINT)).type
    DataType(int64)
    """
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not read.is_nested:
        plain = array if array.type == file.arrow else array.cast(file.arrow)
        if file.kind is Kind.TIME and plain is not array:  # ORC stores plain integers, which may be outside of a day
            plain.validate(full=True)
        if plain.type == read.arrow and is_same(file, read):
            return plain
        return plain.cast(read.arrow) if is_same(file, read) else cast_values(plain, file, read)
    target = read.arrow
    if array.type == target and file.with_nullable(nullable=True) == read.with_nullable(nullable=True):
        return array
    if _shares_nothing(file, read):
        return pa.nulls(len(array), target)
    match read.kind:
        case Kind.ROW:
            return _conform_row(array, file, read)
        case Kind.ARRAY:
            values = to_read_schema(array.values, file.part("element"), read.part("element"))
            return pa.ListArray.from_arrays(_offsets(array), values, type=target, mask=_nulls(array))
        case Kind.MAP:
            keys, items = _entries(array)
            keys = to_read_schema(keys, file.part("key"), read.part("key"))
            items = to_read_schema(items, file.part("value"), read.part("value"))
            return pa.MapArray.from_arrays(_offsets(array), keys, items, type=target, mask=_nulls(array))
        case Kind.MULTISET:
            keys, counts = _entries(array)
            keys = to_read_schema(keys, file.part("element"), read.part("element"))
            return pa.MapArray.from_arrays(_offsets(array), keys, counts.cast(pa.int32()), type=target, mask=_nulls(array))
        case Kind.VARIANT:
            return shredding.plain_variants(array)
        case _:
            return array.cast(target)


def way_back(name: str, file: DataType, read: DataType) -> str:
    """Return advice for values of a file outside of ``read``.

    >>> way_back("n", DataType(Kind.INT), DataType(Kind.BOOLEAN))
    "the file has INT; to read it again, call change_type('n', 'INT', force=True)"
    """
    shown = str(file.with_nullable(nullable=True))
    text = "STRING" if file.kind in STRINGS and not can_cast(read, file) else shown  # a date becomes STRING, but no VARCHAR(3)
    return f"the file has {shown}; to read it again, call change_type({name!r}, '{text}', force=True)"


def _shares_nothing(file: DataType, read: DataType) -> bool:
    """Return whether all fields of the file's rows were dropped.

    Paimon reads such a value as null.
    """
    match read.kind:
        case Kind.ROW:
            old = {inner.id: inner.type for inner in file.fields}
            return all(field.id not in old or _shares_nothing(old[field.id], field.type) for field in read.fields)
        case Kind.ARRAY:
            return _shares_nothing(file.part("element"), read.part("element"))
        case Kind.MAP:
            return _shares_nothing(file.part("value"), read.part("value"))
        case _:
            return False


def _conform_row(array: Any, file: DataType, read: DataType) -> Any:
    old = {inner.id: inner for inner in file.fields}
    children = []
    for read_field in read.fields:
        source = old.get(read_field.id)
        if source is None:
            children.append(pa.nulls(len(array), read_field.type.arrow))
        else:
            position = array.type.get_field_index(source.name)
            if position < 0:
                raise pa.ArrowInvalid(f"the file has no nested field '{source.name}'")
            children.append(to_read_schema(array.field(position), source.type, read_field.type))
    return pa.StructArray.from_arrays(children, fields=[read_field.arrow_field for read_field in read.fields], mask=_nulls(array))


def _is_equal(file: DataType, read: DataType) -> bool:
    return file.is_nested and file.with_nullable(nullable=True) == read.with_nullable(nullable=True)


def _entries(array: Any) -> tuple[Any, Any]:
    """Return all keys and values of maps.

    A map may be a list of (key, value).
    """
    if pa.types.is_map(array.type):
        return array.keys, array.items
    return array.values.field(0), array.values.field(1)


def _offsets(array: Any) -> Any:
    return pa.array(array.offsets.to_numpy())  # a copy: Arrow accepts no null mask together with sliced offsets


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def column_types(fields: Sequence[DataField]) -> dict[str, ColumnType]:
    """Return types by name, for predicates and indexes."""
    return {column.name: column.type.column_type for column in fields}

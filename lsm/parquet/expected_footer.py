"""Comparison of a Parquet footer with the table's metadata.

Checks length, rows, columns, their types, minima and null counts. Writers store nested columns and plain types differently. Refused is only
what no writer produces: a missing column, a type that changes values, or bounds that exclude values known to the manifest.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lsm.parquet.fields import (
    ChunkStatistics,
    ColumnChunk,
    ColumnMetaData,
    ConvertedType,
    DecimalType,
    FieldRepetitionType,
    FileMetaData,
    IntType,
    KeyValue,
    LogicalType,
    PhysicalType,
    RowGroupMetaData,
    SchemaElement,
    TimestampType,
    TimeUnit,
    decode_plain,
    list_of,
    value,
    value_or,
)
from lsm.parquet.footer_structure import FooterHead, LeafColumn, raw_bounds
from lsm.parquet.thrift import Struct
from lsm.schema.parquet_schema import KIND_FIELD, SEQUENCE_FIELD, key_fields
from manifest.entry.data_file import DataFileMeta
from manifest.schema.table_schema import TableSchema
from manifest.stats.column_stats import ColumnBounds, decode_bounds
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import BINARIES, FLOATS, STRINGS, TIMESTAMPS, Kind

PHYSICAL_TYPES: dict[Kind, frozenset[int]] = {
    Kind.BOOLEAN: frozenset({PhysicalType.BOOLEAN}),
    **dict.fromkeys((Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE), frozenset({PhysicalType.INT32})),
    Kind.TIME: frozenset({PhysicalType.INT32, PhysicalType.INT64}),
    Kind.BIGINT: frozenset({PhysicalType.INT64}),
    **dict.fromkeys(TIMESTAMPS, frozenset({PhysicalType.INT64, PhysicalType.INT96})),
    Kind.FLOAT: frozenset({PhysicalType.FLOAT}),
    Kind.DOUBLE: frozenset({PhysicalType.DOUBLE}),
    Kind.DECIMAL: frozenset({PhysicalType.INT32, PhysicalType.INT64, PhysicalType.BYTE_ARRAY, PhysicalType.FIXED_LEN_BYTE_ARRAY}),
    **dict.fromkeys((*STRINGS, Kind.VARIANT, Kind.BLOB), frozenset({PhysicalType.BYTE_ARRAY})),
    **dict.fromkeys(BINARIES, frozenset({PhysicalType.BYTE_ARRAY, PhysicalType.FIXED_LEN_BYTE_ARRAY})),
}
"""Physical types in which writers store each kind of leaf."""
INTEGER_WIDTHS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
"""Bits of the integers."""
_TYPED = b"typed_value"
"""Name of the typed part of a shredded VARIANT."""
_CONVERTED_WIDTHS = {ConvertedType.INT_8: 8, ConvertedType.INT_16: 16, ConvertedType.INT_32: 32, ConvertedType.INT_64: 64}
_TEXTS = frozenset({None, LogicalType.STRING, LogicalType.ENUM, LogicalType.JSON})
_CONVERTED_UNITS = {ConvertedType.TIMESTAMP_MILLIS: TimeUnit.MILLIS, ConvertedType.TIMESTAMP_MICROS: TimeUnit.MICROS}
_WIDEST = 16
_ARROW, _ARROW_SCHEMA = b"parquet-cpp-arrow", b"ARROW:schema"
_UNCOMPARED = frozenset({Kind.TIME, *BINARIES})


class FooterMismatch(ValueError):
    """A file does not match its metadata."""


@dataclass(frozen=True)
class ExpectedFooter:
    """Expected properties of a data file.

    Args:
        file: Manifest entry of the file.
        schema: Schema that the file was written with.
        partition: Partition columns. They are never read from the file.
    """

    file: DataFileMeta
    schema: TableSchema
    partition: Sequence[str] = ()

    @property
    def key(self) -> Hashable:
        """Cache key of equal expectations."""
        file = self.file
        stats = file.value_stats
        return file.schema_id, file.row_count, file.file_size, file.write_cols, stats.min_values, stats.max_values, stats.null_counts

    def check(self, footer: Struct, head: FooterHead, size: int) -> None:
        """Compare a valid footer with the metadata.

        ``size`` is the size of the file in bytes.

        Raises:
            FooterMismatch: The footer does not match; the message says how.
        """
        self.check_size(value(footer, FileMetaData.NUM_ROWS), size)
        strict = _is_exact(footer)
        details = self.file.write_cols, tuple(self.partition), strict
        if not head.matches(self.schema, details):
            for field in self.columns(head.columns):
                _check_column(field, [leaf for _, leaf in head.columns[field.name]], strict=strict)
            head.record_match(self.schema, details)
        self._check_statistics(footer, head.columns)

    def check_size(self, rows: int, size: int) -> None:
        """Compare the size and row count of the file.

        Raises:
            FooterMismatch: They differ from the metadata.
        """
        if size != self.file.file_size:
            raise FooterMismatch(f"has {size} bytes, but its metadata says {self.file.file_size}")
        if rows != self.file.row_count:
            raise FooterMismatch(f"has {rows} rows, but its metadata says {self.file.row_count}")

    def columns(self, there: Container[str]) -> list[DataField]:
        """Return the columns that the file must have.

        Key columns are optional, because thin files have none, but they must be complete.

        Raises:
            FooterMismatch: A column is missing.
        """
        fields = [field for field in self.schema.fields if self._is_written(field.name) and field.name not in self.partition]
        if self.schema.kind.has_row_kinds:
            keys = key_fields(self.schema.fields, self.schema.trimmed_primary_keys)
            fields += (SEQUENCE_FIELD, KIND_FIELD, *(keys if any(field.name in there for field in keys) else ()))
        for field in fields:
            if field.name not in there:
                raise FooterMismatch(f"has no column '{field.name}'")
        return fields

    def _is_written(self, name: str) -> bool:
        return self.file.write_cols is None or name in self.file.write_cols

    def _check_statistics(self, footer: Struct, there: Mapping[str, Sequence[tuple[int, LeafColumn]]]) -> None:
        """Compare bounds and null counts with the manifest.

        The footer must not exclude values known to the manifest.
        """
        names = self.schema.names if self.file.value_stats_cols is None else self.file.value_stats_cols
        if not self.schema.by_name.keys() >= set(names):
            return
        try:
            bounds_by_column = decode_bounds(self.file.value_stats, names, self.schema.types_of(names), self.file.row_count)
        except (ValueError, IndexError):
            return  # a user of these statistics reports the error
        groups = [list_of(group, RowGroupMetaData.COLUMNS) for group in list_of(footer, FileMetaData.ROW_GROUPS)]
        for name, bounds in bounds_by_column.items() if groups else ():
            if name in self.partition:
                continue  # partition columns are never read from the file
            leaves, field = there.get(name, ()), self.schema.field(name)
            if len(leaves) == 1 and not field.type.is_nested:
                ((position, leaf),) = leaves
                _check_bounds(field, leaf, [value(chunks[position], ColumnChunk.META_DATA) for chunks in groups], bounds)


def _is_exact(footer: Struct) -> bool:
    """Return whether the writer stores NOT NULL columns as required."""
    # That is this package's writer: Arrow without a stored Arrow schema.
    key_values = list_of(footer, FileMetaData.KEY_VALUE_METADATA) if FileMetaData.KEY_VALUE_METADATA in footer else ()
    writer: bytes = value_or(footer, FileMetaData.CREATED_BY, b"")
    return writer.startswith(_ARROW) and all(value(entry, KeyValue.KEY) != _ARROW_SCHEMA for entry in key_values)


def _check_column(field: DataField, leaves: Sequence[LeafColumn], *, strict: bool) -> None:
    expected = list(_expected_leaves(field.type, (), 0, 0))
    if any(type_.kind is Kind.VARIANT for type_, *_ in expected):
        leaves = _unshredded(leaves, [names[:-1] for type_, names, *_ in expected if type_.kind is Kind.VARIANT])
    if len(expected) != len(leaves):
        raise FooterMismatch(f"column '{field.name}' has {len(leaves)} parts instead of the {len(expected)} of {field.type}")
    for leaf, (type_, names, definition, repetition) in zip(leaves, expected, strict=True):
        if leaf.repetition != repetition:
            raise FooterMismatch(f"column '{field.name}' has other repetition levels than {field.type}")
        is_spelled = len(leaf.path) == len(names) + 1
        if is_spelled and any(name not in {None, part.decode()} for name, part in zip(names, leaf.path[1:], strict=True)):
            raise FooterMismatch(f"column '{field.name}' has parts with other names than {field.type}")
        if leaf.definition < definition and is_spelled:
            raise FooterMismatch(f"column '{field.name}' cannot store the nulls of {field.type}")
        repetition_type = value(leaf.element, SchemaElement.REPETITION_TYPE)
        if strict and not names and not field.type.nullable and repetition_type != FieldRepetitionType.REQUIRED:
            raise FooterMismatch(f"column '{field.name}' can store nulls, but is {field.type}")
        if not _fits(leaf.element, type_):
            raise FooterMismatch(f"column '{field.name}' is stored as another type than {field.type}")


def _unshredded(leaves: Sequence[LeafColumn], variants: Sequence[tuple[str | None, ...]]) -> list[LeafColumn]:
    """Return the leaves without typed parts of VARIANTs.

    Each ``value`` comes before its ``metadata``.

    variants: Names of the VARIANTs below the top-level column.
    """

    def part(leaf: LeafColumn) -> bytes | None:
        """Return the part of a VARIANT that a leaf belongs to."""
        for names in variants:
            path_in_variant = leaf.path[1 : 2 + len(names)]
            if len(path_in_variant) > len(names) and all(
                name in {None, path_name.decode()} for name, path_name in zip(names, path_in_variant[:-1], strict=True)
            ):
                return path_in_variant[-1]
        return None

    plain_leaves = [leaf for leaf in leaves if part(leaf) != _TYPED]
    for index in range(len(plain_leaves) - 1):
        first, second = plain_leaves[index : index + 2]
        if (part(first), part(second)) == (b"metadata", b"value") and first.path[:-1] == second.path[:-1]:
            plain_leaves[index : index + 2] = second, first
    return plain_leaves


def _expected_leaves(
    type_: DataType, names: tuple[str | None, ...], definition: int, repetition: int
) -> Iterator[tuple[DataType, tuple[str | None, ...], int, int]]:
    """Yield type, names, definition and repetition level of each leaf.

    Names are those below the top-level column, None for any name. The definition level is the smallest allowed one.
    """
    definition += type_.nullable
    match type_.kind:
        case Kind.ARRAY | Kind.VECTOR:
            yield from _expected_leaves(type_.part("element"), (*names, None, None), definition + 1, repetition + 1)
        case Kind.MAP | Kind.MULTISET:
            is_map = type_.kind is Kind.MAP
            key = type_.part("key" if is_map else "element").with_nullable(nullable=False)
            value = type_.part("value") if is_map else DataType(Kind.INT, nullable=False)
            yield from _expected_leaves(key, (*names, None, None), definition + 1, repetition + 1)
            yield from _expected_leaves(value, (*names, None, None), definition + 1, repetition + 1)
        case Kind.ROW:
            for field in type_.fields:
                yield from _expected_leaves(field.type, (*names, field.name), definition, repetition)
        case Kind.VARIANT:
            for name in ("value", "metadata"):
                yield type_, (*names, name), definition, repetition
        case _:
            yield type_, names, definition, repetition


def _fits(element: Struct, type_: DataType) -> bool:
    """Return whether a leaf's decoded values have type ``type_``."""
    physical = PHYSICAL_TYPES.get(type_.kind)
    kind = value(element, SchemaElement.TYPE)
    if physical is None:
        return True
    if kind not in physical:
        return False
    logical, parameters = _logical(element)
    converted = value_or(element, SchemaElement.CONVERTED_TYPE, None)
    match type_.kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            width = INTEGER_WIDTHS[type_.kind]
            older = converted is None or _CONVERTED_WIDTHS.get(converted) == width
            return older and (logical is None or (logical == LogicalType.INTEGER and _is_signed(parameters, width)))
        case Kind.DECIMAL:
            return _fits_decimal(element, type_, parameters if logical == LogicalType.DECIMAL else None)
        case Kind.DATE:
            return logical == LogicalType.DATE or (logical is None and converted == ConvertedType.DATE)
        case Kind.TIME:
            return logical in {None, LogicalType.TIME}
        case one if one in TIMESTAMPS:
            return kind == PhysicalType.INT96 or _fits_timestamp(
                type_.precision, converted, parameters if logical == LogicalType.TIMESTAMP else None
            )
        case one if one in STRINGS:
            return logical in _TEXTS
        case one if one in BINARIES:
            fits = kind == PhysicalType.BYTE_ARRAY or value(element, SchemaElement.TYPE_LENGTH) == type_.length
            return logical in {None, LogicalType.STRING} and fits
        case _:
            return logical is None and converted is None


def _logical(element: Struct) -> tuple[int | None, Struct]:
    """Return a leaf's logical type and its parameters."""
    if SchemaElement.LOGICAL_TYPE not in element:
        return None, {}
    ((number, (_, parameters)),) = value(element, SchemaElement.LOGICAL_TYPE).items()
    return number, parameters


def _is_signed(parameters: Struct, width: int) -> bool:
    return value(parameters, IntType.BIT_WIDTH) == width and value(parameters, IntType.IS_SIGNED) is True


def _fits_decimal(element: Struct, type_: DataType, logical: Struct | None) -> bool:
    is_older = value_or(element, SchemaElement.CONVERTED_TYPE, None) == ConvertedType.DECIMAL
    if logical is None and (not is_older or SchemaElement.LOGICAL_TYPE in element):
        return False
    pairs = set()
    if SchemaElement.PRECISION in element:
        pairs.add((value(element, SchemaElement.PRECISION), value_or(element, SchemaElement.SCALE, 0)))
    if logical is not None:
        pairs.add((value(logical, DecimalType.PRECISION), value(logical, DecimalType.SCALE)))
    least = ((10**type_.precision - 1).bit_length() + 8) // 8
    is_fixed: bool = value(element, SchemaElement.TYPE) == PhysicalType.FIXED_LEN_BYTE_ARRAY
    return (not is_fixed or value(element, SchemaElement.TYPE_LENGTH) in {least, _WIDEST}) and pairs == {(type_.precision, type_.scale)}


def _fits_timestamp(precision: int, converted: int | None, logical: Struct | None) -> bool:
    newer = None if logical is None else next(iter(value(logical, TimestampType.UNIT)))
    older = None if converted is None else _CONVERTED_UNITS.get(converted)
    if newer is not None and older is not None:
        return bool(newer == older)
    unit = TimeUnit.MILLIS if precision <= 3 else TimeUnit.MICROS if precision <= 6 else TimeUnit.NANOS
    return unit in {newer, older}


def _check_bounds(field: DataField, leaf: LeafColumn, chunks: Sequence[Struct], bounds: ColumnBounds) -> None:
    """Compare a column's bounds in all row groups with ``bounds``.

    ``chunks`` are the ``ColumnMetaData`` of all row groups. If one has no statistics, nothing is compared.
    """
    name, type_ = field.name, field.type
    chunk_statistics, nulls = [], []
    for meta in chunks:
        if ColumnMetaData.STATISTICS not in meta:
            return
        chunk_statistics.append(meta[ColumnMetaData.STATISTICS][1])
        nulls.append(value_or(chunk_statistics[-1], ChunkStatistics.NULL_COUNT, None))
    if bounds.null_count is not None and None not in nulls and sum(nulls) != bounds.null_count:
        raise FooterMismatch(f"column '{name}' has {sum(nulls)} nulls by its footer and {bounds.null_count} by its metadata")
    physical_type = value(leaf.element, SchemaElement.TYPE)
    if bounds.min is None or bounds.max is None or type_.kind in _UNCOMPARED or physical_type == PhysicalType.INT96:
        return
    lows, highs = [], []
    for meta, statistics, null_count in zip(chunks, chunk_statistics, nulls, strict=True):
        low, high = raw_bounds(statistics)
        if null_count != value(meta, ColumnMetaData.NUM_VALUES) and (low is None or high is None or null_count is None):
            return
        if low is not None and high is not None:
            lows.append(_plain(low, physical_type, type_))
            highs.append(_plain(high, physical_type, type_))
    if not lows or None in lows or None in highs:
        return
    if type_.kind in STRINGS:
        narrow = not _starts(min(lows), str(bounds.min)) or not _ends(max(highs), str(bounds.max))
    elif type_.kind in FLOATS and any(bound != bound for bound in (bounds.min, bounds.max)):  # noqa: PLR0124 -- NaN
        return
    else:
        narrow = min(lows) > bounds.min or max(highs) < bounds.max
    if narrow:
        raise ValueError(
            f"column '{name}' has {min(lows)!r} to {max(highs)!r} by its footer, but {bounds.min!r} to {bounds.max!r} by its metadata"
        )


def _starts(low: str, minimum: str) -> bool:
    """Return whether ``minimum`` is not below the minimum ``low``.

    ``minimum`` may be truncated.
    """
    return low.encode() <= minimum.encode() or low.startswith(minimum)


def _ends(high: str, maximum: str) -> bool:
    """Return whether ``maximum`` is not above the maximum ``high``.

    ``maximum`` may be truncated, with its last character incremented.
    """
    return high.encode() >= maximum.encode() or high.startswith(maximum[:-1])


def _plain(raw: bytes, physical_type: int, type_: DataType) -> Any:
    """Return a raw bound as a plain value. None: unknown."""
    if type_.kind in STRINGS:
        return raw.decode()
    decoded = decode_plain(raw, physical_type)
    if decoded is not raw:  # a number
        return decoded
    return int.from_bytes(raw, "big", signed=True) if type_.kind is Kind.DECIMAL else None

"""Whether a Parquet footer is what the table's metadata promise of the file: its length, rows, columns, their types, minima and nulls.

Other writers spell nested columns and plain types in their own ways; what is refused here is only what no writer means: a column that
the schema of the file has and the file has not, a type that gives other values, bounds that leave out what the manifest knows to be there.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fileindex.base.column_type import BINARIES, FLOATS, STRINGS, TIMESTAMPS, Kind
from lsm.parquet.footer_structure import BOOLEAN, BYTE_ARRAY, DOUBLES, FIXED, FLOAT, INT32, INT64, INT96, REQUIRED, LeafColumn, raw_bounds
from lsm.parquet.thrift import BINARY, I32, Struct
from lsm.schema.parquet_schema import KIND_FIELD, SEQUENCE_FIELD, key_fields
from manifest.entry.data_file import DataFileMeta
from manifest.schema.table_schema import TableSchema
from manifest.stats.column_stats import ColumnBounds, decode_bounds
from manifest.types.data_type import DataField, DataType

_PHYSICAL: dict[Kind, frozenset[int]] = {
    Kind.BOOLEAN: frozenset({BOOLEAN}),
    **dict.fromkeys((Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE), frozenset({INT32})),
    Kind.TIME: frozenset({INT32, INT64}),
    Kind.BIGINT: frozenset({INT64}),
    **dict.fromkeys(TIMESTAMPS, frozenset({INT64, INT96})),
    Kind.FLOAT: frozenset({FLOAT}),
    Kind.DOUBLE: frozenset({DOUBLES}),
    Kind.DECIMAL: frozenset({INT32, INT64, BYTE_ARRAY, FIXED}),
    **dict.fromkeys((*STRINGS, Kind.VARIANT, Kind.BLOB), frozenset({BYTE_ARRAY})),
    **dict.fromkeys(BINARIES, frozenset({BYTE_ARRAY, FIXED})),
}
_WIDTHS = {Kind.TINYINT: 8, Kind.SMALLINT: 16, Kind.INT: 32, Kind.BIGINT: 64}
_CONVERTED_WIDTHS = {15: 8, 16: 16, 17: 32, 18: 64}
_STRING, _LOGICAL_DECIMAL, _DATE, _TIME, _TIMESTAMP, _INTEGER = 1, 5, 6, 7, 8, 10
_LOGICAL = 10
_TEXTS = frozenset({None, _STRING, 4, 12})
_CONVERTED_DECIMAL, _CONVERTED_DATE = 5, 6
_CONVERTED_UNITS = {9: 1, 10: 2}
_MILLIS, _MICROS, _NANOS = 1, 2, 3
_WIDEST = 16
_FORMATS = {BOOLEAN: "<?", INT32: "<i", INT64: "<q", FLOAT: "<f", DOUBLES: "<d"}
_ARROW, _ARROW_SCHEMA = b"parquet-cpp-arrow", b"ARROW:schema"
_UNCOMPARED = frozenset({Kind.TIME, *BINARIES})


class BrokenPromise(ValueError):
    """A file is not what its metadata say."""


@dataclass(frozen=True)
class FooterPromise:
    """What a data file must be.

    Args:
        file: its entry in the manifest.
        schema: the one that it was written with.
        partition: columns whose values the partition tells; they are never read from the file.
    """

    file: DataFileMeta
    schema: TableSchema
    partition: Sequence[str] = ()

    @property
    def key(self) -> Hashable:
        """Equal for promises of the same things."""
        file = self.file
        stats = file.value_stats
        return file.schema_id, file.row_count, file.file_size, file.write_cols, stats.min_values, stats.max_values, stats.null_counts

    def check(self, footer: Struct, leaves: Sequence[LeafColumn], size: int) -> None:
        """Raises ``BrokenPromise`` that tells what is not as promised, for a footer that holds together in a file of ``size`` bytes."""
        if size != self.file.file_size:
            raise BrokenPromise(f"has {size} bytes where its metadata says {self.file.file_size}")
        if footer[3][1] != self.file.row_count:
            raise BrokenPromise(f"has {footer[3][1]} rows where its metadata says {self.file.row_count}")
        there: dict[str, list[tuple[int, LeafColumn]]] = {}
        for position, leaf in enumerate(leaves):
            there.setdefault(leaf.path[0].decode(), []).append((position, leaf))
        strict = _is_exact(footer)
        for field in self._fields(there):
            found = there.get(field.name)
            if found is None:
                raise BrokenPromise(f"has no column '{field.name}'")
            _check_column(field, [leaf for _, leaf in found], strict=strict)
        self._check_statistics(footer, there)

    def _fields(self, there: dict[str, Any]) -> Iterator[DataField]:
        """The columns that must be there; keys only if some are, for thin files have none."""
        write_cols = self.file.write_cols
        for field in self.schema.fields:
            if (write_cols is None or field.name in write_cols) and field.name not in self.partition:
                yield field
        if self.schema.is_primary_key_table:
            yield from (SEQUENCE_FIELD, KIND_FIELD)
            keys = key_fields(self.schema.fields, self.schema.trimmed_primary_keys)
            if any(field.name in there for field in keys):
                yield from keys

    def _check_statistics(self, footer: Struct, there: dict[str, list[tuple[int, LeafColumn]]]) -> None:
        """Row groups' bounds and null counts must not leave out what the manifest's say is there."""
        by_name = {field.name: field for field in self.schema.fields}
        names = tuple(by_name) if self.file.value_stats_cols is None else self.file.value_stats_cols
        if not all(name in by_name for name in names):
            return
        try:
            known = decode_bounds(self.file.value_stats, names, [by_name[name].type for name in names], self.file.row_count)
        except (ValueError, IndexError):
            return  # whoever needs them says so
        groups = footer[4][1][1]
        for name, bounds in known.items():
            if name in self.partition:
                continue  # never read from the file
            found = there.get(name, ())
            if len(found) == 1 and not by_name[name].type.is_nested and groups:
                position, leaf = found[0]
                chunks = [group[1][1][1][position][3][1] for group in groups]
                if not all(12 in meta for meta in chunks):
                    continue
                _check_bounds(by_name[name], leaf, [(meta[5][1], meta[12][1]) for meta in chunks], bounds)


def _is_exact(footer: Struct) -> bool:
    """Whether the writer is one that stores NOT NULL columns as such: ours, which hands the encoder no Arrow schema to keep."""
    kept = footer[5][1][1] if 5 in footer else ()
    writer: bytes = footer.get(6, (BINARY, b""))[1]
    return writer.startswith(_ARROW) and all(entry[1][1] != _ARROW_SCHEMA for entry in kept)


def _check_column(field: DataField, leaves: Sequence[LeafColumn], *, strict: bool) -> None:
    expected = list(_expected(field.type, (), 0, 0))
    if len(expected) != len(leaves):
        raise BrokenPromise(f"column '{field.name}' has {len(leaves)} parts instead of the {len(expected)} of {field.type}")
    for leaf, (type_, names, definition, repetition) in zip(leaves, expected, strict=True):
        if leaf.repetition != repetition:
            raise BrokenPromise(f"column '{field.name}' repeats in another way than {field.type}")
        is_spelled = len(leaf.path) == len(names) + 1
        if is_spelled and any(name not in {None, part.decode()} for name, part in zip(names, leaf.path[1:], strict=True)):
            raise BrokenPromise(f"column '{field.name}' has parts of other names than {field.type}")
        if leaf.definition < definition and is_spelled:
            raise BrokenPromise(f"column '{field.name}' has no place for the nulls of {field.type}")
        if strict and not names and not field.type.nullable and leaf.element[3][1] != REQUIRED:
            raise BrokenPromise(f"column '{field.name}' has places for nulls that {field.type} has not")
        if not _fits(leaf.element, type_):
            raise BrokenPromise(f"column '{field.name}' is stored as another type than {field.type}")


def _expected(
    type_: DataType, names: tuple[str | None, ...], definition: int, repetition: int
) -> Iterator[tuple[DataType, tuple[str | None, ...], int, int]]:
    """For every leaf its type, the names below the top-level column (None: any), and its least definition and its repetition level."""
    definition += type_.nullable
    match type_.kind:
        case Kind.ARRAY | Kind.VECTOR:
            yield from _expected(type_.part("element"), (*names, None, None), definition + 1, repetition + 1)
        case Kind.MAP | Kind.MULTISET:
            is_map = type_.kind is Kind.MAP
            key = type_.part("key" if is_map else "element").with_nullable(nullable=False)
            value = type_.part("value") if is_map else DataType(Kind.INT, nullable=False)
            yield from _expected(key, (*names, None, None), definition + 1, repetition + 1)
            yield from _expected(value, (*names, None, None), definition + 1, repetition + 1)
        case Kind.ROW:
            for field in type_.fields:
                yield from _expected(field.type, (*names, field.name), definition, repetition)
        case Kind.VARIANT:
            for name in ("value", "metadata"):
                yield type_, (*names, name), definition, repetition
        case _:
            yield type_, names, definition, repetition


def _fits(element: Struct, type_: DataType) -> bool:
    """Whether values of a leaf, decoded by what its element says, are those of ``type_``."""
    physical = _PHYSICAL.get(type_.kind)
    kind = element[1][1]
    if physical is None:
        return True
    if kind not in physical:
        return False
    logical, said = _logical(element)
    converted = element.get(6, (I32, None))[1]
    match type_.kind:
        case Kind.TINYINT | Kind.SMALLINT | Kind.INT | Kind.BIGINT:
            width = _WIDTHS[type_.kind]
            older = converted is None or _CONVERTED_WIDTHS.get(converted) == width
            return older and (logical is None or (logical == _INTEGER and said[1][1] == width and said[2][1] is True))
        case Kind.DECIMAL:
            return _fits_decimal(element, type_, said if logical == _LOGICAL_DECIMAL else None)
        case Kind.DATE:
            return logical == _DATE or (logical is None and converted == _CONVERTED_DATE)
        case Kind.TIME:
            return logical in {None, _TIME}
        case one if one in TIMESTAMPS:
            return kind == INT96 or _fits_timestamp(type_.precision, converted, said if logical == _TIMESTAMP else None)
        case one if one in STRINGS:
            return logical in _TEXTS
        case one if one in BINARIES:
            return logical in {None, _STRING} and (kind == BYTE_ARRAY or element[2][1] == type_.length)
        case _:
            return logical is None and converted is None


def _logical(element: Struct) -> tuple[int | None, Struct]:
    """Which of the logical types a leaf has, and what is said of it."""
    if _LOGICAL not in element:
        return None, {}
    ((number, (_, said)),) = element[_LOGICAL][1].items()
    return number, said


def _fits_decimal(element: Struct, type_: DataType, logical: Struct | None) -> bool:
    if (logical is None and element.get(6, (I32, None))[1] != _CONVERTED_DECIMAL) or (_LOGICAL in element and logical is None):
        return False
    pairs = [(element[8][1], element.get(7, (I32, 0))[1])] if 8 in element else []
    pairs += [(logical[2][1], logical[1][1])] if logical is not None else []
    least = ((10**type_.precision - 1).bit_length() + 8) // 8
    is_fixed: bool = element[1][1] == FIXED
    return (not is_fixed or element[2][1] in {least, _WIDEST}) and set(pairs) == {(type_.precision, type_.scale)}


def _fits_timestamp(precision: int, converted: int | None, logical: Struct | None) -> bool:
    said = None if logical is None else next(iter(logical[2][1]))
    older = None if converted is None else _CONVERTED_UNITS.get(converted)
    if said is not None and older is not None:
        return bool(said == older)  # said twice
    unit = _MILLIS if precision <= 3 else _MICROS if precision <= 6 else _NANOS
    return unit in {said, older}


def _check_bounds(field: DataField, leaf: LeafColumn, chunks: Sequence[tuple[int, Struct]], known: ColumnBounds) -> None:
    """``chunks`` are the numbers of values and the statistics of all row groups."""
    name, type_ = field.name, field.type
    nulls = [statistics.get(3, (0, None))[1] for _, statistics in chunks]
    if known.null_count is not None and None not in nulls and sum(nulls) != known.null_count:
        raise BrokenPromise(f"column '{name}' has {sum(nulls)} nulls by its footer and {known.null_count} by its metadata")
    if known.min is None or known.max is None or type_.kind in _UNCOMPARED or leaf.element[1][1] == INT96:
        return
    lows, highs = [], []
    for (values, statistics), null_count in zip(chunks, nulls, strict=True):
        low, high = raw_bounds(statistics)
        if null_count != values and (low is None or high is None or null_count is None):
            return
        if low is not None and high is not None:
            lows.append(_plain(low, leaf.element, type_))
            highs.append(_plain(high, leaf.element, type_))
    if not lows or None in lows or None in highs:
        return
    if type_.kind in STRINGS:
        narrow = not _starts(min(lows), str(known.min)) or not _ends(max(highs), str(known.max))
    elif type_.kind in FLOATS and any(one != one for one in (known.min, known.max)):  # noqa: PLR0124 -- NaN
        return
    else:
        narrow = min(lows) > known.min or max(highs) < known.max
    if narrow:
        raise ValueError(
            f"column '{name}' has {min(lows)!r} to {max(highs)!r} by its footer, but {known.min!r} to {known.max!r} by its metadata"
        )


def _starts(low: str, known: str) -> bool:
    """Whether ``known``, which may be cut, is the minimum ``low`` or above it."""
    return low.encode() <= known.encode() or low.startswith(known)


def _ends(high: str, known: str) -> bool:
    """Whether ``known``, which may be cut and its last character raised, is the maximum ``high`` or below it."""
    return high.encode() >= known.encode() or high.startswith(known[:-1])


def _plain(raw: bytes, element: Struct, type_: DataType) -> Any:
    """A raw bound as the plain value that statistics hold; None if it cannot be told."""
    if type_.kind in STRINGS:
        return raw.decode()
    layout = _FORMATS.get(element[1][1])
    if layout is not None:
        return struct.unpack(layout, raw)[0]
    return int.from_bytes(raw, "big", signed=True) if type_.kind is Kind.DECIMAL else None


__all__ = ["BrokenPromise", "FooterPromise"]

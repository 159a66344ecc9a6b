"""Column types and the *plain* form of literals.

All packages exchange bounds, partitions and filter literals as *plain* values. Each kind has one Python type:
BOOLEAN bool; integers int; FLOAT and DOUBLE float; strings str; binaries bytes; DECIMAL int (unscaled); DATE int (days);
TIME int (milliseconds of the day); TIMESTAMP int in the unit of the precision (``ColumnType.unit``); null None.

Except for floats, plain values of one column compare with ``<`` in Paimon's key order.
The UTF-8 order of strings equals their code-point order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa

from sparkexpr.values.variant_type import VARIANT_ARROW

Plain: TypeAlias = bool | int | float | str | bytes | None


class Kind(StrEnum):
    """Type roots, named as in Paimon's schema files."""

    CHAR = "CHAR"
    VARCHAR = "VARCHAR"
    BOOLEAN = "BOOLEAN"
    BINARY = "BINARY"
    VARBINARY = "VARBINARY"
    DECIMAL = "DECIMAL"
    TINYINT = "TINYINT"
    SMALLINT = "SMALLINT"
    INT = "INT"
    BIGINT = "BIGINT"
    FLOAT = "FLOAT"
    DOUBLE = "DOUBLE"
    DATE = "DATE"
    TIME = "TIME"
    TIMESTAMP = "TIMESTAMP"
    TIMESTAMP_LTZ = "TIMESTAMP_LTZ"
    ARRAY = "ARRAY"
    MAP = "MAP"
    MULTISET = "MULTISET"
    ROW = "ROW"
    VECTOR = "VECTOR"
    VARIANT = "VARIANT"
    BLOB = "BLOB"
    GEOMETRY = "GEOMETRY"
    GEOGRAPHY = "GEOGRAPHY"


STRINGS = frozenset({Kind.CHAR, Kind.VARCHAR})
BINARIES = frozenset({Kind.BINARY, Kind.VARBINARY})
INTEGERS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.BIGINT})
FLOATS = frozenset({Kind.FLOAT, Kind.DOUBLE})
LISTS = frozenset({Kind.ARRAY, Kind.VECTOR})
WITH_PARTS = LISTS | {Kind.MAP, Kind.MULTISET, Kind.ROW, Kind.VARIANT}
TIMESTAMPS = frozenset({Kind.TIMESTAMP, Kind.TIMESTAMP_LTZ})


@dataclass(frozen=True)
class ColumnType:
    """Kind and parameters of a column.

    ``key`` is set for MAP. ``value`` is the type of a MAP's values, or of the elements of an ARRAY or VECTOR.
    ``fields`` are names and types of the fields of a ROW.
    """

    kind: Kind
    precision: int = 0
    scale: int = 0
    length: int = 0
    key: ColumnType | None = None
    value: ColumnType | None = None
    fields: tuple[tuple[str, ColumnType], ...] = field(default=(), repr=False)

    @property
    def unit(self) -> str:
        """Arrow unit of a TIMESTAMP.

        ``ms`` up to precision 3, ``us`` up to 6, else ``ns``.
        """
        return "ms" if self.precision <= 3 else "us" if self.precision <= 6 else "ns"

    @cached_property
    def arrow(self) -> pa.DataType:
        """In-memory Arrow type of a column, with nullable parts."""
        match self.kind:
            case Kind.CHAR | Kind.VARCHAR:
                return pa.string()
            case Kind.BINARY | Kind.VARBINARY | Kind.BLOB:
                return pa.binary()
            case Kind.DECIMAL:
                return pa.decimal128(self.precision, self.scale)
            case Kind.TIMESTAMP:
                return pa.timestamp(self.unit)
            case Kind.TIMESTAMP_LTZ:
                return pa.timestamp(self.unit, tz="UTC")
            case Kind.MAP if self.key is not None and self.value is not None:
                return pa.map_(self.key.arrow, self.value.arrow)
            case Kind.ARRAY if self.value is not None:
                return pa.list_(self.value.arrow)
            case Kind.ROW:
                return pa.struct([(name, part.arrow) for name, part in self.fields])
            case Kind.VARIANT:
                return VARIANT_ARROW
            case kind if kind in _FIXED:
                return _FIXED[kind]
            case _:
                raise TypeError(f"{self.kind} has no Arrow type")


_FIXED: dict[Kind, pa.DataType] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.TINYINT: pa.int8(),
    Kind.SMALLINT: pa.int16(),
    Kind.INT: pa.int32(),
    Kind.BIGINT: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.DATE: pa.date32(),
    Kind.TIME: pa.time32("ms"),
}

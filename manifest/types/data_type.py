"""Paimon's data types, with conversion to schema JSON and Arrow.

Follows ``org.apache.paimon.types`` and ``DataTypeJsonParser``. Atomic types are text in JSON, constructed types objects. Field ids are
assigned in Paimon's order.

Default values of columns are text in the schema. Writers use them for null (Paimon's ``CastUtils``, ``DefaultValueRow``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeAlias

import pyarrow as pa

from manifest.io.errors import UnsupportedTable
from manifest.types.type_parser import parse_atomic, parse_geo, quote_field
from paimon_base.errors import UnsupportedType
from paimon_base.lazy import cached_property
from sparkexpr.values.column_type import BINARIES, LISTS, STRINGS, ColumnType, Kind
from sparkexpr.values.variant_type import VARIANT_ARROW, is_variant_type

MAX_LENGTH = 2**31 - 1
NESTED = frozenset({Kind.ARRAY, Kind.MAP, Kind.MULTISET, Kind.ROW, Kind.VECTOR})
Json: TypeAlias = str | dict[str, Any]
_READ_AS_TEXT = frozenset(
    {
        Kind.BOOLEAN,
        Kind.TINYINT,
        Kind.SMALLINT,
        Kind.INT,
        Kind.BIGINT,
        Kind.FLOAT,
        Kind.DOUBLE,
        Kind.DECIMAL,
        Kind.DATE,
        Kind.TIMESTAMP,
    }
)


@dataclass(frozen=True)
class DataType:
    """A type with its nullability.

    The used parameters depend on ``kind``. ``detail`` is the text of geo types.

    >>> str(DataType(Kind.DECIMAL, nullable=False, precision=10, scale=2))
    'DECIMAL(10, 2) NOT NULL'
    >>> DataType.from_json({"type": "MAP", "key": "STRING NOT NULL", "value": "INT"}).arrow
    MapType(map<string, int32>)
    """

    kind: Kind
    nullable: bool = True
    length: int = 0
    precision: int = 0
    scale: int = 0
    element: DataType | None = None
    key: DataType | None = None
    value: DataType | None = None
    fields: tuple[DataField, ...] = ()
    detail: str = ""

    @classmethod
    def from_json(cls, json: object) -> DataType:
        """Parse a type of a schema file. Raises ``UnsupportedType``."""
        if isinstance(json, str):
            geo = parse_geo(json)
            if geo is not None:
                return cls(geo[0], geo[1], detail=geo[2])
            kind, nullable, length, precision, scale = parse_atomic(json)
            return cls(kind, nullable, length, precision, scale)
        if not isinstance(json, dict) or not isinstance(json.get("type"), str):
            raise UnsupportedType(f"{json!r} is not a type of a schema file")
        root = json["type"]
        nullable = "NOT NULL" not in root
        for kind in (Kind.ARRAY, Kind.MULTISET, Kind.VECTOR, Kind.MAP, Kind.ROW):
            if not root.startswith(kind):
                continue
            if kind is Kind.MAP:
                return cls(kind, nullable, key=cls.from_json(json.get("key")), value=cls.from_json(json.get("value")))
            if kind is Kind.ROW:
                return cls(kind, nullable, fields=tuple(DataField.from_json(field) for field in json.get("fields", ())))
            return cls(kind, nullable, length=int(json.get("length", 0)), element=cls.from_json(json.get("element")))
        raise UnsupportedType(f"type '{root}' is unknown")

    def to_json(self) -> Json:
        """Return the schema-file form."""
        if self.kind not in NESTED:
            return str(self)
        json: dict[str, Any] = {"type": f"{self.kind}{self._suffix}"}
        if self.kind is Kind.MAP:
            json |= {"key": self.part("key").to_json(), "value": self.part("value").to_json()}
        elif self.kind is Kind.ROW:
            json["fields"] = [field.to_json() for field in self.fields]
        else:
            json["element"] = self.part("element").to_json()
        if self.kind is Kind.VECTOR:
            json["length"] = self.length
        return json

    def __str__(self) -> str:
        return f"{self._text}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return "" if self.nullable else " NOT NULL"

    @property
    def _text(self) -> str:
        match self.kind:
            case Kind.VARCHAR if self.length == MAX_LENGTH:
                return "STRING"
            case Kind.VARBINARY if self.length == MAX_LENGTH:
                return "BYTES"
            case Kind.CHAR | Kind.VARCHAR | Kind.BINARY | Kind.VARBINARY:
                return f"{self.kind}({self.length})"
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision}, {self.scale})"
            case Kind.TIME | Kind.TIMESTAMP:
                return f"{self.kind}({self.precision})"
            case Kind.TIMESTAMP_LTZ:
                return f"TIMESTAMP({self.precision}) WITH LOCAL TIME ZONE"
            case Kind.GEOMETRY | Kind.GEOGRAPHY:
                return f"{self.kind}({self.detail})"
            case Kind.VECTOR:
                return f"VECTOR<{self.element}, {self.length}>"
            case Kind.ARRAY | Kind.MULTISET:
                return f"{self.kind}<{self.element}>"
            case Kind.MAP:
                return f"MAP<{self.key}, {self.value}>"
            case Kind.ROW:
                return f"ROW<{', '.join(f'{quote_field(field.name)} {field.type}' for field in self.fields)}>"
            case _:
                return str(self.kind)

    def part(self, name: str) -> DataType:
        """Return the ``element``, ``key`` or ``value`` type, which must exist."""
        part = getattr(self, name)
        if not isinstance(part, DataType):
            raise UnsupportedType(f"{self.kind} has no {name} type")
        return part

    def with_nullable(self, nullable: bool) -> DataType:
        """Return the type with another nullability."""
        return self if self.nullable == nullable else replace(self, nullable=nullable)

    @cached_property
    def is_nested(self) -> bool:
        """Whether the type has parts.

        True for ARRAY, MAP, MULTISET, ROW, VECTOR and VARIANT.
        """
        return self.kind in NESTED or self.kind is Kind.VARIANT

    @cached_property
    def column_type(self) -> ColumnType:
        """The type for indexes and filters."""
        items = self.element if self.kind in LISTS else self.value
        key, value = (None if part is None else part.column_type for part in (self.key, items))
        fields = tuple([(field.name, field.type.column_type) for field in self.fields])
        return ColumnType(self.kind, self.precision, self.scale, self.length, key, value, fields)

    @cached_property
    def arrow(self) -> pa.DataType:
        """Arrow type of the column in memory.

        Raises ``UnsupportedType`` for geo types.
        """
        match self.kind:
            case Kind.ARRAY:
                return pa.list_(_arrow_item("element", self.part("element")))
            case Kind.VECTOR:
                return pa.list_(_arrow_item("element", self.part("element")), self.length)
            case Kind.MAP:
                return pa.map_(_arrow_item("key", self.part("key").with_nullable(nullable=False)), _arrow_item("value", self.part("value")))
            case Kind.MULTISET:
                return pa.map_(
                    _arrow_item("key", self.part("element").with_nullable(nullable=False)), pa.field("value", pa.int32(), nullable=False)
                )
            case Kind.ROW:
                return pa.struct([field.arrow_field for field in self.fields])
            case Kind.VARIANT:
                return VARIANT_ARROW
            case Kind.GEOMETRY | Kind.GEOGRAPHY:
                raise UnsupportedType(f"{self.kind} columns cannot be read or written")
            case _:
                return ColumnType(self.kind, self.precision, self.scale, self.length).arrow

    @cached_property
    def children(self) -> tuple[DataType, ...]:
        """Types nested directly in this one."""
        parts = (self.element, self.key, self.value, *[field.type for field in self.fields])
        return tuple([part for part in parts if part is not None])


def _arrow_item(name: str, data_type: DataType) -> pa.Field:
    return pa.field(name, data_type.arrow, nullable=data_type.nullable)


@dataclass(frozen=True)
class DataField:
    """A column, or a field of a ROW.

    The name may change, but the ``id`` does not.
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None

    @classmethod
    def from_json(cls, json: Mapping[str, Any]) -> DataField:
        """Parse a field of a schema file.

        Raises ``UnsupportedType`` with the column's name.
        """
        try:
            data_type = DataType.from_json(json["type"])
        except UnsupportedType as error:
            raise UnsupportedType(f"column '{json.get('name')}': {error}") from error
        field_id = int(json["id"])
        if not -1 <= field_id < 1 << 31:
            raise ValueError(f"column '{json['name']}' has the field id {field_id}")
        return cls(field_id, str(json["name"]), data_type, json.get("description"), json.get("defaultValue"))

    def to_json(self) -> dict[str, Any]:
        """Return the schema-file form, without absent members."""
        json: dict[str, Any] = {"id": self.id, "name": self.name, "type": self.type.to_json()}
        if self.description is not None:
            json["description"] = self.description
        if self.default_value is not None:
            json["defaultValue"] = self.default_value
        return json

    @cached_property
    def arrow_field(self) -> pa.Field:
        """Arrow field, with its nullability."""
        try:
            return pa.field(self.name, self.type.arrow, nullable=self.type.nullable)
        except UnsupportedType as error:
            raise UnsupportedType(f"column '{self.name}': {error}") from error


def arrow_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the in-memory Arrow schema of ``fields``."""
    return pa.schema([field.arrow_field for field in fields])


def number_fields(columns: Sequence[DataField], first: int = 0) -> tuple[DataField, ...]:
    """Return the columns with new ids, in Paimon's order.

    A column is numbered before its nested fields, a nested field after its own.

    >>> inner = DataField(-1, "a", DataType(Kind.INT))
    >>> row = DataField(-1, "c", DataType(Kind.ROW, fields=(inner,)))
    >>> [(field.id, [nested.id for nested in field.type.fields]) for field in number_fields([row, inner])]
    [(0, [1]), (2, [])]
    """
    counter = [first]
    numbered = []
    for column in columns:
        field_id = counter[0]
        counter[0] += 1
        numbered.append(replace(column, id=field_id, type=_number(column.type, counter)))
    return tuple(numbered)


def _number(data_type: DataType, counter: list[int]) -> DataType:
    if data_type.kind is Kind.ROW:
        fields = []
        for field in data_type.fields:
            nested = _number(field.type, counter)
            fields.append(replace(field, id=counter[0], type=nested))
            counter[0] += 1
        return replace(data_type, fields=tuple(fields))
    element, key, value = (None if part is None else _number(part, counter) for part in (data_type.element, data_type.key, data_type.value))
    return replace(data_type, element=element, key=key, value=value)


def highest_id(fields: Iterable[DataField]) -> int:
    """Return the highest id of fields and nested fields.

    -1 without fields.
    """
    return max((max(field.id, _highest_nested(field.type)) for field in fields), default=-1)


def _highest_nested(data_type: DataType) -> int:
    highest = max((_highest_nested(child) for child in data_type.children), default=-1)
    return max(highest, max((field.id for field in data_type.fields), default=-1))


def from_arrow(schema: pa.Schema) -> tuple[DataField, ...]:
    """Return columns for an Arrow schema, with ids from 0.

    Dictionaries become their value type, unsigned integers the next wider signed type, time zones local time zones. Raises ``UnsupportedType``
    with the column whose type has no counterpart.

    >>> [str(field.type) for field in from_arrow(pa.schema([pa.field("id", pa.int64(), nullable=False), ("t", pa.timestamp("us", "UTC"))]))]
    ['BIGINT NOT NULL', 'TIMESTAMP(6) WITH LOCAL TIME ZONE']
    """
    return number_fields([_from_arrow_field(field) for field in schema])


def _from_arrow_field(field: pa.Field) -> DataField:
    try:
        data_type = _from_arrow_type(field.type)
    except UnsupportedType as error:
        raise UnsupportedType(f"column '{field.name}': {error}") from error
    comment = (field.metadata or {}).get(b"comment")
    return DataField(-1, field.name, data_type.with_nullable(field.nullable), None if comment is None else comment.decode())


_UNIT_PRECISION = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_PLAIN_ARROW: dict[pa.DataType, DataType] = {
    pa.bool_(): DataType(Kind.BOOLEAN),
    pa.int8(): DataType(Kind.TINYINT),
    pa.int16(): DataType(Kind.SMALLINT),
    pa.uint8(): DataType(Kind.SMALLINT),
    pa.int32(): DataType(Kind.INT),
    pa.uint16(): DataType(Kind.INT),
    pa.int64(): DataType(Kind.BIGINT),
    pa.uint32(): DataType(Kind.BIGINT),
    pa.float32(): DataType(Kind.FLOAT),
    pa.float64(): DataType(Kind.DOUBLE),
    pa.date32(): DataType(Kind.DATE),
    pa.date64(): DataType(Kind.DATE),
    **{text: DataType(Kind.VARCHAR, length=MAX_LENGTH) for text in (pa.string(), pa.large_string(), pa.string_view())},
    **{raw: DataType(Kind.VARBINARY, length=MAX_LENGTH) for raw in (pa.binary(), pa.large_binary(), pa.binary_view())},
}


def _from_arrow_type(arrow: pa.DataType) -> DataType:
    if arrow in _PLAIN_ARROW:
        return _PLAIN_ARROW[arrow]
    if pa.types.is_dictionary(arrow):
        return _from_arrow_type(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        kind = Kind.TIMESTAMP if arrow.tz is None else Kind.TIMESTAMP_LTZ
        return DataType(kind, precision=_UNIT_PRECISION[arrow.unit])
    if pa.types.is_time(arrow):
        return DataType(Kind.TIME, precision=min(_UNIT_PRECISION[arrow.unit], 3))
    if pa.types.is_decimal128(arrow) and arrow.scale >= 0:
        return DataType(Kind.DECIMAL, precision=arrow.precision, scale=arrow.scale)
    if pa.types.is_fixed_size_binary(arrow):
        return DataType(Kind.BINARY, length=arrow.byte_width)
    if pa.types.is_map(arrow):
        key, value = _from_arrow_type(arrow.key_type), _from_arrow_type(arrow.item_type)
        return DataType(Kind.MAP, key=key.with_nullable(nullable=False), value=value.with_nullable(arrow.item_field.nullable))
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return DataType(Kind.ARRAY, element=_from_arrow_type(arrow.value_type).with_nullable(arrow.value_field.nullable))
    if is_variant_type(arrow):
        return DataType(Kind.VARIANT)
    if pa.types.is_struct(arrow):
        return DataType(Kind.ROW, fields=tuple(_from_arrow_field(arrow.field(i)) for i in range(arrow.num_fields)))
    hint = "; cast it to int64 or decimal128(20, 0)" if arrow == pa.uint64() else ""
    raise UnsupportedType(f"Arrow type {arrow} has no Paimon counterpart{hint}")


@lru_cache(maxsize=1024)
def default_scalar(field: DataField) -> pa.Scalar | None:
    """Return the column's default as an Arrow scalar, or None.

    Raises ``UnsupportedTable`` with the column if the text is not a value of the type. Also for types whose text each engine parses by its
    own rules: local-zoned timestamps (by the session's zone), TIME, BINARY and constructed types.

    >>> from manifest.types.data_type import DataType
    >>> default_scalar(DataField(0, "n", DataType(Kind.INT), default_value=" 42"))
    <pyarrow.Int32Scalar: 42>
    """
    text, data_type = field.default_value, field.type
    if text is None:
        return None
    if (data_type.kind is Kind.VARCHAR and len(text) <= data_type.length) or (
        data_type.kind is Kind.CHAR and len(text) == data_type.length
    ):
        return pa.scalar(text, data_type.arrow)
    if data_type.kind is Kind.VARBINARY and len(text.encode()) <= data_type.length:
        return pa.scalar(text.encode(), data_type.arrow)
    if data_type.kind not in _READ_AS_TEXT:
        unfit = data_type.kind in STRINGS | BINARIES
        raise UnsupportedTable(
            f"column '{field.name}': default value '{text}' of type {data_type} {'does not fit' if unfit else 'is not supported'}"
        )
    try:
        return pa.scalar(text.strip()).cast(data_type.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise UnsupportedTable(f"column '{field.name}': default value '{text}' is not a valid {data_type} ({error})") from error

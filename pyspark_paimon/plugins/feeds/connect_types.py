"""Types of Kafka Connect's schemas, and their values in JSON (``JsonConverter``)."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

_DECIMAL, _VARIABLE_DECIMAL = "org.apache.kafka.connect.data.Decimal", "io.debezium.data.VariableScaleDecimal"
_ZONED = "io.debezium.time.ZonedTimestamp"
_MICROS = pa.timestamp("us", "UTC")
_MOST_DIGITS = 38
_EXACT = Context(prec=20_000)
"""Context of decimals that rounds none of PostgreSQL's."""
_PLAIN = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float": pa.float32(),
    "float32": pa.float32(),
    "double": pa.float64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_NAMED = {
    "io.debezium.time.Date": pa.date32(),
    "io.debezium.time.Time": pa.time32("ms"),
    "io.debezium.time.MicroTime": pa.time64("us"),
    "io.debezium.time.NanoTime": pa.time64("ns"),
    "io.debezium.time.Timestamp": pa.timestamp("ms"),
    "io.debezium.time.MicroTimestamp": pa.timestamp("us"),
    "io.debezium.time.NanoTimestamp": pa.timestamp("ns"),
    "org.apache.kafka.connect.data.Date": pa.date32(),
    "org.apache.kafka.connect.data.Time": pa.time32("ms"),
    "org.apache.kafka.connect.data.Timestamp": pa.timestamp("ms"),
}
"""Types of numbers since the epoch or midnight, by their semantic names."""


@dataclass(frozen=True, eq=False)
class ConnectType:
    """Type of a field.

    ``form`` returns the Arrow type, given that of instants with a zone: these are text in JSON. ``convert`` is applied to each value.
    """

    form: Callable[[pa.DataType], pa.DataType]
    convert: Callable[[Any], Any] | None = None

    def array(self, values: Sequence[Any]) -> pa.Array:
        """Return values of JSON as an array. Raises several errors for values of other types."""
        array = pa.array([self.value(value) for value in values] if self.convert else values, self.form(pa.string()))
        if array.type == self.form(_MICROS):
            return array
        try:
            return array.cast(self.form(_MICROS))
        except pa.ArrowInvalid:  # more than six digits
            return array.cast(self.form(pa.timestamp("ns", "UTC")))

    def value(self, value: Any) -> Any:
        """Return a value of JSON for Arrow."""
        return value if value is None or self.convert is None else self.convert(value)


def column_types(struct: Mapping[str, Any]) -> dict[str, ConnectType]:
    """Return the types of a struct's fields by name.

    Raises ``ValueError`` for an unknown type, and for a name that is no text.

    >>> fields = [{"field": "id", "type": "int32"}, {"field": "day", "type": "int32", "name": "io.debezium.time.Date"}]
    >>> types = column_types({"type": "struct", "fields": fields})
    >>> types["id"].array([7]).type, types["day"].array([19723, None]).to_pylist()
    (DataType(int32), [datetime.date(2024, 1, 1), None])
    """
    if unnamed := [field["field"] for field in struct["fields"] if not isinstance(field["field"], str)]:
        raise ValueError(f"its schema has a field named {unnamed[0]!r}, not a text")
    return {field["field"]: connect_type(field) for field in struct["fields"]}


def connect_type(schema: Mapping[str, Any]) -> ConnectType:
    """Return the type of a schema.

    A number without a fixed precision, or with more than 38 digits, becomes text: no DECIMAL has all its values.

    >>> schema = {"type": "bytes", "name": _DECIMAL, "parameters": {"scale": "2", "connect.decimal.precision": "5"}}
    >>> connect_type(schema).array(["AN4="]).to_pylist()
    [Decimal('2.22')]
    """
    kind, name, parameters = schema.get("type"), schema.get("name"), schema.get("parameters") or {}
    if name == _DECIMAL and kind == "bytes":
        scale, precision = int(parameters["scale"]), int(parameters.get("connect.decimal.precision", _MOST_DIGITS))
        if 0 <= scale <= precision <= _MOST_DIGITS:
            return _same(pa.decimal128(precision, scale), lambda value: _decimal(value, scale))
        return _same(pa.string(), lambda value: f"{_decimal(value, scale):f}")
    if name == _VARIABLE_DECIMAL and kind == "struct":
        return _same(pa.string(), lambda value: f"{_decimal(value['value'], value['scale']):f}")
    if name == _ZONED and kind == "string":
        return ConnectType(lambda zoned: zoned)
    if name in _NAMED and kind in {"int32", "int64"}:
        return _same(_NAMED[name])
    match kind:
        case "bytes":
            return _same(pa.binary(), lambda value: b64decode(value, validate=True))
        case "float" | "float32" | "double" | "float64":
            return _same(_PLAIN[kind], float)  # "NaN" and "Infinity" are texts
        case "struct":
            return _struct(column_types(schema))
        case "array":
            part = connect_type(schema["items"])
            return ConnectType(lambda zoned: pa.list_(part.form(zoned)), lambda value: [part.value(item) for item in value])
        case "map":
            return _map(connect_type(schema["keys"]), connect_type(schema["values"]))
    if kind not in _PLAIN:
        raise ValueError(f"its schema has the unknown type {kind!r}")
    return _same(_PLAIN[kind])


def _same(arrow: pa.DataType, convert: Callable[[Any], Any] | None = None) -> ConnectType:
    return ConnectType(lambda _: arrow, convert)


def _struct(parts: Mapping[str, ConnectType]) -> ConnectType:
    return ConnectType(
        lambda zoned: pa.struct([(name, part.form(zoned)) for name, part in parts.items()]),
        lambda value: {name: part.value(value.get(name)) for name, part in parts.items()},
    )


def _map(key: ConnectType, item: ConnectType) -> ConnectType:
    def convert(value: Any) -> list[tuple[Any, Any]]:
        # Keys that are no texts come as pairs.
        return [(key.value(name), item.value(part)) for name, part in (value.items() if isinstance(value, Mapping) else value)]

    return ConnectType(lambda zoned: pa.map_(key.form(zoned), item.form(zoned)), convert)


def _decimal(text: str, scale: int) -> Decimal:
    unscaled = int.from_bytes(b64decode(text, validate=True), "big", signed=True)
    return _EXACT.scaleb(Decimal(unscaled), -scale)

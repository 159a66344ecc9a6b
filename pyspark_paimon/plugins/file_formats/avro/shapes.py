"""Schema of an Avro data file, and its Arrow types.

``plain_schema`` has the same layout in types known to any decoder: dates, times and decimals are converted here, not by the decoder.
A map is decoded as an array of its entries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from manifest.avro.schemas import AvroSchema
from manifest.io.errors import UnsupportedTable

_PLAIN = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "timestamp-millis": pa.timestamp("ms"),
    "timestamp-micros": pa.timestamp("us"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
}
"""Timestamps have no zone here: Paimon swaps the names of the two kinds of timestamps, so a file's kind is not reliable."""
_OTHERS = frozenset({"null", "enum", "fixed"})
_MOST_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Shape:
    """Type of a value.

    Args:
        kind: Avro type: a primitive, ``record``, ``array``, or ``map`` (also for an array of entries).
        arrow: Arrow type of the decoded values.
        nullable: The value is in a union with null.
        null_last: Null is the second branch of the union.
        names: Field names of a record.
        children: Shapes of a record's fields, an array's items, or a map's keys and values.
    """

    kind: str
    arrow: Any
    nullable: bool = False
    null_last: bool = False
    names: tuple[str, ...] = ()
    children: tuple[Shape, ...] = ()

    @property
    def entries(self) -> Shape:
        """Entries of a map as a record."""
        fields = zip(("key", "value"), self.children, strict=True)
        return Shape(
            "record", pa.struct([pa.field(name, child.arrow) for name, child in fields]), False, False, ("key", "value"), self.children
        )


def shape_of(schema: AvroSchema) -> tuple[Shape, bool]:
    """Return the shape of a file's rows and their nullability.

    Older versions write rows in a union with null.

    Raises:
        ValueError, LookupError: ``schema`` is not an Avro schema.
        UnsupportedTable: No table type corresponds to a type.
    """
    shape = _shape(schema, 0)
    if shape.kind != "record":
        raise ValueError("the schema is not a record")
    if len({*shape.names}) != len(shape.names):
        raise ValueError("two columns have the same name")
    return shape, shape.nullable


def _shape(schema: AvroSchema, depth: int) -> Shape:
    if depth > _MOST_DEPTH:
        raise ValueError("the schema is nested too deeply")
    if isinstance(schema, list):
        return _union(schema, depth)
    if isinstance(schema, str):
        if schema in _OTHERS:
            raise UnsupportedTable(f"Avro type '{schema}' is not supported; write the column as a type that Paimon has")
        if schema not in _PLAIN:
            raise ValueError(f"'{schema}' is not an Avro type")
        return Shape(schema, _PLAIN[schema])
    kind = schema["type"]
    if isinstance(kind, list | dict):
        return _shape(kind, depth + 1)
    match kind:
        case "record":
            children = tuple(_field_shape(field, depth + 1) for field in schema["fields"])
            names = tuple(str(field["name"]) for field in schema["fields"])
            arrow = pa.struct([pa.field(name, child.arrow) for name, child in zip(names, children, strict=True)])
            return Shape("record", arrow, names=names, children=children)
        case "array":
            item = _shape(schema["items"], depth + 1)
            if schema.get("logicalType") == "map" and item.kind == "record" and len(item.children) == 2:
                return _map(*item.children)
            if item.kind == "record" and not item.children and not item.nullable:
                raise ValueError("the schema has an array of empty values")
            return Shape("array", pa.list_(pa.field("element", item.arrow)), children=(item,))
        case "map":
            return _map(Shape("string", pa.string()), _shape(schema["values"], depth + 1))
    logical = schema.get("logicalType")
    if logical == "decimal" and kind == "bytes":
        return Shape("bytes", pa.decimal128(int(schema["precision"]), int(schema.get("scale", 0))))
    return Shape(kind, _LOGICAL[logical]) if logical in _LOGICAL and kind in {"int", "long"} else _shape(kind, depth)


def _field_shape(field: Mapping[str, Any], depth: int) -> Shape:
    try:
        return _shape(field["type"], depth)
    except UnsupportedTable as error:
        raise UnsupportedTable(f"column '{field['name']}': {error}") from error


def _map(key: Shape, value: Shape) -> Shape:
    return Shape("map", pa.map_(key.arrow, value.arrow), children=(key, value))


def _union(schema: list[Any], depth: int) -> Shape:
    branches = [branch for branch in schema if branch != "null"]
    if len(branches) != 1 or len(schema) != 2:
        raise ValueError("a column is a union of other branches than null and one type")
    shape = _shape(branches[0], depth + 1)
    return Shape(shape.kind, shape.arrow, True, schema[1] == "null", shape.names, shape.children)


def plain_schema(shape: Shape, *, branch: bool) -> str:
    """Return a JSON schema with the same layout.

    It has no logical types, maps or original names. With ``branch`` each row begins with its union branch number.
    """
    numbers = iter(range(1 << 30))

    def plain(shape: Shape) -> Any:
        bare = Shape(shape.kind, shape.arrow, names=shape.names, children=shape.children)
        if shape.nullable:
            return [plain(bare), "null"] if shape.null_last else ["null", plain(bare)]
        match shape.kind:
            case "record":
                fields = [{"name": f"f{index}", "type": plain(child)} for index, child in enumerate(shape.children)]
                return {"type": "record", "name": f"r{next(numbers)}", "fields": fields}
            case "array":
                return {"type": "array", "items": plain(shape.children[0])}
            case "map":
                return {"type": "array", "items": plain(shape.entries)}
            case kind:
                return kind

    rows = plain(Shape(shape.kind, shape.arrow, names=shape.names, children=shape.children))
    return json.dumps(rows | {"fields": [{"name": "branch", "type": "long"}, *rows["fields"]]} if branch else rows)

"""The writer's schema of an Avro data file: its columns, what each is in Arrow, and the same layout in types that any decoder has.

Dates, times and decimals are told apart here, not by the decoder; a map is encoded as an array of its entries is.
"""

from __future__ import annotations

import json
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
"""Of zones a file tells nothing to rely on: Paimon names the two kinds of timestamps the other way round."""
_OTHERS = frozenset({"null", "enum", "fixed"})
_MOST_DEPTH = 40


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of a value.

    Args:
        kind: of Avro: a primitive, ``record``, ``array``, or ``map`` (also one spelled as an array of entries).
        arrow: the Arrow type of its values, as readers get them.
        nullable: whether it is in a union with null, which stands first or last.
        null_last: where.
        names: of a record's fields.
        children: of a record its fields', of an array its items', of a map its keys' and values'.
    """

    kind: str
    arrow: Any
    nullable: bool = False
    null_last: bool = False
    names: tuple[str, ...] = ()
    children: tuple[Shape, ...] = ()

    @property
    def entries(self) -> Shape:
        """A map's entries as a record."""
        fields = zip(("key", "value"), self.children, strict=True)
        return Shape(
            "record", pa.struct([pa.field(name, child.arrow) for name, child in fields]), False, False, ("key", "value"), self.children
        )


def shape_of(schema: AvroSchema) -> tuple[Shape, bool]:
    """The shape of a file's rows, and whether each is in a union with null, as older versions have it.

    Raises ``ValueError`` or ``LookupError`` for what is no schema, ``UnsupportedTable`` for types that no table has.
    """
    shape = _shape(schema, 0)
    if shape.kind != "record":
        raise ValueError("its schema is no record")
    if len({*shape.names}) != len(shape.names):
        raise ValueError("two of its columns have one name")
    return shape, shape.nullable


def _shape(schema: AvroSchema, depth: int) -> Shape:
    if depth > _MOST_DEPTH:
        raise ValueError("its schema is nested too deeply")
    if isinstance(schema, list):
        return _union(schema, depth)
    if isinstance(schema, str):
        if schema in _OTHERS:
            raise UnsupportedTable(f"Avro type '{schema}' is no type of a table")
        if schema not in _PLAIN:
            raise ValueError(f"'{schema}' is no type of Avro")
        return Shape(schema, _PLAIN[schema])
    kind = schema["type"]
    if isinstance(kind, list | dict):
        return _shape(kind, depth + 1)
    match kind:
        case "record":
            children = tuple(_shape(field["type"], depth + 1) for field in schema["fields"])
            names = tuple(str(field["name"]) for field in schema["fields"])
            arrow = pa.struct([pa.field(name, child.arrow) for name, child in zip(names, children, strict=True)])
            return Shape("record", arrow, names=names, children=children)
        case "array":
            item = _shape(schema["items"], depth + 1)
            if schema.get("logicalType") == "map" and item.kind == "record" and len(item.children) == 2:
                return _map(*item.children)
            if item.kind == "record" and not item.children and not item.nullable:
                raise ValueError("its schema has an array of empty values")
            return Shape("array", pa.list_(pa.field("element", item.arrow)), children=(item,))
        case "map":
            return _map(Shape("string", pa.string()), _shape(schema["values"], depth + 1))
    logical = schema.get("logicalType")
    if logical == "decimal" and kind == "bytes":
        return Shape("bytes", pa.decimal128(int(schema["precision"]), int(schema.get("scale", 0))))
    return Shape(kind, _LOGICAL[logical]) if logical in _LOGICAL and kind in {"int", "long"} else _shape(kind, depth)


def _map(key: Shape, value: Shape) -> Shape:
    return Shape("map", pa.map_(key.arrow, value.arrow), children=(key, value))


def _union(schema: list[Any], depth: int) -> Shape:
    others = [branch for branch in schema if branch != "null"]
    if len(others) != 1 or len(schema) != 2:
        raise ValueError("a union of other branches than null and one type is no column")
    found = _shape(others[0], depth + 1)
    return Shape(found.kind, found.arrow, True, schema[1] == "null", found.names, found.children)


def plain_schema(shape: Shape, *, branch: bool) -> str:
    """The schema's layout in JSON without logical types, maps and names; ``branch``: a number before each row says that it is one."""
    numbers = iter(range(1 << 30))

    def plain(shape: Shape) -> Any:
        bare = Shape(shape.kind, shape.arrow, names=shape.names, children=shape.children)
        if shape.nullable:
            return [plain(bare), "null"] if shape.null_last else ["null", plain(bare)]
        match shape.kind:
            case "record":
                fields = [{"name": f"f{at}", "type": plain(child)} for at, child in enumerate(shape.children)]
                return {"type": "record", "name": f"r{next(numbers)}", "fields": fields}
            case "array":
                return {"type": "array", "items": plain(shape.children[0])}
            case "map":
                return {"type": "array", "items": plain(shape.entries)}
            case kind:
                return kind

    rows = plain(Shape(shape.kind, shape.arrow, names=shape.names, children=shape.children))
    return json.dumps(rows | {"fields": [{"name": "branch", "type": "long"}, *rows["fields"]]} if branch else rows)


__all__ = ["Shape", "plain_schema", "shape_of"]

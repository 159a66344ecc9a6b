"""Arrow schema of a Parquet data file.

Covers system columns, Paimon's field ids and names, and timestamps that Parquet supports.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import pyarrow as pa

from lsm.keys.sort import SEQUENCE_NUMBER, VALUE_KIND
from manifest.types.data_type import DataField, DataType
from sparkexpr.values.column_type import TIMESTAMPS, Kind

KEY_PREFIX = "_KEY_"
KEY_ID_OFFSET = (2**31 - 1) // 2
SEQUENCE_NUMBER_ID = 2**31 - 2
VALUE_KIND_ID = 2**31 - 3
_STRUCTURED_ID_OFFSET = 536_870_911
_STRUCTURED_ID_FACTOR = 1024
_MAX_INT64_PRECISION = 6

SEQUENCE_FIELD = DataField(SEQUENCE_NUMBER_ID, SEQUENCE_NUMBER, DataType(Kind.BIGINT, nullable=False))
KIND_FIELD = DataField(VALUE_KIND_ID, VALUE_KIND, DataType(Kind.TINYINT, nullable=False))


def key_fields(fields: Iterable[DataField], keys: Sequence[str]) -> tuple[DataField, ...]:
    """Return the ``_KEY_`` columns of the trimmed primary key.

    In the order of ``keys``.
    """
    by_name = {field.name: field for field in fields}
    return tuple(replace(by_name[key], id=by_name[key].id + KEY_ID_OFFSET, name=KEY_PREFIX + key) for key in keys)


def key_value_fields(fields: Sequence[DataField], keys: Sequence[str], *, thin: bool = False) -> tuple[DataField, ...]:
    """Return the columns of a primary-key table's data file.

    Keys (unless ``thin``), sequence number, kind, then every table column.
    """
    return (*(() if thin else key_fields(fields, keys)), SEQUENCE_FIELD, KIND_FIELD, *fields)


def file_schema(fields: Iterable[DataField]) -> pa.Schema:
    """Return the Arrow schema with Paimon's field ids.

    Columns, elements, map keys and map values have ids.

    >>> schema = file_schema([DataField(14, "m", DataType(Kind.MAP, key=DataType(Kind.INT, nullable=False), value=DataType(Kind.INT)))])
    >>> [field.metadata for field in (schema.field(0), schema.field(0).type.key_field, schema.field(0).type.item_field)]
    [{b'PARQUET:field_id': b'14'}, {b'PARQUET:field_id': b'536856574'}, {b'PARQUET:field_id': b'536885248'}]
    """
    return _file_schema(tuple(fields))


@lru_cache(maxsize=64)
def _file_schema(fields: tuple[DataField, ...]) -> pa.Schema:
    return pa.schema([_field(field) for field in fields])


def _field(field: DataField) -> Any:
    return _field_with_id(field.name, _arrow(field.type, field.id, 0), field.id, nullable=field.type.nullable)


def _field_with_id(name: str, arrow: Any, field_id: int, *, nullable: bool) -> Any:
    return pa.field(name, arrow, nullable=nullable, metadata={"PARQUET:field_id": str(field_id)})


def _arrow(data_type: DataType, field_id: int, depth: int) -> Any:
    step = _STRUCTURED_ID_FACTOR * field_id + depth + 1
    if data_type.kind is Kind.ROW:
        return pa.struct([_field(field) for field in data_type.fields])
    if data_type.kind is Kind.VARIANT:
        return pa.struct([_field_with_id(part.name, part.type, position, nullable=False) for position, part in enumerate(data_type.arrow)])
    if data_type.kind in {Kind.ARRAY, Kind.VECTOR}:
        element = data_type.part("element")
        return pa.list_(
            _field_with_id("element", _arrow(element, field_id, depth + 1), _STRUCTURED_ID_OFFSET + step, nullable=element.nullable)
        )
    if data_type.kind in {Kind.MAP, Kind.MULTISET}:
        is_map = data_type.kind is Kind.MAP
        key = data_type.part("key" if is_map else "element")
        value = data_type.part("value") if is_map else DataType(Kind.INT, nullable=False)
        return pa.map_(
            _field_with_id("key", _arrow(key, field_id, depth + 1), _STRUCTURED_ID_OFFSET - step, nullable=False),
            _field_with_id("value", _arrow(value, field_id, depth + 1), _STRUCTURED_ID_OFFSET + step, nullable=value.nullable),
        )
    return data_type.arrow


def needs_int96(fields: Iterable[DataField]) -> bool:
    """Return whether any timestamp is finer than microseconds.

    Paimon stores those as INT96 (``lsm.parquet.footer_fixup``).
    """
    types = [field.type for field in fields]
    return any(map(is_int96, [kind for kind in types if kind.kind in TIMESTAMPS or kind.is_nested]))


def is_int96(data_type: DataType) -> bool:
    """Return whether the type contains timestamps finer than microseconds."""
    if data_type.kind in TIMESTAMPS:
        return data_type.precision > _MAX_INT64_PRECISION
    return data_type.is_nested and any(map(is_int96, data_type.children))

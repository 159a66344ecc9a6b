"""Reads ORC and Parquet manifests (``manifest.format``) as Avro records.

The first bytes of a file decide, not the option, which may change over a table's life. These files are small and
rare, so their records are encoded again and all other code sees only Avro.
"""

from __future__ import annotations

import io
from typing import Any

import pyarrow as pa

from manifest.avro.schemas import AvroSchema

_ORC, _PARQUET = b"ORC", b"PAR1"
_INTEGERS = {pa.int8(), pa.int16(), pa.int32()}


def arrow_records(data: bytes) -> tuple[AvroSchema, list[dict[str, Any]]] | None:
    """Return schema and records of an ORC or Parquet file.

    The schema is in Avro. Returns None for bytes of another format. Raises ``ValueError`` for columns that no manifest has, ``OSError`` or
    ``pa.ArrowException`` for corrupt bytes.
    """
    if data.startswith(_ORC):
        from pyarrow import orc  # noqa: PLC0415  # few tables need it

        table = orc.ORCFile(io.BytesIO(data)).read()
    elif data.startswith(_PARQUET):
        from pyarrow import parquet as pq  # noqa: PLC0415  # as above

        table = pq.read_table(io.BytesIO(data), page_checksum_verification=True, use_threads=False)
    else:
        return None
    millis = pa.schema([(field.name, _retype(field.type, pa.timestamp("ms"))) for field in table.schema])
    numbers = pa.schema([(field.name, _retype(field.type, pa.int64())) for field in table.schema])
    return _record("manifest", numbers), table.cast(millis, safe=False).cast(numbers).to_pylist()


def _retype(type_: Any, timestamp: Any) -> Any:
    """Return ``type_`` with all its timestamps replaced."""
    if pa.types.is_timestamp(type_):
        return timestamp
    if pa.types.is_list(type_):
        return pa.list_(_retype(type_.value_type, timestamp))
    if pa.types.is_struct(type_):
        return pa.struct([(field.name, _retype(field.type, timestamp)) for field in type_])
    return type_


def _record(name: str, fields: Any) -> AvroSchema:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": field.name, "type": ["null", _avro(f"{name}_{field.name}", field.type)]} for field in fields],
    }


def _avro(name: str, type_: Any) -> AvroSchema:
    if type_ in _INTEGERS:
        return "int"
    if pa.types.is_int64(type_):
        return "long"
    if pa.types.is_string(type_):
        return "string"
    if pa.types.is_binary(type_):
        return "bytes"
    if pa.types.is_list(type_):
        return {"type": "array", "items": ["null", _avro(f"{name}_item", type_.value_type)]}
    if pa.types.is_struct(type_):
        return _record(name, type_)
    raise ValueError(f"manifests have no columns of type {type_}")


__all__ = ["arrow_records"]

"""Writes manifests in the table's format (``manifest.format``).

Records are always encoded and counted as Avro first, the format of most tables. ``other_formats`` reads the other formats.
"""

from __future__ import annotations

import io
from typing import Any, Final

import pyarrow as pa

from fileindex.base.errors import UnsupportedOption
from manifest.avro.container import read_container
from manifest.avro.schemas import AvroSchema

AVRO: Final = "avro"
_COMPRESSIONS = {"zstandard": "zstd", "snappy": "snappy"}
"""Avro codecs that ORC and Parquet have too. With other codecs the files are not compressed."""
_ONE_BYTE = frozenset({"_KIND", "_FILE_SOURCE"})
_OURS = frozenset({"_COLUMN_RANGES"})
"""Fields that records of other engines lack."""


def in_format(name: str, container: bytes, schema: AvroSchema, file_format: str, codec: str) -> bytes:
    """Return the content of manifest ``name`` in ``file_format``.

    ``container`` is an Avro container of ``schema`` with the records. Raises ``UnsupportedOption`` for an unknown format.
    """
    if file_format == AVRO:
        return container
    fields = _struct(schema)
    table = pa.Table.from_pylist(read_container(name, container).records(), pa.schema(list(fields)))
    sink = io.BytesIO()
    compression = _COMPRESSIONS.get(codec, "none")
    if file_format == "orc":
        from pyarrow import orc  # noqa: PLC0415  # few tables need it

        orc.write_table(table, sink, compression="uncompressed" if compression == "none" else compression)
    elif file_format == "parquet":
        from pyarrow import parquet as pq  # noqa: PLC0415  # as above

        pq.write_table(table, sink, compression=compression, store_schema=False, write_page_checksum=True)
    else:
        raise UnsupportedOption("manifest.format", f"'{file_format}' is not supported; use one of avro, orc, parquet")
    return sink.getvalue()


def _struct(record: AvroSchema) -> Any:
    fields = [field for field in record["fields"] if field["name"] not in _OURS]
    return pa.struct([_field(field["name"], field["type"]) for field in fields])


def _field(name: str, kind: AvroSchema) -> Any:
    if isinstance(kind, list):
        return pa.field(name, _type(name, kind[1]))
    return pa.field(name, _type(name, kind), nullable=False)


def _type(name: str, kind: AvroSchema) -> Any:
    if isinstance(kind, dict):
        match kind["type"]:
            case "record":
                return _struct(kind)
            case "array":
                return pa.list_(_field("element", kind["items"]))
            case _:
                return pa.timestamp("ms")
    if kind == "int":
        return pa.int8() if name in _ONE_BYTE else pa.int32()
    return {"long": pa.int64(), "string": pa.string(), "bytes": pa.binary()}[kind]


__all__ = ["AVRO", "in_format"]

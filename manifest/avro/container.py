"""Avro object containers, with every length checked before allocation.

A small file may neither decompress to a large one nor hold more records than bytes: each record names a file.

fastavro decodes only what was checked here. Each block is decompressed under a limit. Sync markers and block sizes are checked, and
the writer's schema may have no type that decodes to many values from no bytes. Every failure is a ``CorruptFile`` that names the file.
Also reads files of engines before Paimon 0.9 (a union of null and the record), and manifests in ORC or Parquet.

The first bytes of a file decide about its format, not ``manifest.format``, which may change over a table's life. Files in ORC or Parquet
are small and rare, so their records are encoded again and all other code sees only Avro. Writers encode and count records as Avro first,
the format of most tables.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from manifest.avro.codecs import BROKEN_BLOCK, MAX_PAYLOAD, compressor, decompressor
from manifest.avro.schemas import AvroSchema, layout, prepare_schema
from manifest.avro.sequential import decode_dicts
from manifest.avro.wire import MAGIC, SYNC_BYTES, BytesCursor, block_prefix, encode_header
from manifest.io.errors import OutOfMemory
from manifest.io.storage_errors import is_out_of_memory
from paimon_base.errors import CorruptFile, UnsupportedOption
from paimon_base.lazy import LazyModule, cached_property
from paimon_base.thresholds import thresholds

if TYPE_CHECKING:
    import fastavro
    import fastavro.schema
else:
    fastavro = LazyModule("fastavro")

_MARK, _IS_MARKED, _IS_NAMED = b"sync.marker", b"crc32", b"crc32 of name and content"
_CRC = 4
_BRANCH = "_UNION_BRANCH"
_MALFORMED = (EOFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""Errors of decoding corrupt bytes."""
_ORC, _PARQUET = b"ORC", b"PAR1"
_INTEGERS = {pa.int8(), pa.int16(), pa.int32()}
AVRO: Final = "avro"
_SMALL_PAYLOAD, _MOST_RATIO, _FEW_RECORDS = 256 << 20, 128, 1 << 16
"""Decoded bytes that any file may have, decoded bytes for each byte of a file, and records that any file may have."""
_ROWS_AT_ONCE = 64
"""Rows of ORC and Parquet files decoded at once. All may refer to one large value."""
_COMPRESSIONS = {"zstandard": "zstd", "snappy": "snappy"}
"""Avro codecs that ORC and Parquet have too. With other codecs the files are not compressed."""
_ONE_BYTE = frozenset({"_KIND", "_FILE_SOURCE"})
_OURS = frozenset({"_COLUMN_RANGES"})
"""Fields that records of other engines lack."""


@dataclass(frozen=True)
class WriterSchema:
    """Schema of a file, and its binary ``layout``."""

    schema: AvroSchema = field(compare=False)
    layout: AvroSchema

    @classmethod
    def of(cls, schema: AvroSchema) -> WriterSchema:
        """Return the schema of a record."""
        return cls(schema, layout(schema))

    @cached_property
    def prepared(self) -> AvroSchema:
        """The schema prepared for fastavro."""
        return prepare_schema(self.schema)


@dataclass(frozen=True, slots=True)
class Container:
    """A decompressed container.

    Args:
        path: Path of the file.
        schema: The writer's schema.
        count: Number of records.
        payload: Encoded records, back to back.
    """

    path: str
    schema: WriterSchema
    count: int
    payload: bytes

    def records(self) -> list[dict[str, Any]]:
        """Return all records as dictionaries.

        Raises ``CorruptFile`` if they do not fill the payload exactly.
        """
        # fastavro is faster for many records, but a fresh process reads few, and its import costs more.
        is_few = self.count <= thresholds.records_one_by_one
        few = decode_dicts(self.schema.layout, self.payload, self.count) if is_few else None
        if few is not None and all(record.pop(_BRANCH, 1) == 1 for record in few):
            return few
        return list(_decode_records(self.path, self.schema, self.payload, self.count))


def read_container(path: str, data: bytes) -> Container:
    """Parse the container ``data``, read from ``path``.

    Raises ``CorruptFile``, or ``UnsupportedTable`` for an unknown codec.
    """
    with _decoding(path):
        return _read(path, data)


@contextmanager
def _decoding(path: str) -> Iterator[None]:
    """Convert decoder errors to ``CorruptFile`` or ``OutOfMemory``."""
    try:
        yield
    except (MemoryError, *_MALFORMED, *BROKEN_BLOCK, pa.ArrowException, OSError) as error:
        if is_out_of_memory(error):
            raise OutOfMemory(path, str(error)) from error
        raise CorruptFile(path, f"not a readable Avro file ({error})") from error


class ContainerWriter:
    """Builds a container in memory from uncompressed blocks.

    ``name`` is the future file name, if known. ``size`` is the size so far.
    """

    def __init__(self, schema: AvroSchema, *, codec: str, level: int, name: str | None = None) -> None:
        self._compress = compressor(codec, level)
        self._names = [] if name is None else [name.encode()]
        metadata = {
            b"avro.schema": json.dumps(schema).encode(),
            b"avro.codec": codec.encode(),
            _MARK: _IS_NAMED if self._names else _IS_MARKED,
        }
        self.metadata = metadata
        self.blocks: list[tuple[int, bytes]] = []
        """Number of records and bytes (without the marker) of each block."""
        self.size = len(encode_header(metadata)) + SYNC_BYTES

    def add(self, count: int, block: bytes) -> None:
        """Append a block of ``count`` records.

        zstandard frames get a checksum.
        """
        packed = self._compress(block)
        self.blocks.append((count, block_prefix(count, packed) + packed))
        self.size += len(self.blocks[-1][1]) + SYNC_BYTES

    def content(self) -> bytes:
        """Return the file's bytes so far."""
        # The sync marker, after the header and each block, begins with a checksum of the file's name and all content.
        parts = [encode_header(self.metadata), *[block for _, block in self.blocks]]
        sync = _crc([*self._names, *parts]) + os.urandom(SYNC_BYTES - _CRC)
        return sync.join([*parts, b""])


def write_avro(schema: AvroSchema, blocks: Iterable[tuple[int, bytes]], *, codec: str, level: int, name: str | None = None) -> bytes:
    """Return a container of uncompressed ``blocks`` (record count, bytes).

    ``name`` is the future file name.
    """
    writer = ContainerWriter(schema, codec=codec, level=level, name=name)
    for count, block in blocks:
        writer.add(count, block)
    return writer.content()


def encode_records(schema: WriterSchema, records: Iterable[dict[str, Any]]) -> list[bytes]:
    """Encode each record, without a container."""
    encoded = []
    prepared = schema.prepared
    for record in records:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, prepared, record)
        encoded.append(buffer.getvalue())
    return encoded


def _decode_records(path: str, schema: WriterSchema, payload: bytes, count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` records that must fill ``payload`` exactly."""
    source = io.BytesIO(payload)
    try:
        prepared = schema.prepared
        for _ in range(count):
            record = fastavro.schemaless_reader(source, prepared)
            if record.pop(_BRANCH, 1) != 1:
                raise ValueError("a record is null")
            yield record
    except MemoryError as error:
        raise OutOfMemory(path, str(error)) from error
    except (*_MALFORMED, fastavro.schema.SchemaParseException) as error:
        raise CorruptFile(path, f"Avro record cannot be decoded ({type(error).__name__}: {error})") from error
    if source.tell() != len(payload):
        raise CorruptFile(path, f"{len(payload) - source.tell()} bytes are left after the last record")


def blocks_of(records: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Group encoded records into blocks of about ``avro_metadata_block_bytes``."""
    pending: list[bytes] = []
    size = 0
    for record in records:
        pending.append(record)
        size += len(record)
        if size >= thresholds.avro_metadata_block_bytes:
            yield len(pending), b"".join(pending)
            pending, size = [], 0
    if pending:
        yield len(pending), b"".join(pending)


def read_header(head: bytes) -> tuple[dict[bytes, bytes], int] | None:
    """Return a container's metadata and the offset of its blocks.

    ``head`` is the beginning of the file. None if it is too short.
    """
    source = BytesCursor(head)
    try:
        metadata, _ = source.header()
    except _MALFORMED:
        return None
    return metadata, source.position


def read_blocks(path: str, metadata: Mapping[bytes, bytes], blocks: Iterable[bytes]) -> Container:
    """Parse some blocks of the container at ``path``.

    Each block comes without its marker. Raises as ``read_container`` does.
    """
    with _decoding(path):
        decompress = decompressor(path, metadata.get(b"avro.codec", b"null").decode())
        payloads: list[bytes] = []
        count = total = 0
        stored = list(blocks)
        limits = _Limits.of(sum(map(len, stored)))
        for block in stored:
            source = BytesCursor(block)
            records = source.long()
            payloads.append(decompress(source.take(source.long()), limits.payload - total))
            limits.check_block(records, count, len(payloads[-1]))
            count, total = count + records, total + len(payloads[-1])
        return Container(path, _schema(metadata[b"avro.schema"]), count, b"".join(payloads))


def _read(path: str, data: bytes) -> Container:
    if not data.startswith(MAGIC):
        return _of_other_format(path, data)
    source = BytesCursor(data)
    metadata, sync = source.header()
    _verify_checksum(path, data, metadata.get(_MARK), sync)
    schema = _schema(metadata[b"avro.schema"])
    decompress = decompressor(path, metadata.get(b"avro.codec", b"null").decode())
    blocks: list[bytes] = []
    count = total = 0
    limits = _Limits.of(len(data))
    while not source.at_end:
        records, size = source.long(), source.long()
        block = decompress(source.take(size), limits.payload - total)
        if source.take(SYNC_BYTES) != sync:
            raise ValueError("a sync marker is wrong")
        limits.check_block(records, count, len(block))
        blocks.append(block)
        count, total = count + records, total + len(block)
    return Container(path, schema, count, b"".join(blocks))


@dataclass(frozen=True, slots=True)
class _Limits:
    """Most decoded bytes and records of a file.

    Names of files are random, so each record takes some bytes of any codec.
    """

    payload: int
    records: int

    @classmethod
    def of(cls, file_bytes: int) -> _Limits:
        """Return the limits of a file of ``file_bytes`` bytes."""
        return cls(min(MAX_PAYLOAD, max(_SMALL_PAYLOAD, _MOST_RATIO * file_bytes)), max(_FEW_RECORDS, file_bytes))

    def check_block(self, records: int, before: int, size: int) -> None:
        """Raise ``ValueError`` if a block of ``size`` bytes has too many records, after those ``before`` it."""
        if not 0 <= records <= size:
            raise ValueError(f"a block of {size} bytes claims {records} records")
        self.check_records(before + records)

    def check_records(self, records: int) -> None:
        """Raise ``ValueError`` for too many records."""
        if records > self.records:
            raise ValueError(f"more than {self.records} records")

    def check_payload(self, size: int) -> None:
        """Raise ``ValueError`` for too many decoded bytes."""
        if size > self.payload:
            raise ValueError(f"more than {self.payload} bytes of records")


def _verify_checksum(path: str, data: bytes, mark: bytes | None, sync: bytes) -> None:
    """Raise ``ValueError`` if the file's checksum is wrong.

    Files without a checksum pass. It covers content and file name, but not the directory, which may move.
    """
    names = {_IS_MARKED: [], _IS_NAMED: [PurePosixPath(path).name.encode()]}.get(mark) if mark is not None else None
    if names is not None and sync[:_CRC] != _crc([*names, *data.split(sync)]):
        raise ValueError("the checksum of its content and name is wrong")


def _of_other_format(path: str, data: bytes) -> Container:
    limits = _Limits.of(len(data))
    arrow_data = _arrow_batches(data, limits)
    if arrow_data is None:
        raise ValueError("the magic bytes belong to no manifest format")
    fields, batches = arrow_data
    millis = pa.schema([(field.name, _retype(field.type, pa.timestamp("ms"))) for field in fields])
    numbers = pa.schema([(field.name, _retype(field.type, pa.int64())) for field in fields])
    schema = _record("manifest", numbers)
    writer = WriterSchema.of(schema)
    encoded: list[bytes] = []
    size = 0
    for batch in batches:
        rows = pa.Table.from_batches([batch]).cast(millis, safe=False).cast(numbers)
        records = encode_records(writer, rows.to_pylist())
        size += sum(map(len, records))
        limits.check_payload(size)
        encoded += records
    return Container(path, writer, len(encoded), b"".join(encoded))


@lru_cache(maxsize=64)
def _schema(text: bytes) -> WriterSchema:
    """Parse and check a writer's schema.

    Cached, so that files with equal schemas share one object.
    """
    schema = _without_union(json.loads(text))
    _check_schema(schema)
    return WriterSchema.of(schema)


def _crc(parts: Iterable[bytes]) -> bytes:
    """Return the checksum of header and blocks, without sync markers."""
    # With the header: a damaged field name would look like another schema version.
    checksum = 0
    for part in parts:
        checksum = zlib.crc32(part, checksum)
    return checksum.to_bytes(_CRC, "big")


def _without_union(schema: AvroSchema) -> AvroSchema:
    """Return the record schema of a union with null."""
    # The branch number before each record becomes an additional first field.
    if not isinstance(schema, list) or len(schema) != 2 or schema[0] != "null" or not isinstance(schema[1], dict):
        return schema
    return schema[1] | {"fields": [{"name": _BRANCH, "type": "long"}, *schema[1].get("fields", ())]}


def _check_schema(schema: AvroSchema) -> None:
    """Raise ``ValueError`` for schemas whose values may outgrow their bytes.

    Examples are recursion and arrays of empty values.
    """
    if not isinstance(schema, dict) or schema.get("type") != "record" or not schema["fields"]:
        raise ValueError("the schema is not a record")
    _smallest(schema, {}, 0)


def _smallest(schema: AvroSchema, named: dict[str, int], depth: int) -> int:
    """Return the minimum encoded size of a value."""
    if depth > 16:
        raise ValueError("the schema is nested too deeply")
    if isinstance(schema, list):
        return 1 + min(_smallest(branch, named, depth + 1) for branch in schema)
    if isinstance(schema, str):
        sizes = {"null": 0, "boolean": 1, "int": 1, "long": 1, "float": 4, "double": 8, "bytes": 1, "string": 1}
        return sizes[schema] if schema in sizes else named[schema]
    match schema["type"]:
        case "record":
            size = sum(_smallest(field["type"], named, depth + 1) for field in schema["fields"])
            name = schema["name"]
            named[name] = named[name.rpartition(".")[2]] = size
            return size
        case "array":
            if _smallest(schema["items"], named, depth + 1) == 0:
                raise ValueError("the schema has an array of empty values")
            return 1
        case "map":
            _smallest(schema["values"], named, depth + 1)
            return 1
        case "fixed":
            return int(schema["size"])
        case "enum":
            return 1
        case kind:
            return _smallest(kind, named, depth + 1)


def _arrow_batches(data: bytes, limits: _Limits) -> tuple[Any, Iterator[Any]] | None:
    """Return schema and rows of an ORC or Parquet file.

    Returns None for bytes of another format. Raises ``ValueError`` for too many rows, ``OSError`` or ``pa.ArrowException`` for corrupt bytes.
    """
    if data.startswith(_ORC):
        from pyarrow import dataset, orc  # noqa: PLC0415  # few tables need it

        file = orc.ORCFile(io.BytesIO(data))
        limits.check_records(file.nrows)
        fragment = dataset.OrcFileFormat().make_fragment(pa.BufferReader(data))
        batches = fragment.to_batches(batch_size=_ROWS_AT_ONCE, batch_readahead=0, fragment_readahead=0, use_threads=False)
        return file.schema, batches
    if data.startswith(_PARQUET):
        from pyarrow import parquet as pq  # noqa: PLC0415  # as above

        parquet = pq.ParquetFile(io.BytesIO(data), page_checksum_verification=True)
        limits.check_records(parquet.metadata.num_rows)
        for group in map(parquet.metadata.row_group, range(parquet.metadata.num_row_groups)):
            columns = [group.column(number) for number in range(group.num_columns)]
            limits.check_payload(sum(max(column.total_uncompressed_size, column.num_values) for column in columns))
        return parquet.schema_arrow, parquet.iter_batches(_ROWS_AT_ONCE, use_threads=False)
    return None


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

"""Avro object containers, with every length checked before allocation.

fastavro decodes only what was checked here. Each block is decompressed under a limit. Sync markers and block sizes are checked, and
the writer's schema may have no type that decodes to many values from no bytes. Every failure is a ``CorruptFile`` that names the file.
Also reads files of engines before Paimon 0.9 (a union of null and the record), and manifests in ORC or Parquet.
"""

from __future__ import annotations

import io
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Any

import fastavro
import pyarrow as pa
from fastavro.schema import SchemaParseException

from fileindex.base.errors import CorruptFile
from fileindex.base.thresholds import thresholds
from manifest.avro.codecs import BROKEN_BLOCK, MAX_PAYLOAD, compressor, decompressor
from manifest.avro.other_formats import arrow_records
from manifest.avro.schemas import AvroSchema, layout, prepare_schema
from manifest.avro.wire import MAGIC, SYNC_BYTES, AvroCursor, block_prefix, encode_header
from manifest.io.errors import OutOfMemory
from manifest.io.storage_errors import is_out_of_memory

_MARK, _IS_MARKED, _IS_NAMED = b"sync.marker", b"crc32", b"crc32 of name and content"
_CRC = 4
_BRANCH = "_UNION_BRANCH"
_MALFORMED = (EOFError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError)
"""Errors of decoding corrupt bytes."""


@dataclass(frozen=True, slots=True)
class WriterSchema:
    """Schema of a file: its binary ``layout``, and fastavro's form."""

    layout: AvroSchema
    decoder: AvroSchema


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
        return list(decode_records(self.path, self.schema.decoder, self.payload, self.count))


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
    except (MemoryError, *_MALFORMED, *BROKEN_BLOCK, pa.ArrowException, OSError, SchemaParseException) as error:
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
        parts = [encode_header(self.metadata), *(block for _, block in self.blocks)]
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


def encode_records(schema: AvroSchema, records: Iterable[dict[str, Any]]) -> list[bytes]:
    """Encode each record, without a container.

    ``schema`` is a result of ``parsed``.
    """
    encoded = []
    for record in records:
        buffer = io.BytesIO()
        fastavro.schemaless_writer(buffer, schema, record)
        encoded.append(buffer.getvalue())
    return encoded


def decode_records(path: str, schema: AvroSchema, payload: bytes, count: int) -> Iterator[dict[str, Any]]:
    """Yield ``count`` records that must fill ``payload`` exactly.

    ``schema`` is a result of ``parsed``, checked by ``read_container``.
    """
    source = io.BytesIO(payload)
    try:
        for _ in range(count):
            record = fastavro.schemaless_reader(source, schema)
            if record.pop(_BRANCH, 1) != 1:
                raise ValueError("a record is null")
            yield record
    except MemoryError as error:
        raise OutOfMemory(path, str(error)) from error
    except _MALFORMED as error:
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
        if size >= thresholds().avro_metadata_block_bytes:
            yield len(pending), b"".join(pending)
            pending, size = [], 0
    if pending:
        yield len(pending), b"".join(pending)


def read_header(head: bytes) -> tuple[dict[bytes, bytes], int] | None:
    """Return a container's metadata and the offset of its blocks.

    ``head`` is the beginning of the file. None if it is too short.
    """
    source = _Source(head)
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
        found: list[bytes] = []
        count = total = 0
        for block in blocks:
            source = _Source(block)
            records = source.long()
            found.append(decompress(source.take(source.long()), MAX_PAYLOAD - total))
            count, total = count + records, total + len(found[-1])
        return Container(path, _schema(metadata[b"avro.schema"]), count, b"".join(found))


def _read(path: str, data: bytes) -> Container:
    if not data.startswith(MAGIC):
        return _of_other_format(path, data)
    source = _Source(data)
    metadata, sync = source.header()
    _verify_checksum(path, data, metadata.get(_MARK), sync)
    schema = _schema(metadata[b"avro.schema"])
    decompress = decompressor(path, metadata.get(b"avro.codec", b"null").decode())
    blocks: list[bytes] = []
    count = total = 0
    while not source.at_end:
        records, size = source.long(), source.long()
        block = decompress(source.take(size), MAX_PAYLOAD - total)
        if source.take(SYNC_BYTES) != sync:
            raise ValueError("a sync marker is wrong")
        if not 0 <= records <= len(block):
            raise ValueError(f"a block of {len(block)} bytes claims {records} records")
        blocks.append(block)
        count, total = count + records, total + len(block)
    return Container(path, schema, count, b"".join(blocks))


def _verify_checksum(path: str, data: bytes, mark: bytes | None, sync: bytes) -> None:
    """Raise ``ValueError`` if the file's checksum is wrong.

    Files without a checksum pass. It covers content and file name, but not the directory, which may move.
    """
    names = {_IS_MARKED: [], _IS_NAMED: [PurePosixPath(path).name.encode()]}.get(mark) if mark is not None else None
    if names is not None and sync[:_CRC] != _crc([*names, *data.split(sync)]):
        raise ValueError("the checksum of its content and name is wrong")


def _of_other_format(path: str, data: bytes) -> Container:
    found = arrow_records(data)
    if found is None:
        raise ValueError("the magic bytes belong to no manifest format")
    schema, records = found
    writer = WriterSchema(layout(schema), prepare_schema(schema))
    return Container(path, writer, len(records), b"".join(encode_records(writer.decoder, records)))


@lru_cache(maxsize=64)
def _schema(text: bytes) -> WriterSchema:
    """Parse and check a writer's schema.

    Cached, so that files with equal schemas share one object.
    """
    schema = _without_union(json.loads(text))
    _check_schema(schema)
    return WriterSchema(layout(schema), prepare_schema(schema))


def _crc(parts: Iterable[bytes]) -> bytes:
    """Return the checksum of header and blocks, without sync markers."""
    # With the header: a damaged field name would look like another schema version.
    found = 0
    for part in parts:
        found = zlib.crc32(part, found)
    return found.to_bytes(_CRC, "big")


def _without_union(schema: AvroSchema) -> AvroSchema:
    """Return the record schema of a union with null."""
    # The branch number before each record becomes an additional first field.
    if not isinstance(schema, list) or len(schema) != 2 or schema[0] != "null" or not isinstance(schema[1], dict):
        return schema
    return schema[1] | {"fields": [{"name": _BRANCH, "type": "long"}, *schema[1].get("fields", ())]}


class _Source(AvroCursor):
    """Cursor over bytes in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.position = 0

    @property
    def at_end(self) -> bool:
        return self.position >= len(self._data)

    def take(self, length: int) -> bytes:
        end = self.position + length
        if length < 0 or end > len(self._data):
            raise ValueError(f"{length} bytes at {self.position} exceed the file of {len(self._data)} bytes")
        piece = self._data[self.position : end]
        self.position = end
        return piece


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


__all__ = ["Container", "ContainerWriter", "blocks_of", "encode_records", "read_blocks", "read_container", "read_header", "write_avro"]

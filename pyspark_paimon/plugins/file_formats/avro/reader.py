"""Avro decoder: Arrow batches of a data file.

Avro has neither statistics nor checksums.

Locations and row counts of blocks are read from block headers alone. Content is decompressed up to a size limit.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.formats.whole_groups import WholeGroupFile
from lsm.parquet.expected_footer import ExpectedFooter, FooterMismatch
from lsm.parquet.footer import RowGroup
from lsm.parquet.page_index import ReadRange
from manifest.avro.codecs import BROKEN_BLOCK, MAX_PAYLOAD, decompressor
from manifest.avro.schemas import AvroSchema
from manifest.avro.wire import SYNC_BYTES, AvroCursor, block_prefix, encode_header
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.types.data_type import DataType
from paimon_base.lazy import cached_property
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.file_formats.avro.shapes import Shape, plain_schema, shape_of
from sparkexpr.values.arrays import Int64s
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, Kind

_DECIMAL_BYTES = 16
_SYNC = bytes(SYNC_BYTES)
_LONGEST_HEADER = 1 << 24
_IN_MEMORY = 200


def decode_blocks(shape: Shape, blocks: Sequence[tuple[int, bytes]], columns: Sequence[str], *, branch: bool) -> Any:
    """Decode ``columns`` of blocks into a record batch.

    Args:
        shape: Shape of the rows.
        blocks: Row count and bytes of each block.
        columns: Names in ``shape``, in any order.
        branch: Each row begins with a union branch number. It must be 1, because 0 is a null row.

    Raises:
        ValueError: The bytes are not rows of this shape, or a row is null.
    """
    import polars as pl  # noqa: PLC0415  # loading takes 0.2 s

    positions = [shape.names.index(name) for name in columns]
    encoded = plain_schema(shape, branch=branch).encode()
    parts = [encode_header({b"avro.schema": encoded}), _SYNC]
    for rows, data in blocks:
        parts += [block_prefix(rows, data), data, _SYNC]
    polars_columns = [*(["branch"] if branch else []), *(f"f{each}" for each in sorted({*positions}))]
    try:
        frame = pl.read_avro(io.BytesIO(b"".join(parts)), columns=polars_columns)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ValueError(str(error)) from error
    if branch and frame.height and (frame["branch"] != 1).any():
        raise ValueError("a row is null")
    table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
    arrays = [_restore(_one(table.column(f"f{each}")), shape.children[each]) for each in positions]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _one(column: Any) -> Any:
    chunks = column.chunks
    return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks) if chunks else pa.array([], column.type)


def _restore(array: Any, shape: Shape) -> Any:
    """Return ``array`` with the types of ``shape``."""
    match shape.kind:
        case "record":
            children = [_restore(array.field(index), child) for index, child in enumerate(shape.children)]
            named = [pa.field(name, child.type) for name, child in zip(shape.names, children, strict=True)]
            if not children:
                return array
            return pa.StructArray.from_arrays(children, fields=named, mask=_nulls(array))
        case "array":
            return pa.ListArray.from_arrays(
                _offsets(array), _restore(array.values, shape.children[0]), type=shape.arrow, mask=_nulls(array)
            )
        case "map":
            keys, values = (_restore(array.values.field(index), child) for index, child in enumerate(shape.children))
            return pa.MapArray.from_arrays(_offsets(array), keys, values, type=shape.arrow, mask=_nulls(array))
    if pa.types.is_decimal(shape.arrow):
        return _decimals(array, shape.arrow)
    return array if array.type == shape.arrow else array.cast(shape.arrow)


def _offsets(array: Any) -> Any:
    return pa.array(array.offsets.to_numpy().astype(np.int32, casting="unsafe")) if array.offsets[-1].as_py() < 1 << 31 else _too_long()


def _too_long() -> Any:
    raise ValueError("the arrays of a block have more than 2^31 items")


def _nulls(array: Any) -> Any:
    return array.is_null() if array.null_count else None


def _decimals(array: Any, type_: Any) -> Any:
    """Convert big-endian numbers of any length to decimals."""
    array = array.cast(pa.large_binary())
    count = len(array)
    _, offsets, data = array.buffers()
    bounds: Int64s = np.frombuffer(offsets, np.int64)[array.offset : array.offset + count + 1]
    start, end = bounds[:-1], bounds[1:]
    length = end - start
    if count and int(length.max()) > _DECIMAL_BYTES:
        raise ValueError("a decimal is longer than 16 bytes")
    content = np.frombuffer(data, np.uint8) if data is not None and len(data) else np.zeros(1, np.uint8)
    filled = length > 0
    sign = np.where(filled & (content[np.where(filled, start, 0)] > 0x7F), 0xFF, 0).astype(np.uint8)
    words = np.empty((count, _DECIMAL_BYTES), np.uint8)
    for byte in range(_DECIMAL_BYTES):
        has_byte = byte < length
        words[:, byte] = np.where(has_byte, content[np.where(has_byte, end - 1 - byte, 0)], sign)
    valid = pa.array(~array.is_null().to_numpy(zero_copy_only=False)).buffers()[1] if array.null_count else None
    return pa.Array.from_buffers(type_, count, [valid, pa.py_buffer(words.tobytes())])


_INTEGERS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT})
_KINDS: Mapping[Kind, str] = {
    Kind.BOOLEAN: "boolean",
    **dict.fromkeys((*_INTEGERS, Kind.DATE, Kind.TIME), "int"),
    **dict.fromkeys((Kind.BIGINT, *TIMESTAMPS), "long"),
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    **dict.fromkeys(STRINGS, "string"),
    **dict.fromkeys((*BINARIES, Kind.DECIMAL), "bytes"),
    **dict.fromkeys((Kind.ARRAY, Kind.VECTOR), "array"),
    **dict.fromkeys((Kind.MAP, Kind.MULTISET), "map"),
    Kind.ROW: "record",
}


class AvroDataFile(WholeGroupFile):
    """An open Avro data file (``lsm.formats.open_data_file``).

    Args:
        file_io: File system of the file.
        path: Path of the file.
        expected: Expected properties from the metadata. None: unknown.
        files: Cache of block locations. None: read them from the file.

    Raises:
        CorruptFile: The file is missing, is not an Avro file, or does not match its metadata.
    """

    FORMAT = "Avro"

    def __init__(self, file_io: FileIO, path: str, expected: ExpectedFooter | None = None, files: FileCache | None = None) -> None:
        super().__init__(file_io, path)
        try:
            with self.decoding():
                self._blocks = self._read_blocks() if files is None else files.load(file_io, path, "blocks", self._read_blocks, _weight)
                self._shape, self._branch = shape_of(self._blocks.schema)
                if expected is not None and expected.key not in self._blocks.checked_footers:
                    _check(expected, self._blocks, self._shape, int(self.source.size()))
                    self._blocks.checked_footers.add(expected.key)
        except UnsupportedTable as error:
            self.close()
            raise UnsupportedTable(f"{path}: {error}") from error
        except BaseException:
            self.close()
            raise

    def _read_blocks(self) -> AvroBlocks:
        return AvroBlocks.read(self.read_range, int(self.source.size()))

    @cached_property
    def schema(self) -> Any:
        """See ``OpenDataFile``."""
        return pa.schema(list(self._shape.arrow))

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """Runs of adjacent blocks."""
        return self._blocks.row_groups

    def compressed_size(self, columns: Sequence[str], groups: Sequence[RowGroup]) -> int:
        """See ``OpenDataFile``. Always the size of whole rows."""
        return sum(group.size for group in groups) if columns else 0

    def decode_group(self, columns: Sequence[str], group: RowGroup) -> Any:
        """See ``WholeGroupFile``."""
        blocks = self._blocks.content(self.path, self.read_range, group.index)
        return decode_blocks(self._shape, blocks, columns, branch=self._branch)


def _weight(blocks: AvroBlocks) -> int:
    return blocks.weight


def _check(expected: ExpectedFooter, blocks: AvroBlocks, shape: Shape, size: int) -> None:
    """Raise ``FooterMismatch`` if the file does not match its metadata."""
    expected.check_size(sum(group.num_rows for group in blocks.row_groups), size)
    there = dict(zip(shape.names, shape.children, strict=True))
    for column in expected.columns(there):
        if not _fits(there[column.name], column.type):
            raise FooterMismatch(f"column '{column.name}' is stored as another type than {column.type}")


def _fits(shape: Shape, type_: DataType) -> bool:
    if type_.kind not in _KINDS:
        return True  # reading the column reports that its type is not supported
    if shape.kind != _KINDS[type_.kind]:
        return False
    match type_.kind:
        case Kind.DECIMAL:
            return bool(shape.arrow == pa.decimal128(type_.precision, type_.scale))
        case Kind.ARRAY | Kind.VECTOR | Kind.MULTISET:
            return _fits(shape.children[0], type_.part("element"))
        case Kind.MAP:
            return all(_fits(child, type_.part(part)) for child, part in zip(shape.children, ("key", "value"), strict=True))
        case Kind.ROW:
            there = dict(zip(shape.names, shape.children, strict=True))
            return all(field.name in there and _fits(there[field.name], field.type) for field in type_.fields)
        case _:
            return True


@dataclass(frozen=True, slots=True)
class Block:
    """Location, compressed size and row count of a block."""

    offset: int
    size: int
    rows: int


@dataclass(frozen=True)
class AvroBlocks:
    """Schema, codec, blocks and row groups of an Avro file.

    ``groups`` has the blocks of each row group.
    """

    schema: AvroSchema
    codec: str
    groups: tuple[tuple[Block, ...], ...]
    row_groups: tuple[RowGroup, ...]
    checked_footers: set[object] = field(default_factory=set, repr=False)

    @classmethod
    def read(cls, read_range: ReadRange, size: int) -> AvroBlocks:
        """Read the block headers of a file of ``size`` bytes.

        Raises:
            ValueError, LookupError: The file is not a complete Avro file.
        """
        source = _Window(read_range, size)
        metadata, sync = source.header()
        groups: list[tuple[Block, ...]] = []
        waiting: list[Block] = []
        while source.position < size:
            rows, length = source.long(), source.long()
            waiting.append(Block(source.position, length, rows))
            if rows < 0 or length < 0:
                raise ValueError(f"a block header has {rows} rows in {length} bytes")
            source.position += length
            if source.take(SYNC_BYTES) != sync:
                raise ValueError("a sync marker is wrong")
            if sum(block.size for block in waiting) >= thresholds.avro_group_bytes:
                groups.append(tuple(waiting))
                waiting = []
        groups += [tuple(waiting)] if waiting else []
        codec = metadata.get(b"avro.codec", b"null").decode()
        return cls(json.loads(metadata[b"avro.schema"]), codec, tuple(groups), _row_groups(groups))

    @property
    def weight(self) -> int:
        """Approximate bytes in memory."""
        return _IN_MEMORY * sum(len(blocks) for blocks in self.groups) + len(str(self.schema))

    def content(self, path: str, read_range: ReadRange, group: int) -> list[tuple[int, bytes]]:
        """Return row counts and bytes of a group's blocks.

        Raises:
            ValueError: A block is damaged.
            UnsupportedTable: The codec is not supported.
        """
        decompress = decompressor(path, self.codec)
        blocks, left = [], MAX_PAYLOAD
        for block in self.groups[group]:
            try:
                data = decompress(read_range(block.offset, block.size), left)
            except BROKEN_BLOCK as error:
                raise ValueError(str(error)) from error
            left -= len(data)
            blocks.append((block.rows, data))
        return blocks


def _row_groups(groups: Sequence[Sequence[Block]]) -> tuple[RowGroup, ...]:
    row_groups: list[RowGroup] = []
    first_row = 0
    for index, blocks in enumerate(groups):
        rows = sum(block.rows for block in blocks)
        row_groups.append(RowGroup(index, first_row, rows, sum(block.size for block in blocks)))
        first_row += rows
    return tuple(row_groups)


class _Window(AvroCursor):
    """Cursor over a file that is read in pieces."""

    def __init__(self, read_range: ReadRange, size: int) -> None:
        self.position = 0
        self._read_range = read_range
        self._size = size
        self._start = 0
        self._held = b""

    def take(self, length: int) -> bytes:
        if not 0 <= length <= min(_LONGEST_HEADER, self._size - self.position):
            raise ValueError(f"{length} bytes at {self.position} exceed the file of {self._size} bytes")
        begin = self.position - self._start
        if begin < 0 or begin + length > len(self._held):
            self._start, begin = self.position, 0
            self._held = self._read_range(self._start, min(max(length, thresholds.avro_window_bytes), self._size - self._start))
        self.position += length
        return self._held[begin : begin + length]

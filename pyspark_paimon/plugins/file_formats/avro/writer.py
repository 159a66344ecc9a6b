"""Writer of Avro data files, compatible with Paimon's engines.

Each column is encoded separately, in numpy. Then the columns are interleaved to rows.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.keys.encoding import one_array
from lsm.parquet.write.writer import fit_to_schema
from manifest.avro.codecs import compressor, data_codec_name
from manifest.avro.schemas import AvroSchema
from manifest.avro.wire import SYNC_BYTES, block_prefix, encode_header
from manifest.io.errors import UnsupportedTable
from manifest.io.file_io import FileIO
from manifest.io.output_file import OutputFile
from manifest.io.storage_errors import storage_errors
from manifest.types.data_type import DataField, DataType
from paimon_base.hidden_nulls import entry_lists
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.file_formats.avro.shapes import Shape, shape_of
from sparkexpr.values.arrays import AnyArray, Int64s
from sparkexpr.values.column_type import BINARIES, STRINGS, TIMESTAMPS, Kind

_NAME = "org.apache.paimon.avro.generated.record"
_MILLIS, _MICROS = 3, 6
_INTS = frozenset({Kind.TINYINT, Kind.SMALLINT, Kind.INT})
_MOST_BYTES = 10
_DECIMAL_BYTES = 16


class AvroFileWriter:
    """Writer of one Avro file.

    Call ``write`` any number of times, then ``close`` or ``abort``.

    Args:
        file_io: File system of the file.
        path: Path of the file. It must not exist.
        fields: Columns.
        schema: Arrow schema of the columns.
        compression: Value of ``file.compression``.
        level: Compression level of zstandard.

    Raises:
        UnsupportedOption: Avro does not have this codec.
        UnsupportedTable: Avro does not have the type of a column.
    """

    def __init__(self, file_io: FileIO, path: str, fields: Sequence[DataField], schema: Any, *, compression: str, level: int) -> None:
        self.path = path
        self.row_count = 0
        self._output = OutputFile(file_io, path)
        self._fitted = schema
        self._avro = avro_schema(fields)
        self._shape, _ = shape_of(self._avro)
        self._codec = data_codec_name(compression)
        self._compress = compressor(self._codec, level)
        self._sync = os.urandom(SYNC_BYTES)

    def write(self, rows: Any) -> None:
        """Append a table with the schema's columns, by name."""
        if not rows.num_rows:
            return
        table = fit_to_schema(rows, self._fitted, self.path)
        arrays = [
            _to_file_types(one_array(table.column(name)), child.arrow)
            for name, child in zip(self._shape.names, self._shape.children, strict=True)
        ]
        encoded = interleave([encode(array, child) for array, child in zip(arrays, self._shape.children, strict=True)])
        with storage_errors(self.path):
            sink = self._open_sink()
            for count, data in _blocks(encoded):
                content = self._compress(data)
                sink.write(block_prefix(count, content) + content + self._sync)
        self.row_count += rows.num_rows

    @property
    def bytes_written(self) -> int:
        """Bytes of the blocks so far."""
        return self._output.size

    def end_row_group(self) -> None:
        """Do nothing: ``write`` writes blocks at once."""

    def close(self) -> tuple[None, int]:
        """Finish the file and make it durable.

        Returns None instead of a footer, and the file size in bytes.
        """
        with storage_errors(self.path):
            self._open_sink()
        return None, self._output.finish()

    def abort(self) -> None:
        """Delete the file. Never raises."""
        self._output.abort()

    def _open_sink(self) -> Any:
        """Return the sink, after writing the header once."""
        if self._output.sink is None:
            metadata = {b"avro.schema": json.dumps(self._avro).encode(), b"avro.codec": self._codec.encode()}
            self._output.open().write(encode_header(metadata) + self._sync)
        return self._output.sink


def avro_schema(fields: Sequence[DataField]) -> AvroSchema:
    """Return the Avro schema of a file with columns ``fields``.

    Raises:
        UnsupportedTable: Avro does not have the type of a column; the message names it.
    """
    return _record(fields, _NAME, set())


def _record(fields: Sequence[DataField], name: str, used_names: set[str]) -> AvroSchema:
    while name in used_names:
        name += "_"
    used_names.add(name)
    members = []
    for field in fields:
        try:
            type_ = _type(field.type, f"{name}_{field.name}", used_names)
        except UnsupportedTable as error:
            raise UnsupportedTable(f"column '{field.name}': {error}") from error
        members.append({"name": field.name, "type": type_} | ({"default": None} if field.type.nullable else {}))
    return {"type": "record", "name": name, "fields": members}


def _type(type_: DataType, name: str, used_names: set[str]) -> AvroSchema:
    plain = _not_null(type_, name, used_names)
    return ["null", plain] if type_.nullable else plain


def _not_null(type_: DataType, name: str, used_names: set[str]) -> AvroSchema:
    kind = type_.kind
    simple = {Kind.BOOLEAN: "boolean", Kind.BIGINT: "long", Kind.FLOAT: "float", Kind.DOUBLE: "double"}
    simple |= dict.fromkeys(_INTS, "int") | dict.fromkeys(STRINGS, "string") | dict.fromkeys(BINARIES, "bytes")
    if kind in simple:
        return simple[kind]
    if kind is Kind.DATE:
        return {"type": "int", "logicalType": "date"}
    if kind is Kind.TIME and type_.precision <= _MILLIS:
        return {"type": "int", "logicalType": "time-millis"}
    if kind in TIMESTAMPS and type_.precision <= _MICROS:
        unit = "millis" if type_.precision <= _MILLIS else "micros"
        return {"type": "long", "logicalType": f"{'local-' if kind is Kind.TIMESTAMP_LTZ else ''}timestamp-{unit}"}
    if kind is Kind.DECIMAL:
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if kind is Kind.ROW:
        return _record(type_.fields, name, used_names)
    if kind in {Kind.ARRAY, Kind.VECTOR}:
        return {"type": "array", "items": _type(type_.part("element"), name, used_names)}
    if kind in {Kind.MAP, Kind.MULTISET}:
        key = type_.part("key" if kind is Kind.MAP else "element").with_nullable(nullable=False)
        value = type_.part("value") if kind is Kind.MAP else DataType(Kind.INT, nullable=False)
        if key.kind in STRINGS:
            return {"type": "map", "values": _type(value, name, used_names)}
        entry = _record((DataField(0, "key", key), DataField(1, "value", value)), name, used_names)
        return {"type": "array", "logicalType": "map", "items": entry}
    raise UnsupportedTable(f"{type_} cannot be stored in Avro files; choose another 'file.format'")


def _to_file_types(array: Any, type_: Any) -> Any:
    """Return ``array`` with the file's types.

    Small integers are widened, and times have the unit of their precision.
    """
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_map(type_):
        nulls = array.is_null() if array.null_count else None
        keys, items = _to_file_types(array.keys, type_.key_type), _to_file_types(array.items, type_.item_type)
        return pa.MapArray.from_arrays(pa.array(array.offsets.to_numpy()), keys, items, mask=nulls)
    if pa.types.is_struct(type_):
        nulls = array.is_null() if array.null_count else None
        children = [_to_file_types(array.field(index), type_.field(index).type) for index in range(type_.num_fields)]
        return pa.StructArray.from_arrays(children, fields=[field.with_nullable(True) for field in type_], mask=nulls)
    if pa.types.is_list(type_):
        nulls = array.is_null() if array.null_count else None
        values = array.cast(pa.list_(array.type.value_type)) if pa.types.is_fixed_size_list(array.type) else array
        return pa.ListArray.from_arrays(pa.array(values.offsets.to_numpy()), _to_file_types(values.values, type_.value_type), mask=nulls)
    if pa.types.is_timestamp(type_):
        return array.cast(pa.timestamp(type_.unit, array.type.tz))
    return array if array.type == type_ else array.cast(type_)


def _blocks(encoded: Encoded) -> list[tuple[int, bytes]]:
    """Return row count and bytes of every block."""
    ends = np.cumsum(encoded.lengths)
    cuts = np.unique(np.concatenate([np.flatnonzero(np.diff(ends // thresholds.avro_block_bytes)) + 1, [len(ends)]]))
    blocks, row, start = [], 0, 0
    for cut in cuts.tolist():
        end = int(ends[cut - 1])
        blocks.append((cut - row, encoded.data[start:end].tobytes()))
        row, start = cut, end
    return blocks


@dataclass(frozen=True, slots=True)
class Encoded:
    """Encoded values: their bytes, and the length of each."""

    data: AnyArray
    lengths: Int64s

    def spread(self, present: AnyArray) -> Encoded:
        """Return the values at ``present`` places, empty values elsewhere."""
        lengths = np.zeros(len(present), np.int64)
        lengths[present] = self.lengths
        return Encoded(self.data, lengths)


def encode(array: Any, shape: Shape) -> Encoded:
    """Encode an array with values of ``shape``.

    It must have neither chunks nor dictionaries.

    >>> encode(pa.array([1, None, -1]), Shape("long", pa.int64(), nullable=True)).data.tolist()
    [2, 2, 0, 2, 1]
    """
    if not shape.nullable:
        return _values(array, shape)
    present = np.asarray(array.is_valid().to_numpy(zero_copy_only=False))
    branch = (present != shape.null_last).astype(np.uint8) * 2
    filled = array if array.null_count == 0 else array.drop_null()
    return interleave([Encoded(branch, np.ones(len(array), np.int64)), _values(filled, shape).spread(present)])


def interleave(parts: Sequence[Encoded]) -> Encoded:
    """Interleave parts, value by value.

    All first values come first, then all second ones, and so on.
    """
    lengths: Int64s = np.sum([part.lengths for part in parts], axis=0, dtype=np.int64)
    data = np.empty(int(lengths.sum()), np.uint8)
    offsets = np.cumsum(lengths) - lengths
    for part in parts:
        source = np.cumsum(part.lengths) - part.lengths
        data[np.repeat(offsets - source, part.lengths) + np.arange(len(part.data))] = part.data
        offsets = offsets + part.lengths
    return Encoded(data, lengths)


def _values(array: Any, shape: Shape) -> Encoded:
    match shape.kind:
        case "boolean":
            return Encoded(array.to_numpy(zero_copy_only=False).astype(np.uint8), np.ones(len(array), np.int64))
        case "int" | "long":
            return _varints(_integers(array))
        case "float" | "double":
            wide = 4 if shape.kind == "float" else 8
            return Encoded(np.frombuffer(array.to_numpy(zero_copy_only=False).tobytes(), np.uint8), np.full(len(array), wide, np.int64))
        case "string" | "bytes":
            content = _decimal_bytes(array) if pa.types.is_decimal(shape.arrow) else _content(array)
            return interleave([_varints(content.lengths), content])
        case "record":
            return interleave([encode(array.field(index), child) for index, child in enumerate(shape.children)])
        case "array":
            return _items(array, encode(array.flatten(), shape.children[0]))
        case _:
            entries = entry_lists(array)
            return _items(entries, _values(entries.flatten(), shape.entries))


def _items(array: Any, items: Encoded) -> Encoded:
    """Encode each list as one block and the end.

    An empty list is the end only.
    """
    counts = np.asarray(array.value_lengths().to_numpy(zero_copy_only=False), np.int64)
    ends = np.concatenate([[0], np.cumsum(items.lengths)])
    last = np.cumsum(counts)
    sizes = ends[last] - ends[last - counts]
    filled = counts > 0
    end = Encoded(np.zeros(len(counts), np.uint8), np.ones(len(counts), np.int64))
    return interleave([_varints(counts[filled]).spread(filled), Encoded(items.data, sizes), end])


def _integers(array: Any) -> Int64s:
    """Return dates, times and numbers as integers."""
    wide = pa.types.is_int64(array.type) or pa.types.is_timestamp(array.type)
    plain = array.view(pa.int64()) if wide else array.view(pa.int32()) if array.type.bit_width == 32 else array
    return np.asarray(plain.to_numpy(zero_copy_only=False), np.int64)


def _varints(values: Int64s) -> Encoded:
    zigzag = ((values << 1) ^ (values >> 63)).astype(np.uint64)
    lengths = np.ones(len(values), np.int64)
    for more in range(1, _MOST_BYTES):
        lengths += zigzag >= np.uint64(1 << (7 * more))
    offsets = np.cumsum(lengths) - lengths
    data = np.empty(int(lengths.sum()), np.uint8)
    for byte_index in range(int(lengths.max(initial=0))):
        rows = np.flatnonzero(lengths > byte_index)
        byte = (zigzag[rows] >> np.uint64(7 * byte_index)) & np.uint64(0x7F)
        data[offsets[rows] + byte_index] = byte | np.where(lengths[rows] > byte_index + 1, np.uint64(0x80), np.uint64(0))
    return Encoded(data, lengths)


def _content(array: Any) -> Encoded:
    array = array.cast(pa.large_binary())
    _, offsets, data = array.buffers()
    bounds = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1] if len(array) else np.zeros(1, np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None and len(data) else np.zeros(0, np.uint8)
    return Encoded(content[bounds[0] : bounds[-1]], np.diff(bounds))


def _decimal_bytes(array: Any) -> Encoded:
    """Return decimals as big-endian numbers of minimal length."""
    data = array.buffers()[1]
    words = np.frombuffer(data, np.uint8)[array.offset * _DECIMAL_BYTES :][: len(array) * _DECIMAL_BYTES].reshape(-1, _DECIMAL_BYTES)[
        :, ::-1
    ]
    sign = np.where(words[:, 0] > 0x7F, 0xFF, 0).astype(np.uint8)
    needless = np.zeros((len(array), _DECIMAL_BYTES), np.bool_)
    needless[:, :-1] = (words[:, :-1] == sign[:, None]) & ((words[:, 1:] > 0x7F) == (sign > 0)[:, None])
    significant = ~np.logical_and.accumulate(needless, axis=1)
    return Encoded(words[significant], significant.sum(axis=1))

"""Writer of ORC data files, compatible with Paimon's engines.

Covers types, attributes with field ids, and codecs.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from lsm.arrow.encode_errors import encode_errors, failing_column
from lsm.parquet.write.writer import fit_to_schema
from manifest.io.errors import CastFailed
from manifest.io.file_io import FileIO
from manifest.io.output_file import OutputFile
from manifest.io.storage_errors import storage_errors
from manifest.types.data_type import DataField
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.file_formats.orc.chars import without_blanks

_CODECS = {"none": "uncompressed", "zstd": "zstd", "lz4": "lz4", "snappy": "snappy", "gzip": "zlib", "zlib": "zlib"}
_FIRST_GUESS = 0.3
_SECOND = 10**9
_FIELD_ID, _PARQUETS_ID = "paimon.id", b"PARQUET:field_id"


class OrcFileWriter:
    """Writer of one ORC file.

    Call ``write`` any number of times, then ``close`` or ``abort``.

    Args:
        file_io: File system of the file.
        path: Path of the file. It must not exist.
        fields: Columns.
        schema: Arrow schema with field ids (``lsm.schema.parquet_schema.file_schema``).
        compression: Value of ``file.compression``.
        stripe_bytes: Approximate bytes of a stripe.
    """

    def __init__(
        self,
        file_io: FileIO,
        path: str,
        fields: Sequence[DataField],
        schema: Any,
        *,
        compression: str,
        stripe_bytes: int | None = None,
    ) -> None:
        self.path = path
        self.row_count = 0
        self._output = OutputFile(file_io, path)
        self._fields = fields
        self._fitted = schema
        self._schema = pa.schema([_orc_field(field) for field in schema])
        self._codec = _CODECS[compression]
        self._stripe_bytes = stripe_bytes or thresholds.orc_stripe_bytes
        self._writer: Any = None
        self._sink: Any = None
        self._flushed = 0
        self._waiting = 0

    def write(self, rows: Any) -> None:
        """Append a table with the schema's columns, by name.

        Raises:
            CastFailed: ORC cannot store a timestamp.
        """
        if not rows.num_rows:
            return
        table = fit_to_schema(rows, self._fitted, self.path)
        columns = []
        for column, field, table_field in zip(table.columns, self._schema, self._fields, strict=True):
            with encode_errors(self.path, field.name):
                columns.append(without_blanks(_plain(column, field.type, field.name), table_field.type))
        stored = pa.Table.from_arrays(columns, schema=self._schema)
        with storage_errors(self.path), encode_errors(self.path, culprit=lambda: failing_column(stored, _encode_alone)):
            self._open()
            self._writer.write(stored)
            self._sink.check()
            self.row_count += rows.num_rows
            self._waiting += table.nbytes
            if self._output.size != self._flushed:
                self._flushed, self._waiting = self._output.size, 0

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it were closed now.

        Stripes on storage, plus pending rows at a typical compression ratio.
        """
        return self._flushed + int(self._waiting * _FIRST_GUESS)

    def end_row_group(self) -> None:
        """Do nothing: the encoder ends stripes."""

    def close(self) -> tuple[None, int]:
        """Finish the file and make it durable.

        Returns None instead of a footer, and the file size in bytes.
        """
        with storage_errors(self.path), encode_errors(self.path):
            self._open()
            self._writer.close()
            self._sink.check()
        return None, self._output.finish()

    def abort(self) -> None:
        """Delete the file. Never raises."""
        if self._writer is not None:
            self._sink.discard()
            with suppress(Exception):
                self._writer.close()
        self._output.abort()

    def _open(self) -> None:
        if self._writer is None:
            from pyarrow import orc  # noqa: PLC0415  # few tables need it

            self._sink = _EncoderSink(self._output.open())
            sink = pa.PythonFile(self._sink, mode="w")
            self._writer = orc.ORCWriter(sink, compression=self._codec, stripe_size=self._stripe_bytes)


class _EncoderSink:
    """A sink that never raises into the encoder.

    An exception in the encoder ends the process. After the first error, or ``discard``, bytes are ignored. ``check`` raises the error.
    """

    closed = False

    def __init__(self, sink: Any) -> None:
        self._sink: Any = sink
        self._size = 0
        self._error: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Pass bytes on."""
        if self._sink is not None:
            try:
                self._sink.write(data)
            except BaseException as error:  # noqa: BLE001 -- interrupts too; ``check`` raises it
                self._error, self._sink = error, None
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self._size

    def flush(self) -> None:
        """Do nothing: no bytes are buffered."""

    def close(self) -> None:
        """Do nothing: the owner closes the underlying sink."""

    def discard(self) -> None:
        """Ignore all further bytes."""
        self._sink = None

    def check(self) -> None:
        """Raise the error of a failed write."""
        if self._error is not None:
            raise self._error


def _encode_alone(rows: Any) -> None:
    from pyarrow import orc  # noqa: PLC0415  # as above

    orc.write_table(rows, pa.BufferOutputStream())


def _orc_field(field: Any) -> Any:
    """Return a field in ORC's form.

    TIME is an integer, and the field id an attribute.
    """
    ids = field.metadata or {}
    metadata = {_FIELD_ID: ids[_PARQUETS_ID]} if _PARQUETS_ID in ids else None
    return pa.field(field.name, _orc_type(field.type), nullable=True, metadata=metadata)


def _orc_type(type_: Any) -> Any:
    if pa.types.is_time(type_):
        return pa.int32()
    if pa.types.is_timestamp(type_):
        return pa.timestamp("ns", type_.tz)
    if pa.types.is_struct(type_):
        return pa.struct([_orc_field(field) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(_orc_type(type_.key_type), _orc_type(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_fixed_size_list(type_):
        return pa.list_(_orc_type(type_.value_type))
    return type_


def _plain(column: Any, type_: Any, name: str) -> Any:
    """Return a column as ``type_``, after a check of timestamps."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):  # copy: the encoder ignores the offsets of slices in nested columns
        column = pa.chunked_array([chunk.take(pa.array(np.arange(len(chunk)))) for chunk in column.chunks], column.type)
    elif column.type == type_ and not _has_times(type_):
        return column
    try:
        plain = pa.chunked_array([_cast(chunk, type_) for chunk in column.chunks], type_)
    except pa.ArrowInvalid as error:
        raise CastFailed(f"column '{name}' has a value that ORC cannot store ({error})") from error
    for chunk in plain.chunks:
        _check_times(chunk, name)
    return plain


def _cast(array: Any, type_: Any) -> Any:
    return array.cast(pa.int32()) if pa.types.is_time(array.type) and pa.types.is_int32(type_) else _cast_nested(array, type_)


def _cast_nested(array: Any, type_: Any) -> Any:
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(type_):
        # flatten: the encoder stores the values below null ROWs in a ROW, which shifts all later values
        children = [_cast(child, type_.field(index).type) for index, child in enumerate(array.flatten())]
        return pa.StructArray.from_arrays(children, fields=list(type_), mask=nulls)
    if pa.types.is_map(type_):
        keys, items = _cast(array.keys, type_.key_type), _cast(array.items, type_.item_type)
        return pa.MapArray.from_arrays(pa.array(array.offsets.to_numpy()), keys, items, type=type_, mask=nulls)
    if pa.types.is_list(type_):
        values = array.cast(pa.list_(array.type.value_type))
        return pa.ListArray.from_arrays(pa.array(values.offsets.to_numpy()), _cast(values.values, type_.value_type), type=type_, mask=nulls)
    return array.cast(type_)


def _has_times(type_: Any) -> bool:
    children = [type_.field(index).type for index in range(type_.num_fields)]
    return pa.types.is_timestamp(type_) or any(_has_times(child) for child in children)


def _check_times(array: Any, name: str) -> None:
    """Raise ``CastFailed`` for fractions of seconds before 1970."""
    if pa.types.is_timestamp(array.type):
        # The encoder writes such fractions with a sign, which no other reader accepts.
        nanos = array.view(pa.int64()).drop_null().to_numpy()
        if bool(((nanos < 0) & (nanos % _SECOND != 0)).any()):
            raise CastFailed(f"column '{name}' has a fraction of a second before 1970, which cannot be written to ORC")
    elif pa.types.is_struct(array.type):
        for index in range(array.type.num_fields):
            _check_times(array.field(index), name)
    elif pa.types.is_map(array.type):
        _check_times(array.keys, name)
        _check_times(array.items, name)
    elif pa.types.is_list(array.type):
        _check_times(array.flatten(), name)

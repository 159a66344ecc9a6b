"""Parquet encoder: Arrow tables to one durable data file.

Call ``write`` any number of times, then ``close`` or ``abort``. Rows are collected into row groups; the first one creates
the file on storage.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from inspect import signature
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lsm.arrow.encode_errors import encode_errors, failing_column
from lsm.arrow.text_form import DICTIONARY, concat_tables
from lsm.parquet.footer_fixup import FooterSink, as_integers, columns_with_nan
from lsm.parquet.write.column_layout import column_layout, leaf_codecs, with_every_codec
from manifest.io.file_io import FileIO
from manifest.io.output_file import OutputFile
from manifest.io.storage_errors import storage_errors
from manifest.options.parquet_options import ParquetOptions
from paimon_base.hidden_nulls import cast_nested
from paimon_base.thresholds import thresholds

_FIRST_GUESS = 0.5
_SETTINGS = frozenset(signature(pq.ParquetWriter.__init__).parameters)
"""Arguments of the installed Arrow's encoder."""


@cache
def _takes_blooms() -> bool:
    """Return whether the installed Arrow can write Bloom filters."""
    # Before Arrow 26 the signature does not show it.
    try:
        pq.ParquetWriter(
            pa.BufferOutputStream(), pa.schema([("a", pa.int64())]), bloom_filter_options={"a": {"ndv": 1, "fpp": 0.1}}
        ).close()
    except TypeError:
        return False
    return True


class ParquetFileWriter:
    """Writer of one Parquet file, compatible with Paimon's writer.

    Version 1 pages, page index, no Arrow schema inside.

    Args:
        path: Created exclusively (``FileExistsError``).
        schema: Arrow schema of the file, with field ids (``lsm.schema.parquet_schema``).
        compression: Paimon's name of the codec (``file.compression``).
        by_sample: Omit the codec, or store numbers as differences, where a sample shows a saving.
        level: Compression level, used for zstd.
        int96: Store timestamps finer than microseconds as INT96.
        row_group_bytes: In-memory size at which a row group is closed. None: ``Thresholds.group_bytes``.
        plain: Columns with mostly distinct values, for which no dictionary is tried.
        options: Table options of pages, dictionaries and Bloom filters.
        table: Cache key for sampled column layouts (the table path). None: sample this file.
    """

    def __init__(
        self,
        file_io: FileIO,
        path: str,
        schema: Any,
        *,
        compression: str = "zstd",
        by_sample: bool = True,
        level: int = 1,
        int96: bool = False,
        row_group_bytes: int | None = None,
        plain: frozenset[str] = frozenset(),
        options: ParquetOptions | None = None,
        table: str | None = None,
    ) -> None:
        self.path = path
        self.row_count = 0
        self._output = OutputFile(file_io, path)
        self._schema = schema
        self._codec = compression.lower()
        self._level = level if self._codec == "zstd" else None
        self._by_sample = by_sample
        self._table = table
        self._int96 = int96
        self._group_bytes = row_group_bytes or thresholds.group_bytes
        self._options = options or ParquetOptions()
        self._plain = plain | self._options.without_dictionary(schema.names)
        self._groups = 0
        self._pending: list[Any] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._encoded_from = 0
        self._encoded = as_integers(schema) if int96 else schema
        self._footer: Any = None
        self._buffer: Any = None
        self._writer: Any = None

    def write(self, rows: Any) -> None:
        """Append a table or batch, with columns by name.

        Nested types may have other inner names. Texts may be dictionary arrays with 32-bit codes, which are encoded directly; with nulls their
        bounds may be too wide.
        """
        if not rows.num_rows:
            return
        table = fit_to_schema(rows, _with_dictionaries(self._schema, rows.schema), self.path)
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self._pending_bytes += table.nbytes
        self.row_count += table.num_rows
        if self._pending_rows >= thresholds.group_rows or self._pending_bytes >= self._group_bytes:
            self.end_row_group()

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file if it were closed now.

        Bytes on storage, plus pending rows at the current compression ratio.
        """
        written = self._output.size
        ratio = written / self._encoded_from if self._encoded_from else _FIRST_GUESS
        return written + int(self._pending_bytes * ratio)

    def close(self) -> tuple[Any, int]:
        """Finish the file and make it durable.

        Returns the encoder's footer (``pq.FileMetaData``), and the file size in bytes.
        """
        self.end_row_group()
        with storage_errors(self.path), encode_errors(self.path):
            self._buffer.flush()
            self._footer.hold()
            self._writer.close()
            self._buffer.flush()
            self._footer.finish()
        size = self._output.finish()
        return self._writer.writer.metadata, size

    def abort(self) -> None:
        """Delete the file. Never raises."""
        self._pending = []
        if self._writer is not None:
            self._footer.hold()  # discard the footer: an open encoder would write it when garbage collected
            with suppress(Exception):
                self._writer.close()
        self._output.abort()

    def end_row_group(self) -> None:
        """Encode the pending rows as a row group."""
        if self._writer is not None and not self._pending_rows:
            return
        group = concat_tables(self._pending) if self._pending else self._schema.empty_table()
        with storage_errors(self.path), encode_errors(self.path, culprit=lambda: failing_column(group, self._encode_alone)):
            if self._writer is None:
                self._open(group)
            rows = fit_to_schema(group, self._encoded, self.path)
            if group.num_rows:
                if silent := columns_with_nan(group):
                    self._footer.silent[self._groups] = silent
                self._groups += 1
                self._writer.write_table(rows, row_group_size=group.num_rows)
                self._buffer.flush()
        self._encoded_from += self._pending_bytes
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _open(self, first: Any) -> None:
        """Open the file.

        The first row group defines the Arrow types.
        """
        self._encoded = _with_dictionaries(self._encoded, first.schema)
        self._footer = FooterSink(self._output.open(), self._schema, int96=self._int96)
        # The encoder writes page headers of a few bytes: join them.
        self._buffer = pa.BufferedOutputStream(pa.PythonFile(self._footer, mode="w"), thresholds.file_write_bytes)
        rows = fit_to_schema(first, self._encoded, self.path)
        layout = column_layout(rows, self._plain, self._codec, self._level, by_sample=self._by_sample, table=self._table)
        codecs = leaf_codecs(self._encoded, self._options.codecs)
        layout = with_every_codec(layout, self._encoded) if codecs else layout
        blooms = self._blooms(first)
        self._writer = pq.ParquetWriter(
            self._buffer,
            self._encoded,
            version="2.6",
            data_page_version="1.0",
            data_page_size=self._options.page_bytes or thresholds.page_bytes,
            **self._supported({"max_rows_per_page": self._options.page_rows or thresholds.page_rows}),
            **({"bloom_filter_options": blooms} if blooms and _takes_blooms() else {}),
            **layout.settings(self._codec, self._level, codecs),
            write_page_index=True,
            write_page_checksum=True,  # readers verify checksums: a flipped bit is an error
            store_schema=False,
            store_decimal_as_integer=True,
            use_deprecated_int96_timestamps=self._int96,
            write_time_adjusted_to_utc=True,
        )

    def _encode_alone(self, rows: Any) -> None:
        schema = pa.schema([self._encoded.field(name) for name in rows.schema.names])
        pq.write_table(fit_to_schema(rows, schema, self.path), pa.BufferOutputStream(), store_decimal_as_integer=True)

    def _blooms(self, first: Any) -> dict[str, Any] | None:
        """Return Bloom filter settings of flat columns."""
        # parquet-mr uses other names for the parts of nested columns.
        flat = [field.name for field in self._schema if not pa.types.is_nested(field.type) and not pa.types.is_boolean(field.type)]
        return self._options.bloom_filters(flat, first.num_rows) or None

    def _supported(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name in _SETTINGS and value is not None}


def fit_to_schema(rows: Any, schema: Any, path: str) -> Any:
    """Return ``rows`` with the columns and types of ``schema``.

    Copies only columns that differ. Converts between texts and dictionary arrays.

    Raises:
        EncodeFailed: Another type differs.
    """
    if isinstance(rows, pa.Table) and rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = [rows.column(name) for name in schema.names]
    for index, field in enumerate(schema):
        if pa.types.is_nested(field.type) or not columns[index].type.equals(field.type):
            with encode_errors(path, field.name):
                columns[index] = _fit(columns[index], field.type)
    return pa.Table.from_arrays(columns, schema=schema)


def _fit(column: Any, kind: Any) -> Any:
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        column = column.cast(kind.value_type).dictionary_encode()
        return column if column.type.equals(kind) else column.cast(kind)
    return cast_nested(column, kind)  # nested columns get the inner names


def _with_dictionaries(schema: Any, row_schema: Any) -> Any:
    """Return ``schema`` with dictionary types where ``row_schema`` has them."""
    coded = [pa.types.is_string(field.type) and row_schema.field(field.name).type.equals(DICTIONARY) for field in schema]
    if not any(coded):
        return schema
    return pa.schema([field.with_type(DICTIONARY) if yes else field for field, yes in zip(schema, coded, strict=True)], schema.metadata)

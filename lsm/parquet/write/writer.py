"""The seam to the Parquet encoder: Arrow tables in, one data file out, durable and with a name of its own.

Call order: ``write`` any number of times, then ``close`` or ``abort``. Rows gather into row groups; the file appears on
storage with the first of them.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from inspect import signature
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fileindex.base.hidden_nulls import cast_nested
from fileindex.base.thresholds import thresholds
from lsm.arrow.encode_errors import encode_errors, failing_column
from lsm.arrow.text_form import DICTIONARY, joined
from lsm.parquet.footer_fixup import FooterSink, as_integers, columns_with_nan
from lsm.parquet.write.column_layout import column_layout
from manifest.io.file_io import FileIO
from manifest.io.output_file import OutputFile
from manifest.io.storage_errors import storage_errors
from manifest.options.parquet_options import ParquetOptions

_FIRST_GUESS = 0.5
_SETTINGS = frozenset(signature(pq.ParquetWriter.__init__).parameters)
"""What this Arrow's encoder can be told by its signature."""


@cache
def _takes_blooms() -> bool:
    """Whether this Arrow's encoder writes Bloom filters, which before 26 its signature does not say."""
    try:
        pq.ParquetWriter(
            pa.BufferOutputStream(), pa.schema([("a", pa.int64())]), bloom_filter_options={"a": {"ndv": 1, "fpp": 0.1}}
        ).close()
    except TypeError:
        return False
    return True


class ParquetFileWriter:
    """Encodes one Parquet file as Paimon's writer would: format version 1 pages, page index, no Arrow schema inside.

    Args:
        path: Created exclusively (``FileExistsError``).
        schema: The file's Arrow schema, with field ids (``lsm.schema.parquet_schema``).
        compression: Paimon's name of the codec (``file.compression``).
        by_sample: Whether columns may do without the codec, and numbers be stored as differences, where a sample says that it pays.
        level: Compression level, used for zstd.
        int96: Store timestamps finer than microseconds as INT96.
        row_group_bytes: In-memory size at which a row group is closed. None: ``Thresholds.group_bytes``.
        plain: Columns known to hold mostly distinct values, for which no dictionary is tried.
        options: What the table says of pages, dictionaries and Bloom filters.
        table: Whose files share what samples say of columns; None: this file asks its own rows.
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
        self._limits = thresholds()
        self._group_bytes = row_group_bytes or self._limits.group_bytes
        self._options = options or ParquetOptions()
        self._plain = plain | {name for name in schema.names if not self._options.has_dictionary(name)}
        self._groups = 0
        self._pending: list[Any] = []
        self._pending_rows = 0
        self._pending_bytes = 0
        self._encoded_from = 0
        self._encoded = as_integers(schema) if int96 else schema
        self._footer: Any = None
        self._writer: Any = None

    def write(self, rows: Any) -> None:
        """Append a table or batch that has the schema's columns, by name; nested types may differ in their inner names.

        Texts may be dictionaries with 32-bit codes, which are encoded as they are; bounds of those that have nulls may be too wide.
        """
        if not rows.num_rows:
            return
        table = fitted(rows, _coded(self._schema, rows.schema), self.path)
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self._pending_bytes += table.nbytes
        self.row_count += table.num_rows
        if self._pending_rows >= self._limits.group_rows or self._pending_bytes >= self._group_bytes:
            self.end_row_group()

    @property
    def bytes_written(self) -> int:
        """Estimate of the file's size if it were closed now: bytes on storage, and pending rows at the ratio seen so far."""
        written = self._output.size
        ratio = written / self._encoded_from if self._encoded_from else _FIRST_GUESS
        return written + int(self._pending_bytes * ratio)

    def close(self) -> tuple[Any, int]:
        """Finish the file and make it durable: its footer as the encoder made it (``pq.FileMetaData``), and its exact size in bytes."""
        self.end_row_group()
        with storage_errors(self.path), encode_errors(self.path):
            self._footer.hold()
            self._writer.close()
            self._footer.finish()
        size = self._output.finish()
        return self._writer.writer.metadata, size

    def abort(self) -> None:
        """Delete what was written; never raises, for the cause of the abort is the error to report."""
        self._pending = []
        if self._writer is not None:
            self._footer.hold()  # the encoder's end goes nowhere; left open it would write that when it is collected
            with suppress(Exception):
                self._writer.close()
        self._output.abort()

    def end_row_group(self) -> None:
        """Encode the rows that wait in memory as a row group of their own."""
        if self._writer is not None and not self._pending_rows:
            return
        group = joined(self._pending) if self._pending else self._schema.empty_table()
        with storage_errors(self.path), encode_errors(self.path, culprit=lambda: failing_column(group, self._encode_alone)):
            if self._writer is None:
                self._open(group)
            rows = fitted(group, self._encoded, self.path)
            if group.num_rows:
                if silent := columns_with_nan(group):
                    self._footer.silent[self._groups] = silent
                self._groups += 1
                self._writer.write_table(rows, row_group_size=group.num_rows)
                self._footer.flush()
        self._encoded_from += self._pending_bytes
        self._pending, self._pending_rows, self._pending_bytes = [], 0, 0

    def _open(self, first: Any) -> None:
        """Begin the file. The Arrow types of the first row group hold for all others."""
        self._encoded = _coded(self._encoded, first.schema)
        self._footer = FooterSink(self._output.open(), self._schema, int96=self._int96)
        rows = fitted(first, self._encoded, self.path)
        layout = column_layout(rows, self._plain, self._codec, self._level, by_sample=self._by_sample, table=self._table)
        blooms = self._blooms(first)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(self._footer, mode="w"),
            self._encoded,
            version="2.6",
            data_page_version="1.0",
            data_page_size=self._options.page_bytes or self._limits.page_bytes,
            **self._supported({"max_rows_per_page": self._options.page_rows or self._limits.page_rows}),
            **({"bloom_filter_options": blooms} if blooms and _takes_blooms() else {}),
            **layout.settings(self._codec, self._level),
            write_page_index=True,
            write_page_checksum=True,  # readers verify it: a flipped bit is an error, not another value
            store_schema=False,
            store_decimal_as_integer=True,
            use_deprecated_int96_timestamps=self._int96,
            write_time_adjusted_to_utc=True,
        )

    def _encode_alone(self, rows: Any) -> None:
        schema = pa.schema([self._encoded.field(name) for name in rows.schema.names])
        pq.write_table(fitted(rows, schema, self.path), pa.BufferOutputStream(), store_decimal_as_integer=True)

    def _blooms(self, first: Any) -> dict[str, Any] | None:
        """Of plain columns only: parquet-mr names the parts of nested ones otherwise."""
        flat = [field.name for field in self._schema if not pa.types.is_nested(field.type) and not pa.types.is_boolean(field.type)]
        return self._options.bloom_filters(flat, first.num_rows) or None

    def _supported(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in settings.items() if name in _SETTINGS and value is not None}


def fitted(rows: Any, schema: Any, path: str) -> Any:
    """Return ``rows`` with exactly the columns and types of ``schema``, copying only what differs.

    Texts become dictionaries where the schema has them, and dictionaries texts. Raises ``EncodeFailed`` for other types.
    """
    if isinstance(rows, pa.Table) and rows.schema.equals(schema, check_metadata=True):
        return rows
    columns = []
    for field in schema:
        with encode_errors(path, field.name):
            columns.append(_fitted(rows.column(field.name), field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _fitted(column: Any, kind: Any) -> Any:
    if column.type.equals(kind) and not pa.types.is_nested(kind):
        return column
    if pa.types.is_dictionary(kind) and not pa.types.is_dictionary(column.type):
        column = column.cast(kind.value_type).dictionary_encode()
        return column if column.type.equals(kind) else column.cast(kind)
    return cast_nested(column, kind)  # nested columns are relabelled


def _coded(schema: Any, given: Any) -> Any:
    """Return ``schema`` with dictionaries for the texts that ``given`` has as such."""
    coded = [pa.types.is_string(field.type) and given.field(field.name).type.equals(DICTIONARY) for field in schema]
    if not any(coded):
        return schema
    return pa.schema([field.with_type(DICTIONARY) if yes else field for field, yes in zip(schema, coded, strict=True)], schema.metadata)


__all__ = ["ParquetFileWriter", "fitted"]

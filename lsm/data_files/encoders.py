"""Which encoder writes a new data file: the formats that ``file.format`` may name, behind one protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fileindex.base.lazy import LazyModule
from fileindex.base.thresholds import thresholds
from lsm.parquet.write.writer import ParquetFileWriter
from lsm.schema.parquet_schema import needs_int96
from manifest.io.file_io import FileIO
from manifest.options.core_options import CoreOptions
from manifest.types.data_type import DataField

if TYPE_CHECKING:
    from lsm.avro import writer as avro
    from lsm.orc import writer as orc
else:
    avro = LazyModule("lsm.avro.writer")
    orc = LazyModule("lsm.orc.writer")

PARQUET = "parquet"


class FileEncoder(Protocol):
    """Writes one file. Call order: ``write`` at will, then ``close`` or ``abort``."""

    path: str
    row_count: int

    def write(self, rows: Any) -> None:
        """Append a table or batch that has the file's columns, by name."""

    @property
    def bytes_written(self) -> int:
        """About how large the file is."""

    def end_row_group(self) -> None:
        """Encode the rows that wait in memory, where the format has such an end."""

    def close(self) -> tuple[Any, int]:
        """Finish the file and make it durable: its footer if it is a Parquet file, and its exact size in bytes."""

    def abort(self) -> None:
        """Delete what was written; never raises."""


def format_of(options: CoreOptions, level: int) -> str:
    """The format of new files of a level."""
    return options.file_format_per_level.get(level, options.file_format)


def compression_of(options: CoreOptions, level: int) -> str:
    """The codec of new files of a level."""
    return options.file_compression_per_level.get(level, options.file_compression)


def file_encoder(
    file_io: FileIO,
    path: str,
    options: CoreOptions,
    fields: tuple[DataField, ...],
    schema: Any,
    *,
    level: int,
    target: int,
    plain: frozenset[str],
    table: str,
) -> FileEncoder:
    """The encoder of a new file.

    Args:
        file_io: where it goes.
        path: the file, which must not exist.
        options: the table's.
        fields: the file's columns.
        schema: of these columns in Arrow.
        level: of the file.
        target: bytes at which it will be closed.
        plain: columns for which dictionaries do not pay.
        table: where it lies.
    """
    compression = compression_of(options, level)
    block = options.file_block_size
    match format_of(options, level):
        case "orc":
            stripe = min(block or thresholds().orc_stripe_bytes, max(target, 1))
            return orc.OrcFileWriter(file_io, path, fields, schema, compression=compression, stripe_bytes=stripe)
        case "avro":
            return avro.AvroFileWriter(file_io, path, fields, schema, compression=compression, level=options.zstd_level)
    parquet, most = options.parquet, thresholds().group_bytes
    return ParquetFileWriter(
        file_io,
        path,
        schema,
        compression=compression,
        by_sample=not {"file.compression", "file.compression.per.level"} & options.raw.keys(),
        level=options.zstd_level,
        int96=needs_int96(fields),
        row_group_bytes=min(block or parquet.block_bytes or most, most, max(target, 1)),
        plain=plain,
        options=parquet,
        table=table,
    )


__all__ = ["PARQUET", "FileEncoder", "compression_of", "file_encoder", "format_of"]

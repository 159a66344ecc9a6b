"""Encoders of new data files, by ``file.format``."""

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
    """Encoder of one file.

    Call ``write`` any number of times, then ``close`` or ``abort``.
    """

    path: str
    row_count: int

    def write(self, rows: Any) -> None:
        """Append a table or batch, with columns by name."""

    @property
    def bytes_written(self) -> int:
        """Estimated size of the file."""

    def end_row_group(self) -> None:
        """Encode the pending rows, if the format has row groups."""

    def close(self) -> tuple[Any, int]:
        """Finish the file and make it durable.

        Returns the footer of a Parquet file, otherwise None, and the file size in bytes.
        """

    def abort(self) -> None:
        """Delete the file. Never raises."""


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
    """Return the encoder of a new file.

    Args:
        file_io: File system of the file.
        path: Path of the file. It must not exist.
        options: Options of the table.
        fields: Columns of the file.
        schema: Arrow schema of the columns.
        level: Level of the file.
        target: Target size in bytes.
        plain: Columns without dictionaries.
        table: Path of the table.
    """
    compression = options.compression_at(level)
    block = options.file_block_size
    match options.format_at(level):
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


__all__ = ["PARQUET", "FileEncoder", "file_encoder"]

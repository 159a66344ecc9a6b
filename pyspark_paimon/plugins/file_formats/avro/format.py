"""Avro as a format of data files."""

from __future__ import annotations

from typing import Any

from lsm.parquet.expected_footer import ExpectedFooter
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.options.core_options import CoreOptions
from manifest.types.data_type import DataField
from pyspark_paimon.plugins.file_formats.avro.reader import AvroDataFile
from pyspark_paimon.plugins.file_formats.avro.writer import AvroFileWriter


def open_file(file_io: FileIO, path: str, expected: ExpectedFooter | None, files: FileCache | None) -> AvroDataFile:
    """Open a file."""
    return AvroDataFile(file_io, path, expected, files)


def create_file(
    file_io: FileIO,
    path: str,
    fields: tuple[DataField, ...],
    schema: Any,
    options: CoreOptions,
    *,
    compression: str,
    target: int,  # noqa: ARG001  # Avro's blocks do not depend on it
) -> AvroFileWriter:
    """Return the writer of a file."""
    return AvroFileWriter(file_io, path, fields, schema, compression=compression, level=options.zstd_level)

"""ORC as a format of data files."""

from __future__ import annotations

from typing import Any

from lsm.parquet.expected_footer import ExpectedFooter
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.options.core_options import CoreOptions
from manifest.types.data_type import DataField
from paimon_base.thresholds import thresholds
from pyspark_paimon.plugins.file_formats.orc.reader import OrcDataFile
from pyspark_paimon.plugins.file_formats.orc.writer import OrcFileWriter


def open_file(file_io: FileIO, path: str, expected: ExpectedFooter | None, files: FileCache | None) -> OrcDataFile:
    """Open a file."""
    return OrcDataFile(file_io, path, expected, files)


def create_file(
    file_io: FileIO, path: str, fields: tuple[DataField, ...], schema: Any, options: CoreOptions, *, compression: str, target: int
) -> OrcFileWriter:
    """Return the writer of a file of about ``target`` bytes."""
    stripe = min(options.file_block_size or thresholds.orc_stripe_bytes, max(target, 1))
    return OrcFileWriter(file_io, path, fields, schema, compression=compression, stripe_bytes=stripe)

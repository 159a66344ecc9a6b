"""Formats of data files.

The file name extension selects the reader, because option ``file.format`` may change over the life of a table.
No other module knows all formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsm.formats.open_data_file import OpenDataFile
from lsm.parquet.expected_footer import ExpectedFooter
from lsm.parquet.reader import ParquetDataFile
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from paimon_base.lazy import LazyModule

if TYPE_CHECKING:
    from pyspark_paimon.plugins.file_formats.avro import reader as avro
    from pyspark_paimon.plugins.file_formats.orc import reader as orc
else:  # most tables have Parquet files alone
    avro = LazyModule("pyspark_paimon.plugins.file_formats.avro.reader")
    orc = LazyModule("pyspark_paimon.plugins.file_formats.orc.reader")

_FORMATS = frozenset({"parquet", "orc", "avro"})


def check_format(path: str) -> None:
    """Raise ``UnsupportedTable`` for an unsupported file format."""
    if _extension(path) not in _FORMATS:
        raise UnsupportedTable(f"{path}: data file format '{_extension(path)}' is not supported")


def open_data_file(file_io: FileIO, path: str, expected: ExpectedFooter | None = None, files: FileCache | None = None) -> OpenDataFile:
    """Open a data file.

    Close it, or use it as a context manager.

    Args:
        file_io: File system of the file.
        path: Path of the file.
        expected: Expected properties from the table's metadata. None: unknown.
        files: Cache of file footers.

    Raises:
        CorruptFile: The file is missing, or does not match its name or metadata.
        UnsupportedTable: The file format is not supported.
    """
    check_format(path)
    match _extension(path):
        case "orc":
            return orc.OrcDataFile(file_io, path, expected, files)
        case "avro":
            return avro.AvroDataFile(file_io, path, expected, files)
    return ParquetDataFile(file_io, path, expected, files)


def _extension(path: str) -> str:
    return path.rpartition(".")[2].lower()

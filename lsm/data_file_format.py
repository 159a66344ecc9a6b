"""Formats of data files.

The file name extension selects the reader, because option ``file.format`` may change over the life of a table.
Parquet is the core's own, plugins have the others.
"""

from __future__ import annotations

from lsm.formats.open_data_file import OpenDataFile
from lsm.parquet.expected_footer import ExpectedFooter
from lsm.parquet.reader import ParquetDataFile
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO
from manifest.options.core_options import PARQUET
from paimon_base.plugins import has_plugin, plugin


def check_format(path: str) -> str:
    """Return the format of a data file, by its last extension.

    Raises:
        UnsupportedTable: The format is not supported.
    """
    file_format = path.rpartition(".")[2].lower()
    if file_format != PARQUET and not has_plugin("file-format", file_format):
        raise UnsupportedTable(f"{path}: data file format '{file_format}' is not supported")
    return file_format


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
    file_format = check_format(path)
    if file_format == PARQUET:
        return ParquetDataFile(file_io, path, expected, files)
    opened: OpenDataFile = plugin("file-format", file_format).open_file(file_io, path, expected, files)
    return opened

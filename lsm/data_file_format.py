"""Formats of data files.

The file name extension selects the reader, because option ``file.format`` may change over the life of a table.
No other module knows all formats.
"""

from __future__ import annotations

from collections.abc import Callable

from lsm.avro.reader import AvroDataFile
from lsm.formats.open_data_file import OpenDataFile
from lsm.orc.reader import OrcDataFile
from lsm.parquet.expected_footer import ExpectedFooter
from lsm.parquet.reader import ParquetDataFile
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO

_READERS: dict[str, Callable[[FileIO, str, ExpectedFooter | None, FileCache | None], OpenDataFile]] = {
    "parquet": ParquetDataFile,
    "orc": OrcDataFile,
    "avro": AvroDataFile,
}


def check_format(path: str) -> None:
    """Raise ``UnsupportedTable`` for an unsupported file format."""
    if _extension(path) not in _READERS:
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
    return _READERS[_extension(path)](file_io, path, expected, files)


def _extension(path: str) -> str:
    return path.rpartition(".")[2].lower()


__all__ = ["check_format", "open_data_file"]

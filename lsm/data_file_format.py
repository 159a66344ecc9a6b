"""The formats of data files: which reader opens a file, told by the last extension of its name, never by an option.

The only place that knows them all; ``file.format`` changes over a table's life, and its files stay what they are.
"""

from __future__ import annotations

from collections.abc import Callable

from lsm.avro.reader import AvroDataFile
from lsm.formats.open_data_file import OpenDataFile
from lsm.orc.reader import OrcDataFile
from lsm.parquet.footer_promise import FooterPromise
from lsm.parquet.reader import ParquetDataFile
from manifest.io.errors import UnsupportedTable
from manifest.io.file_cache import FileCache
from manifest.io.file_io import FileIO

_READERS: dict[str, Callable[[FileIO, str, FooterPromise | None, FileCache | None], OpenDataFile]] = {
    "parquet": ParquetDataFile,
    "orc": OrcDataFile,
    "avro": AvroDataFile,
}


def check_format(path: str) -> None:
    """Raise ``UnsupportedTable`` for a file of a format that is not read here."""
    if _extension(path) not in _READERS:
        raise UnsupportedTable(f"{path}: data files of format '{_extension(path)}' are not read")


def open_data_file(file_io: FileIO, path: str, promise: FooterPromise | None = None, files: FileCache | None = None) -> OpenDataFile:
    """A data file, opened; close it, or use it as a context manager.

    Args:
        file_io: where the file lies.
        path: the file.
        promise: what the metadata say of it; None if they are not known.
        files: keeps what the file says of itself for the next time.

    Raises:
        CorruptFile: the file is missing, or not what its name or metadata promise.
        UnsupportedTable: the file's format is not read here.
    """
    check_format(path)
    return _READERS[_extension(path)](file_io, path, promise, files)


def _extension(path: str) -> str:
    return path.rpartition(".")[2].lower()


__all__ = ["check_format", "open_data_file"]

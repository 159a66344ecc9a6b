"""Errors of reads of data files, for all formats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from fileindex.base.errors import CorruptFile
from lsm.parquet.footer_promise import FooterMismatch
from lsm.parquet.row_group_pages import DAMAGE
from manifest.io.errors import OutOfMemory, OutOfThreads, StorageError, UnsupportedTable
from manifest.io.storage_errors import is_out_of_memory

_NO_THREAD = "Failed to launch worker thread"
"""Arrow's message if its pool cannot start a thread."""


@contextmanager
def decoding(path: str, file_format: str) -> Iterator[None]:
    """Convert errors of the block to ones naming the file."""
    try:
        yield
    except FileNotFoundError as error:
        raise CorruptFile(path, "the data file is missing") from error
    except StorageError:
        raise
    except UnsupportedTable as error:
        if path in str(error):
            raise
        raise UnsupportedTable(f"{path}: {error}") from error
    except FooterMismatch as error:
        raise CorruptFile(path, str(error)) from error
    except (MemoryError, pa.ArrowException, OSError, *DAMAGE) as error:
        if is_out_of_memory(error):  # the file may be intact
            raise OutOfMemory(path, str(error)) from error
        if _NO_THREAD in str(error):
            raise OutOfThreads from error
        if isinstance(error, OSError) and error.errno is not None:  # raised by storage, not by the decoder
            raise StorageError(error.errno, error.strerror or "cannot be read", path) from error
        raise CorruptFile(path, f"is not a readable {file_format} file ({error})") from error


__all__ = ["decoding"]
